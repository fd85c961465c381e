"""The protocol of the paper's experiments (section 4), one trial at a time.

80/20 stratified split; features without variance removed; z-scores with training statistics; 2D+K labelled rows drawn
stratified from the training part and as many for validation; the rest unlabelled. Where the training part is too small
for both, each gets at most two fifths of it. Every random choice of a trial comes from one seed and the trial's number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.foundation.stratified import TEST_SHARE, draw_stratified
from safespn.typing import FloatArray, IntArray

LARGEST_LABELLED_SHARE = 0.4


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows of one trial; classes are codes from 0.

    Parameters
    ----------
    labelled, validation, unlabelled, test : arrays of shape (n_rows, n_features)
    labelled_classes, validation_classes, unlabelled_classes, test_classes : arrays of shape (n_rows,)
        Those of the unlabelled rows are for oracles only.
    minority : int
        The rarest class of the whole data set.
    seed : int
        For the methods' own random choices.
    """

    labelled: FloatArray
    labelled_classes: IntArray
    validation: FloatArray
    validation_classes: IntArray
    unlabelled: FloatArray
    unlabelled_classes: IntArray
    test: FloatArray
    test_classes: IntArray
    n_classes: int
    minority: int
    seed: int


def draw_trial(
    features: FloatArray, classes: IntArray, trial: int, *, seed: int = 0, fixed_split: bool = False
) -> Trial:
    """Draw one trial of a data set.

    Parameters
    ----------
    features : array of shape (n_rows, n_features)
    classes : array of shape (n_rows,)
        Codes from 0.
    trial : int
        Number of the trial: other numbers are independent draws.
    seed : int
        Seed of the whole experiment.
    fixed_split : bool
        Keep one test set for all trials and redraw the labelled rows only.
    """
    generator = np.random.default_rng([seed, trial])
    splitter = np.random.default_rng([seed]) if fixed_split else generator
    test = draw_stratified(classes, round(TEST_SHARE * len(classes)), splitter)
    train = np.setdiff1d(np.arange(len(classes)), test)
    varies = features[train].std(axis=0) > 0
    mean, deviation = features[train][:, varies].mean(axis=0), features[train][:, varies].std(axis=0)
    scaled, n_classes = (features[:, varies] - mean) / deviation, int(classes.max()) + 1
    n_each = min(2 * scaled.shape[1] + n_classes, int(LARGEST_LABELLED_SHARE * len(train)))
    labelled = train[draw_stratified(classes[train], n_each, generator, least=2)]
    rest = np.setdiff1d(train, labelled)
    validation = rest[draw_stratified(classes[rest], n_each, generator)]
    unlabelled = np.setdiff1d(rest, validation)
    return Trial(
        scaled[labelled],
        classes[labelled],
        scaled[validation],
        classes[validation],
        scaled[unlabelled],
        classes[unlabelled],
        scaled[test],
        classes[test],
        n_classes,
        minority=int(np.bincount(classes).argmin()),
        seed=int(generator.integers(2**31)),
    )

"""The protocol of the paper's experiments (section 4), one trial at a time.

80/20 stratified split; constant features removed; z-scores with training statistics; 2D+K labelled rows drawn
stratified from the training part and as many for validation; the rest unlabelled. Where the training part is too small
for both, each gets at most two fifths of it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import load

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Trial:
    """Rows of one trial; classes are codes from 0."""

    labelled: Floats
    labelled_classes: Codes
    validation: Floats
    validation_classes: Codes
    unlabelled: Floats
    test: Floats
    test_classes: Codes

    @property
    def n_classes(self) -> int:
        return int(self.test_classes.max()) + 1


def draw_trial(name: str, seed: int) -> Trial:
    """Draw one trial of a data set; every random choice comes from ``seed``."""
    features, classes = load(name)
    train, test, train_classes, test_classes = train_test_split(
        features, classes, test_size=0.2, stratify=classes, random_state=seed
    )
    varies = train.std(axis=0) > 0
    mean, deviation = train[:, varies].mean(axis=0), train[:, varies].std(axis=0)
    train, test = (train[:, varies] - mean) / deviation, (test[:, varies] - mean) / deviation
    n_each = min(2 * train.shape[1] + int(classes.max()) + 1, int(0.4 * len(train)))
    labelled, rest = train_test_split(
        np.arange(len(train)), train_size=n_each, stratify=train_classes, random_state=seed
    )
    validation, unlabelled = train_test_split(rest, train_size=n_each, stratify=train_classes[rest], random_state=seed)
    return Trial(
        train[labelled],
        train_classes[labelled],
        train[validation],
        train_classes[validation],
        train[unlabelled],
        test,
        test_classes,
    )

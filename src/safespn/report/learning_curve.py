"""Do the unlabelled rows help here? Labels are hidden on purpose, and fits with and without them are scored.

The comparison is with the same classifier fitted to the labelled rows alone, which has never seen an unlabelled row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import clone

from safespn.classifier import SafeSPNClassifier
from safespn.exceptions import TableError
from safespn.foundation.scoring import SMALLEST_PROBABILITY
from safespn.foundation.stratified import TEST_SHARE, draw_stratified
from safespn.report.curve_point import CurvePoint, row_variance
from safespn.report.evaluation import Evaluation
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY, MOST_UNLABELLED
from safespn.report.peers import peer_log_posteriors
from safespn.tables import UNLABELLED, TrainingTable
from safespn.typing import AnyArray, FloatArray, IntArray

N_TRIALS = 20
FEW_LABELS = (10, 20, 50)
"""Numbers of labels to try where every row has one."""
MOST_SCORED = 1_000
"""Rows that a trial scores at most, besides those that are held out."""
N_UNGUARDED = 5
"""Trials in which plain EM is fitted, too: it takes longer than all the rest of a trial."""
UNGUARDED = "unguarded"

Scores = dict[str, tuple[FloatArray, FloatArray]]
"""By the name of the model, whether each labelled row was predicted rightly, and its log loss; NaN if not scored."""


def check_sizes(table: TrainingTable, sizes: Sequence[int]) -> None:
    """Complain about numbers of labels that cannot be tried."""
    classes, counts = np.unique(table.labels[table.is_labelled].astype(str), return_counts=True)
    if counts.min() < 2:
        raise TableError(
            f"{table.source}: class {str(classes[counts.argmin()])!r} has a single labelled row; it takes one to learn "
            "and one to test: label more rows of it, or remove it"
        )
    most = largest_size(table)
    for size in sizes:
        if not len(classes) <= size <= most:
            raise TableError(
                f"{table.source}: cannot keep {size} labels: with {counts.sum()} labelled rows, a fifth of them for "
                f"testing, and {len(classes)} classes, --labelled can be from {len(classes)} to {most}"
            )


def largest_size(table: TrainingTable) -> int:
    """The largest number of labels that leaves rows to test on and unlabelled rows to learn from."""
    n_labelled = int(table.is_labelled.sum())
    n_train = n_labelled - _n_test(n_labelled)
    return n_train if n_labelled < len(table.labels) else n_train - 1


def default_sizes(table: TrainingTable) -> list[int]:
    """Numbers of labels to try: up to all that there are, or few of many if every row has one."""
    n_classes = len(np.unique(table.labels[table.is_labelled].astype(str)))
    most = largest_size(table)
    if table.is_labelled.all():
        return [size for size in FEW_LABELS if n_classes <= size <= most] or [most]
    return sorted({size for size in (most // 4, most // 2, most) if size >= n_classes})


def evaluate_table(
    classifier: SafeSPNClassifier,
    table: TrainingTable,
    sizes: Sequence[int],
    n_trials: int,
    seed: int,
    progress: Callable[[float], None],
    n_unguarded: int = N_UNGUARDED,
) -> Evaluation:
    """Hide all but some labels in each trial, and score fits with and without unlabelled rows.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of labels to keep.
    progress : callable
        Called with the share of trials that are done.
    n_unguarded : int
        Trials in which plain EM is fitted, too.
    """
    check_sizes(table, sizes)
    known = np.nonzero(table.is_labelled)[0]
    codes = np.unique(table.labels[known].astype(str), return_inverse=True)[1]
    if classifier.safety == "none":
        n_unguarded = 0
    scores: list[list[Scores]] = [[] for _ in sizes]
    for trial in range(n_trials):
        generator = np.random.default_rng([seed, trial])
        test = draw_stratified(codes, _n_test(len(codes)), generator)
        train = np.setdiff1d(np.arange(len(codes)), test)
        for place, size in enumerate(sizes):
            shown = train[draw_stratified(codes[train], size, generator)]
            drawn = _Trial(classifier, table, known, shown, test)
            scores[place].append(drawn.scores(generator, with_unguarded=trial < n_unguarded))
            progress((trial * len(sizes) + place + 1) / (n_trials * len(sizes)))
    points = [_point(size, of_size, size / len(train)) for size, of_size in zip(sizes, scores, strict=True)]
    return Evaluation(table.source, table.target, n_trials, len(table.labels), len(known), _n_test(len(codes)), points)


def _point(size: int, scores: Sequence[Scores], overlap: float) -> CurvePoint:
    names = [name for name in scores[0] if name != UNGUARDED]
    right, losses = ({name: np.array([each[name][which] for each in scores]) for name in names} for which in (0, 1))
    return CurvePoint(
        size,
        {name: np.nanmean(values, axis=1) for name, values in right.items()},
        {name: np.nanmean(values, axis=1) for name, values in losses.items()},
        overlap,
        {
            name: (row_variance(right[ALL_ROWS] - right[name]), row_variance(losses[name] - losses[ALL_ROWS]))
            for name in names
            if name != ALL_ROWS
        },
        np.array([np.nanmean(each[UNGUARDED][0] - each[LABELS_ONLY][0]) for each in scores if UNGUARDED in each]),
    )


def _n_test(n_labelled: int) -> int:
    return max(1, round(TEST_SHARE * n_labelled))


class _Trial:
    """Labels shown and hidden.

    Parameters
    ----------
    known : array of shape (n_labelled,)
        Numbers of the labelled rows.
    shown, test : arrays
        Places in ``known`` of rows whose labels are shown, and of rows that no model sees.
    """

    def __init__(
        self, classifier: SafeSPNClassifier, table: TrainingTable, known: IntArray, shown: IntArray, test: IntArray
    ) -> None:
        self.classifier, self.table, self.known, self.shown, self.test = classifier, table, known, shown, test

    def scores(self, generator: np.random.Generator, *, with_unguarded: bool) -> Scores:
        """Fit all models; score them on labelled rows whose labels were not shown, unseen rows or not."""
        table, n_known = self.table, len(self.known)
        shown, test = self.known[self.shown], self.known[self.test]
        hidden = np.setdiff1d(np.arange(len(table.labels)), np.concatenate([shown, test]))
        if len(hidden) > MOST_UNLABELLED:
            hidden = generator.choice(hidden, MOST_UNLABELLED, replace=False)
        others = np.setdiff1d(np.arange(n_known), np.concatenate([self.shown, self.test]))
        places = np.concatenate([self.test, generator.permutation(others)[:MOST_SCORED]])
        scored = table.features.iloc[self.known[places]]
        rows = np.concatenate([shown, hidden])
        labels = np.concatenate([table.labels[shown], np.full(len(hidden), UNLABELLED, dtype=object)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one trial among many
            fitted = self._fit(rows, labels)
            of_shown, of_scored = (
                np.asarray(fitted._encoder.encode(part), dtype=np.float64)
                for part in (table.features.iloc[shown], scored)
            )
            codes = np.searchsorted(fitted.classes_, table.labels[self.known].astype(str))
            log_posteriors = peer_log_posteriors(
                fitted.column_types_,
                of_shown,
                codes[self.shown],
                of_scored,
                len(fitted.classes_),
                int(generator.integers(1 << 31)),
            )
            labels_only = self._fit(shown, table.labels[shown])
            log_posteriors |= {
                LABELS_ONLY: labels_only.predict_log_proba(scored),
                ALL_ROWS: fitted.predict_log_proba(scored),
            }
            if with_unguarded:
                log_posteriors[UNGUARDED] = self._fit(rows, labels, safety="none").predict_log_proba(scored)
        truth = codes[places]
        return {name: _row_scores(values, truth, places, n_known) for name, values in log_posteriors.items()}

    def _fit(self, rows: IntArray, labels: AnyArray, **changed: str) -> SafeSPNClassifier:
        model, table = clone(self.classifier).set_params(**changed), self.table
        try:
            fitted: SafeSPNClassifier = model.fit(table.features.iloc[rows], labels, column_types=table.column_types)
        except ValueError as error:
            raise TableError(f"{table.source}: in a fit to {len(rows)} of its rows, {error}") from error
        return fitted


def _row_scores(
    log_posterior: FloatArray, truth: IntArray, places: IntArray, n_known: int
) -> tuple[FloatArray, FloatArray]:
    right, loss = np.full(n_known, np.nan), np.full(n_known, np.nan)
    right[places] = log_posterior.argmax(axis=1) == truth
    loss[places] = -np.maximum(log_posterior[np.arange(len(truth)), truth], np.log(SMALLEST_PROBABILITY))
    return right, loss

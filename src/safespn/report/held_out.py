"""Predictions of labelled rows by models that have not seen their labels: all figures of quality come from these."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from safespn.classifier import SafeSPNClassifier
from safespn.foundation.stratified import draw_stratified
from safespn.network.columns import check_scale, column_names
from safespn.report.features import MOST_COLUMNS, ColumnEffects, Relevance, column_effects, draw_others, relevances
from safespn.report.peers import peer_log_posteriors
from safespn.tables import TrainingTable
from safespn.typing import AnyArray, FloatArray, IntArray

N_FOLDS = 5
ENOUGH_ROWS = 300
"""Folds are left out of account when so many rows have been predicted."""
MOST_LABELLED = 3_000
"""Labelled rows that are divided into folds at most."""
MOST_UNLABELLED = 3_000
"""Unlabelled rows that a fit with hidden labels uses at most."""
MOST_CELLS = 24_000
"""Cells of unlabelled rows in a fit for folds, more or less: wide tables get fewer rows, 300 at least."""
FEWEST_UNLABELLED = 300
LABELS_ONLY, ALL_ROWS = "labels only", "all rows"
"""Names of our two models: fitted to the labelled rows alone, and to all rows."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What models predict for rows whose labels they have not seen, or the reason why that cannot be measured.

    Parameters
    ----------
    n_folds : int
        Parts that the labelled rows were divided into; each was held out of one fit.
    n_unlabelled : int
        Unlabelled rows that these fits used.
    truth : array of shape (n_rows,)
        Numbers of the true classes.
    log_posteriors : dict
        By the name of the model, arrays of shape (n_rows, n_classes).
    relevances : list of Relevance, optional
        Columns that matter most first; None if there are too many to measure.
    reason : str
    """

    n_folds: int = 0
    truth: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    log_posteriors: dict[str, FloatArray] = field(default_factory=dict)
    relevances: list[Relevance] | None = None
    reason: str = ""
    n_unlabelled: int = 0


def predict_held_out(
    classifier: SafeSPNClassifier,
    table: TrainingTable,
    encoded: FloatArray,
    codes: IntArray,
    seed: int,
    *,
    n_folds: int = N_FOLDS,
    with_columns: bool = True,
    with_others: bool = True,
) -> HeldOut:
    """Fit again without one part of the labels after the other, and predict that part.

    Parameters
    ----------
    encoded : array of shape (n_rows, n_features)
        The features as numbers.
    codes : array of shape (n_rows,)
        Numbers of the classes, -1 for unlabelled rows.
    n_folds : int
        Parts that the labelled rows are divided into, at most.
    with_columns : bool
        Whether to measure how much each column matters.
    with_others : bool
        Whether to fit the models that see the labelled rows alone, too.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(classifier.classes_))
    if counts.min() < 2:
        rare = str(classifier.classes_[int(np.argmin(counts))])
        return HeldOut(reason=f"class {rare!r} has {counts.min()} labelled rows in this table, and two are needed")
    generator = np.random.default_rng(seed)
    used = [column for column, kind in enumerate(classifier.column_types_) if kind != "ignored"]
    names = [str(table.features.columns[column]) for column in used]
    titles = column_names(table.features, encoded.shape[1])
    unlabelled = np.nonzero(codes < 0)[0]
    most = int(np.clip(MOST_CELLS // max(len(used), 1), FEWEST_UNLABELLED, MOST_UNLABELLED))
    unlabelled = np.sort(generator.permutation(unlabelled)[:most])
    others = draw_others(unlabelled, len(used), generator)
    parts: dict[str, list[FloatArray]] = {}
    truth: list[IntArray] = []
    effects: list[ColumnEffects] = []
    n_folds = min(n_folds, int(counts.min()))
    for train, test in _folds(codes, n_folds, seed):
        predicted = {}
        if with_others:
            predicted = peer_log_posteriors(
                classifier.column_types_, encoded[train], codes[train], encoded[test], len(counts), seed
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has given them already
            fits = {LABELS_ONLY: train, ALL_ROWS: np.concatenate([train, unlabelled])}
            if not with_others or not len(unlabelled):
                del fits[LABELS_ONLY]
            for name, rows in fits.items():
                try:
                    check_scale(encoded[rows], titles)
                except ValueError as error:
                    # All rows can be learned from, these alone cannot.
                    return HeldOut(reason=f"in the rows of one of the fits, {error}")
                fitted = _refit(classifier, table, rows, codes)
                cells = np.asarray(fitted._encoder.encode(table.features.iloc[test]), dtype=np.float64)
                predicted[name] = fitted._committee.evaluate(cells)[1]
            if with_columns and len(used) <= MOST_COLUMNS:
                of_others = np.asarray(fitted._encoder.encode(table.features.iloc[others]), dtype=np.float64)
                effects.append(column_effects(fitted, used, cells, codes[test], of_others, generator))
        truth.append(codes[test])
        for name, log_posterior in predicted.items():
            parts.setdefault(name, []).append(log_posterior)
    return HeldOut(
        n_folds,
        np.concatenate(truth),
        {name: np.concatenate(values) for name, values in parts.items()},
        relevances(names, effects) if effects else None,
        n_unlabelled=len(unlabelled),
    )


def _folds(codes: IntArray, n_folds: int, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Labelled rows to learn from and to test on, until enough have been tested."""
    known = np.nonzero(codes >= 0)[0]
    if len(known) > MOST_LABELLED:
        known = known[np.sort(draw_stratified(codes[known], MOST_LABELLED, np.random.default_rng(seed)))]
        n_folds = min(n_folds, int(np.bincount(codes[known]).min()))
    n_tested = 0
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(known, codes[known]):
        yield known[train], known[test]
        n_tested += len(test)
        if n_tested >= ENOUGH_ROWS:
            return


def _refit(classifier: SafeSPNClassifier, table: TrainingTable, rows: IntArray, codes: IntArray) -> SafeSPNClassifier:
    """Fit some rows again, with the numbers of classes as labels: their order is then that of the classes."""
    again = clone(classifier).set_params(unlabeled=-1, checkpoint=None, validation_fraction=None)
    if isinstance(again.class_weight, dict):
        number = {name: code for code, name in enumerate(classifier.classes_.tolist())}
        again.set_params(class_weight={number[name]: weight for name, weight in again.class_weight.items()})
    labels: AnyArray = codes[rows]
    fitted: SafeSPNClassifier = again.fit(table.features.iloc[rows], labels, column_types=table.column_types)
    return fitted

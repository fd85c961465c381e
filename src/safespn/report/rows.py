"""Rows worth a look: where the two models disagree, which to label next, and which are least likely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from safespn.classifier import SafeSPNClassifier
from safespn.typing import AnyArray, FloatArray, IntArray

N_LISTED = 10
MOST_CANDIDATES = 2_000
"""Unlabelled rows that suggestions are chosen from, at most."""
N_TYPICAL = 200
"""Rows from which the usual values of a column are found."""


@dataclass(frozen=True)
class Disagreement:
    """An unlabelled row that the two models predict differently."""

    row: int
    supervised: str
    supervised_probability: float
    safe: str
    safe_probability: float


@dataclass(frozen=True)
class Query:
    """An unlabelled row whose label would be informative: uncertain, and different from the others that are listed."""

    row: int
    best: str
    probability: float
    second: str
    density_rank: float
    """Share of rows that are less likely."""


@dataclass(frozen=True)
class Unlikely:
    """A row of low density, and the cell that is most surprising given the others."""

    row: int
    log_density: float
    """In nats; comparable between rows with different gaps."""
    column: str
    surprise: float
    """How much less likely the cell is than is usual for its column, in nats."""


def disagreements(
    supervised: FloatArray, safe: FloatArray, rows: IntArray, classes: AnyArray
) -> tuple[list[Disagreement], int]:
    """List the rows with the largest change, and count all.

    Parameters
    ----------
    supervised, safe : array of shape (n_unlabelled, n_classes)
        Class probabilities.
    rows : array of shape (n_unlabelled,)
        Numbers of the rows in the table.
    """
    before, after = supervised.argmax(axis=1), safe.argmax(axis=1)
    different = np.nonzero(before != after)[0]
    change = safe[different, after[different]] - supervised[different, after[different]]
    listed = different[np.argsort(-change, kind="stable")][:N_LISTED]
    return [
        Disagreement(
            int(rows[at]),
            str(classes[before[at]]),
            float(supervised[at, before[at]]),
            str(classes[after[at]]),
            float(safe[at, after[at]]),
        )
        for at in listed
    ], len(different)


def queries(
    classifier: SafeSPNClassifier,
    features: pd.DataFrame,
    probabilities: FloatArray,
    densities: FloatArray,
    rows: IntArray,
    seed: int,
) -> list[Query]:
    """List the unlabelled rows most worth labelling, which differ from each other.

    Parameters
    ----------
    features : DataFrame
        Features of the unlabelled rows.
    probabilities : array of shape (n_unlabelled, n_classes)
    densities : array of shape (n_unlabelled,)
        Log densities.
    rows : array of shape (n_unlabelled,)
        Numbers of the rows in the table.
    """
    some = np.sort(np.random.default_rng(seed).permutation(len(rows))[:MOST_CANDIDATES])
    if not len(some):
        return []
    listed = some[classifier.suggest_labels(features.iloc[some], min(N_LISTED, len(some)))].tolist()
    ranks = np.argsort(np.argsort(densities, kind="stable"), kind="stable") / max(len(densities) - 1, 1)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    names = [str(name) for name in classifier.classes_]
    return [
        Query(
            int(rows[at]),
            names[order[at, 0]],
            float(probabilities[at, order[at, 0]]),
            names[order[at, 1]],
            float(ranks[at]),
        )
        for at in listed
    ]


def unlikely_rows(
    classifier: SafeSPNClassifier, names: list[str], table: FloatArray, densities: FloatArray, usual: FloatArray | None
) -> list[Unlikely]:
    """List the least likely rows, each with the cell that surprises most given the others.

    Parameters
    ----------
    densities : array of shape (n_rows,)
        Log densities, comparable between rows with different gaps.
    usual : array of shape (n_features,), optional
        As of :func:`usual_cell_densities`; without it no cells are looked at.
    """
    listed = np.argsort(densities, kind="stable")[:N_LISTED]
    if usual is None:
        return [Unlikely(int(at), float(densities[at]), "", 0.0) for at in listed]
    surprise = np.nan_to_num(usual - _cell_densities(classifier, table[listed]), nan=-np.inf)
    worst = surprise.argmax(axis=1)
    return [
        Unlikely(int(at), float(densities[at]), names[column], float(surprise[place, column]))
        for place, (at, column) in enumerate(zip(listed.tolist(), worst.tolist(), strict=True))
    ]


def usual_cell_densities(classifier: SafeSPNClassifier, table: FloatArray) -> FloatArray:
    """Log density of a cell given the rest of its row, as is usual in each column: the median over some rows."""
    typical = np.linspace(0, len(table) - 1, min(N_TYPICAL, len(table))).astype(int)
    conditional = _cell_densities(classifier, table[typical])
    conditional[~np.isfinite(conditional)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column may be empty in these rows
        return np.nan_to_num(np.nanmedian(conditional, axis=0))


def comparable_densities(densities: FloatArray, table: FloatArray, usual: FloatArray | None) -> FloatArray:
    """Add to log densities of rows with gaps what the missing cells would usually add.

    The density of fewer cells is another unit: without this, rows with gaps would seem the likelier ones.
    """
    return densities if usual is None else densities + np.isnan(table) @ usual


def _cell_densities(classifier: SafeSPNClassifier, table: FloatArray) -> FloatArray:
    """Log density of each cell given the rest of its row; NaN where missing."""
    full = np.logaddexp.reduce(classifier.spn_.log_joint(table), axis=1)
    result = np.full(table.shape, np.nan)
    for column in range(table.shape[1]):
        without = table.copy()
        without[:, column] = np.nan
        rest = np.logaddexp.reduce(classifier.spn_.log_joint(without), axis=1)
        known = ~np.isnan(table[:, column])
        result[known, column] = (full - rest)[known]
    return result

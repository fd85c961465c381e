"""Lower bounds of leaf variances, from the distances between neighbouring rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safespn.structure_learning.leaf_choice import LeafChoice
from safespn.structure_learning.table import LearningTable
from safespn.typing import FloatArray

MOST_QUERIES = 500
BLOCK_ROWS = 50
SMALLEST_FLOOR = 1e-8
UNITS = ("squared distance", "distance")


def nearest_neighbour_floor(table: LearningTable, unit: str = "squared distance") -> float:
    """Bound the variance of z-scores by the distances of rows to their nearest neighbours.

    The bound is the smallest percentile of the distances, over all rows and the real columns, that is above zero. A
    row's nearest neighbour is the nearest row that differs from it: repeated rows are merged, so that weights act like
    repetitions. Distances over the observed cells of both rows are scaled up to all columns.

    Parameters
    ----------
    unit : {"squared distance", "distance"}
        A squared distance per dimension has the unit of a variance. The distance itself, as in the original
        experiments, grows with the number of columns: a bound broader still.

    Returns
    -------
    float
        The same bound for every column of z-scores; at least 1e-8, so that log densities keep their digits.
    """
    values = table.values[:, table.columns_of(LeafChoice.GAUSSIAN)]
    if values.shape[1] == 0 or len(values) < 2:
        return SMALLEST_FLOOR
    squared, weights = _nearest_squared_distances(values, table.weights)
    positive = squared > 0
    if not positive.any():
        return SMALLEST_FLOOR
    bound = _smallest_percentile(squared, weights)
    bound = bound / values.shape[1] if unit == "squared distance" else np.sqrt(bound)
    return float(max(bound, SMALLEST_FLOOR))


def _smallest_percentile(squared: FloatArray, weights: FloatArray) -> float:
    """Return the smallest whole percentile (weighted) above zero."""
    order = np.argsort(squared)
    squared, share = squared[order], np.cumsum(weights[order]) / weights.sum()
    percentiles = squared[np.minimum(np.searchsorted(share, np.arange(1, 101) / 100 - 1e-12), len(squared) - 1)]
    return float(percentiles[percentiles > 0].min(initial=squared[-1]))


def _nearest_squared_distances(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squared distance of (at most 500, evenly chosen) rows to the nearest other row."""
    chosen = np.unique(np.linspace(0, len(values) - 1, MOST_QUERIES).astype(np.intp))
    observed = ~np.isnan(values)
    complete = bool(observed.all())
    filled, mask = np.where(observed, values, 0.0), observed.astype(np.float64)
    nearest = np.empty(len(chosen))
    squares = filled**2
    length = squares.sum(axis=1)
    for start in range(0, len(chosen), BLOCK_ROWS):
        rows = chosen[start : start + BLOCK_ROWS]
        if complete:
            distance = length[rows, None] + length - 2 * filled[rows] @ filled.T
        else:
            distance = squares[rows] @ mask.T + mask[rows] @ squares.T - 2 * filled[rows] @ filled.T
            shared = mask[rows] @ mask.T
            distance = np.where(shared > 0, distance * values.shape[1] / np.maximum(shared, 1), np.inf)
        distance[np.arange(len(rows)), rows] = np.inf
        nearest[start : start + len(rows)] = _exact(distance, rows, filled, observed)
    known = np.isfinite(nearest)
    return nearest[known], weights[chosen][known]


def _exact(distance: FloatArray, rows: NDArray[np.intp], filled: FloatArray, observed: NDArray[np.bool_]) -> FloatArray:
    """Recompute each row's smallest distance without the rounding of the expanded square."""
    neighbour = np.argmin(distance, axis=1)
    shared = observed[rows] & observed[neighbour]
    squared = ((filled[rows] - filled[neighbour]) ** 2 * shared).sum(axis=1)
    count = shared.sum(axis=1)
    result = squared * filled.shape[1] / np.maximum(count, 1)
    return np.where(np.isfinite(distance.min(axis=1)) & (count > 0), result, np.inf)


def variance_floors(table: LearningTable, floor: str | float | FloatArray) -> FloatArray:
    """Return the lower bound of each column's variance, in units of z-scores; 1 for a constant column.

    A constant column says nothing about its spread: any small bound would only inflate densities.
    """
    if isinstance(floor, str):
        if floor not in UNITS:
            raise ValueError(f"variance_floor must be a number or one of {', '.join(map(repr, UNITS))}, got {floor!r}")
        floor = nearest_neighbour_floor(table, floor)
    floors = np.array(np.broadcast_to(np.asarray(floor, dtype=np.float64), table.n_columns))
    if not (np.isfinite(floors) & (floors > 0)).all():
        raise ValueError(f"variance_floor must be positive and finite, got {floor}")
    constant = np.nanmin(table.values, axis=0) == np.nanmax(table.values, axis=0)
    floors[constant] = 1.0
    return np.maximum(floors, SMALLEST_FLOOR)

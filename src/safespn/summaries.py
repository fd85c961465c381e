"""What pictures show of a fitted classifier, as plain values: column densities, soft labels, the course of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier

N_GRID = 81
N_BINS = 10
MOST_RUG_ROWS = 60
FEWEST_IN_HISTOGRAM = 10
MOST_HISTOGRAM_BINS = 30
INNER = (0.01, 0.99)
"""Quantiles between which a column's usual values are."""
FAR = 3.0
"""How many times as wide as that a range must be to be cut."""


@dataclass(frozen=True, eq=False)
class FeatureDensity:
    """Distribution of one column in each class, all other columns marginalised exactly.

    Parameters
    ----------
    name : str
    values : array of shape (n_values,)
        Where the density was computed; numbers of categories if there are any.
    densities : array of shape (n_values, n_classes)
        Densities, or probabilities of categories.
    categories : list of str, optional
    labelled : list of arrays
        For each class the values of labelled rows, for a continuous column.
    histogram : tuple of arrays
        Edges of bins and density of all rows in each, labelled or not, for a continuous column; else empty.
    """

    name: str
    values: FloatArray
    densities: FloatArray
    categories: list[str] | None
    labelled: list[FloatArray]
    histogram: tuple[FloatArray, FloatArray]


def feature_density(
    classifier: SafeSPNClassifier, column: int, name: str, table: FloatArray, codes: IntArray
) -> FeatureDensity:
    """Compute the distribution of a column in each class; ``codes`` is -1 for unlabelled rows."""
    categories: list[Any] | None = classifier._encoder.categories[column]
    if categories is None:
        seen = table[:, column][~np.isnan(table[:, column])]
        low, high = _shown_range(seen)
        room = 0.08 * (high - low) or max(abs(low), 1.0)
        values = np.linspace(low - room, high + room, N_GRID)
    else:
        categories = categories or ["ignored"]
        values = np.arange(len(categories), dtype=np.float64)
    rows = np.full((len(values), table.shape[1]), np.nan)
    rows[:, column] = values
    weights = classifier.spn_.log_joint(np.full((1, table.shape[1]), np.nan))
    densities = np.exp(classifier.spn_.log_joint(rows) - weights)
    labelled = [
        _within(table[codes == code, column], values)[:MOST_RUG_ROWS]
        for code in range(len(classifier.classes_))
        if categories is None
    ]
    names = None if categories is None else [str(category) for category in categories]
    histogram = (np.empty(0), np.empty(0)) if categories is not None else _histogram(table[:, column], values)
    return FeatureDensity(name, values, densities, names, labelled, histogram)


def _shown_range(seen: FloatArray) -> tuple[float, float]:
    """Range of a column without far values, next to which all others would be one line."""
    if not len(seen):
        return 0.0, 1.0
    low, first, last, high = (float(value) for value in np.quantile(seen, [0, *INNER, 1]))
    inner = last - first
    if inner > 0 and high - low > FAR * inner:
        return max(low, first - inner / 2), min(high, last + inner / 2)
    return low, high


def _within(cells: FloatArray, values: FloatArray) -> FloatArray:
    """Cells in the range of some values, and unknown ones."""
    inside: FloatArray = cells[~((cells < values[0]) | (cells > values[-1]))]
    return inside


def _histogram(cells: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Edges and densities of the known cells of a column in the range of some values."""
    n_known = int(np.isfinite(cells).sum())
    known = _within(cells[np.isfinite(cells)], values)
    if len(known) < FEWEST_IN_HISTOGRAM or np.ptp(known) == 0:
        return np.empty(0), np.empty(0)
    n_bins = int(np.clip(np.sqrt(len(known)), 5, MOST_HISTOGRAM_BINS))
    density, edges = np.histogram(known, bins=n_bins, density=True)
    return edges, density * len(known) / n_known


def soft_label_histogram(soft_labels: FloatArray) -> tuple[FloatArray, IntArray]:
    """Count rows by their largest soft label and the class that it is for.

    Parameters
    ----------
    soft_labels : array of shape (n_rows, n_classes)

    Returns
    -------
    edges : array of shape (n_bins + 1,)
        From ``1 / n_classes``, the least that the largest can be, to one.
    counts : array of shape (n_classes, n_bins)
    """
    n_classes = soft_labels.shape[1]
    edges = np.linspace(1 / n_classes, 1.0, N_BINS + 1)
    largest, best = soft_labels.max(axis=1).clip(edges[0], 1.0), soft_labels.argmax(axis=1)
    counts = np.array([np.histogram(largest[best == code], edges)[0] for code in range(n_classes)])
    return edges, counts


def history_series(history: Sequence[dict[str, Any]], name: str) -> FloatArray:
    """One quantity over the iterations of a fit, NaN where it is not known; shape (n_iterations,)."""
    return np.array([np.nan if entry.get(name) is None else entry[name] for entry in history], dtype=np.float64)

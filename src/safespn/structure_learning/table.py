"""The table that structure learning works on: checked, standardised, equal rows merged, in an order of its own.

Equal rows become one row that carries their total weight, and rows are sorted by their values. So a weight of two is a
row twice, and the order of the caller's rows cannot matter: both hold exactly, not only in distribution.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from safespn.exceptions import DegenerateColumnWarning
from safespn.foundation.masked_arrays import unmask
from safespn.network.columns import as_row_weights, as_table, check_scale, column_names
from safespn.structure_learning.leaf_choice import LeafChoice, choose_leaves
from safespn.typing import ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LearningTable:
    """Distinct rows with their weights.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        z-scores in Gaussian columns, codes and counts elsewhere; NaN where missing.
    weights : array of shape (n_rows,)
        Positive.
    types : tuple of LeafChoice
    shift, scale : array of shape (n_columns,)
        A Gaussian column's own unit is ``z * scale + shift``; 0 and 1 for the other columns.
    n_states : array of shape (n_columns,)
        Number of states of categorical columns, 0 for the others.
    row_of : array
        For each of the caller's rows, the distinct row that it became; -1 if its weight is zero.
    """

    values: FloatArray
    weights: FloatArray
    types: tuple[LeafChoice, ...]
    shift: FloatArray
    scale: FloatArray
    n_states: IntArray
    row_of: IntArray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def columns_of(self, kind: LeafChoice) -> IntArray:
        """Return the numbers of the columns of one type."""
        return np.array([column for column, own in enumerate(self.types) if own is kind], dtype=np.intp)

    def weighted(self, weights: FloatArray) -> LearningTable:
        """Return the table with other weights of the distinct rows; rows of weight zero are left out."""
        kept = weights > 0
        return replace(self, values=self.values[kept], weights=weights[kept])

    def own_units(self) -> FloatArray:
        """Return the rows in the caller's units."""
        return self.values * self.scale + self.shift


def prepare(
    X: ArrayLike, sample_weight: ArrayLike | None, leaves: str | Sequence[str] | Mapping[int, str]
) -> LearningTable:
    """Check a table and bring it into the form that structure learning works on.

    Raises
    ------
    ValueError
        If the table is not numeric, or a column is all missing, infinite, or does not fit its declared leaf family.
    """
    table, names = _as_floats(X)
    weights = as_row_weights(sample_weight, len(table))
    table, weights, row_of = _distinct_rows(table, np.ones(len(table)) if weights is None else weights)
    observed = ~np.isnan(table)
    if not observed.any(axis=0).all():
        column = int(np.argmin(observed.any(axis=0)))
        raise ValueError(
            f"{names[column]} is missing in every row (of positive weight): there is nothing to learn from"
        )
    types = choose_leaves(table, weights, leaves, names)
    n_states = np.array(
        [
            np.nanmax(column) + 1 if own is LeafChoice.CATEGORICAL else 0
            for column, own in zip(table.T, types, strict=True)
        ]
    ).astype(np.intp)
    shift, scale = _standardisation(table, weights, types, names)
    return LearningTable((table - shift) / scale, weights, tuple(types), shift, scale, n_states, row_of)


def _as_floats(X: ArrayLike) -> tuple[FloatArray, list[str]]:
    array = np.asarray(unmask(X))
    if array.dtype == object and hasattr(X, "columns") and hasattr(X, "astype"):
        array = np.asarray(X.astype(np.float64))  # a frame whose numeric columns differ in type
    table = as_table(array, array.shape[1] if array.ndim == 2 else 0).astype(np.float64)
    names = column_names(X, table.shape[1])
    check_scale(table, names)
    return table, names


def _distinct_rows(table: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Merge equal rows into one, adding up their weights, and sort the rows by their values."""
    kept = np.nonzero(weights > 0)[0]
    marked = np.where(np.isnan(table), np.inf, table + 0.0)[kept]
    row_of, weights = np.full(len(table), -1, dtype=np.intp), weights[kept]
    order = np.lexsort(marked.T[::-1])
    marked = marked[order]
    first = np.concatenate([[True], (marked[1:] != marked[:-1]).any(axis=1)])
    distinct = marked[first]
    # Adding equal numbers in one order or another can differ in the last digit; sorted they cannot.
    group = np.cumsum(first) - 1
    sorted_weights = weights[order][np.lexsort((weights[order], group))]
    total = np.add.reduceat(sorted_weights, np.nonzero(first)[0])
    row_of[kept[order]] = group
    return np.where(np.isinf(distinct), np.nan, distinct), total, row_of


def _standardisation(
    table: FloatArray, weights: FloatArray, types: Sequence[LeafChoice], names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of Gaussian columns; a constant column keeps the scale 1."""
    shift, scale = np.zeros(table.shape[1]), np.ones(table.shape[1])
    constant = []
    for column, own in enumerate(types):
        observed = ~np.isnan(table[:, column])
        values = table[observed, column]
        if own is not LeafChoice.GAUSSIAN:
            continue
        if values.min() == values.max():
            constant.append(names[column])
            shift[column] = values[0]
            continue
        mass = weights[observed] / weights[observed].sum()
        # Relative to the first value and the range, so that neither large numbers nor tiny spreads lose digits.
        width = values.max() / 2 - values.min() / 2
        relative = (values - values[0]) / width
        mean = mass @ relative
        deviation = np.sqrt(mass @ (relative - mean) ** 2)
        shift[column], scale[column] = values[0] + mean * width, deviation * width
    if constant:
        warnings.warn(
            f"the same value in every row: {', '.join(constant)}; modelled with the variance 1",
            DegenerateColumnWarning,
            stacklevel=4,
        )
    return shift, scale

"""A table with some labels as class networks learn from it: distinct rows in a fixed order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

TAIL, FAR = 0.01, 10.0
"""A cell is far outside if it lies so many times beyond the central 98 % of its column's cells as these are wide."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Distinct rows, sorted, with their weights: neither the order of the rows nor repetition can matter.

    Parameters
    ----------
    cells : array of shape (n_rows, n_columns)
        NaN marks a missing cell.
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    weights : array of shape (n_rows,)
    n_states : tuple of int
        Number of states of each column of codes, 0 for a column of numbers.
    n_classes : int
    """

    cells: FloatArray
    codes: IntArray
    weights: FloatArray
    n_states: tuple[int, ...]
    n_classes: int

    @classmethod
    def of_rows(
        cls, table: AnyArray, codes: IntArray, weights: FloatArray | None, n_states: Sequence[int], n_classes: int
    ) -> LabelledTable:
        """Merge equal rows of the same class, adding their weights, and sort them."""
        cells = np.asarray(table, dtype=np.float64)
        each = np.ones(len(cells)) if weights is None else weights
        key = np.column_stack([np.where(np.isnan(cells), -np.inf, cells), codes])
        order = np.lexsort(key.T[::-1])
        is_new = is_other_row(key[order])
        first = order[is_new]
        merged = np.add.reduceat(each[order], np.nonzero(is_new)[0])
        return cls(cells[first], np.asarray(codes)[first], merged, tuple(n_states), n_classes)

    @property
    def n_columns(self) -> int:
        return int(self.cells.shape[1])

    @cached_property
    def labelled(self) -> IntArray:
        """Numbers of the rows whose class is known."""
        return np.nonzero(self.codes >= 0)[0]

    @cached_property
    def real_columns(self) -> IntArray:
        return np.flatnonzero(np.array(self.n_states) == 0)

    @cached_property
    def code_columns(self) -> IntArray:
        return np.flatnonzero(np.array(self.n_states) > 0)

    @cached_property
    def class_weights(self) -> FloatArray:
        """Weight of the labelled rows of each class, shape (n_classes,)."""
        known = self.labelled
        return np.bincount(self.codes[known], self.weights[known], self.n_classes).astype(np.float64)

    @cached_property
    def winsorised(self) -> FloatArray:
        """The cells, those of real columns that are far outside moved to where that begins.

        A single value a hundred times too large would set the scale of its column, and with it those of all networks.
        """
        order = np.argsort(self.cells, axis=0)  # missing cells last
        reached = np.cumsum(self.weights[order] * ~np.isnan(np.take_along_axis(self.cells, order, axis=0)), axis=0)
        low, high = (
            np.take_along_axis(self.cells, np.take_along_axis(order, place[None], axis=0), axis=0)[0]
            for place in ((reached < share * reached[-1]).sum(axis=0) for share in (TAIL, 1 - TAIL))
        )
        reach = np.where((np.array(self.n_states) == 0) & (high > low), FAR * (high - low), np.inf)
        return np.asarray(np.clip(self.cells, low - reach, high + reach))

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of the observed cells of each column, winsorised."""
        return self.weights @ np.nan_to_num(self.winsorised) / self._observed_weight

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of the observed cells of each column, winsorised; one for a constant column, of unknown spread."""
        deviation = np.where(np.isnan(self.cells), 0.0, self.winsorised - self.mean)
        variance = self.weights @ deviation**2 / self._observed_weight
        return np.where(self.is_constant, 1.0, variance)

    @cached_property
    def is_constant(self) -> BoolArray:
        """Whether a column holds a single value, up to rounding."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without any cell
            spread = np.nanmax(self.cells, axis=0) - np.nanmin(self.cells, axis=0)
        return np.asarray(~(spread > 1e-12 * np.abs(np.nan_to_num(self.cells)).max(axis=0)))

    def min_variance(self, share: float) -> FloatArray:
        """Lower bound of each column's variances: a share of its own.

        A constant column says nothing about its spread; any smaller bound than one would only inflate densities.
        """
        return np.where(self.is_constant, 1.0, share * self.variance)

    @cached_property
    def _observed_weight(self) -> FloatArray:
        return np.maximum(self.weights @ ~np.isnan(self.cells), 1e-300)

    @cached_property
    def design(self) -> DesignMatrix:
        return DesignMatrix.of(self)


def is_other_row(rows: FloatArray) -> BoolArray:
    """Whether each row of a table differs from the one before it; the first does."""
    return np.append(True, (rows[1:] != rows[:-1]).any(axis=1))


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """The table as numbers without gaps, for clusterings and trees that know nothing else.

    Numbers are winsorised and standardised, and gaps filled with the mean; codes become one indicator per state.

    Parameters
    ----------
    values : array of shape (n_rows, n_features)
    column : array of shape (n_features,)
        Column that each feature comes from.
    state : array of shape (n_features,)
        State that an indicator stands for, -1 for a number.
    """

    values: FloatArray
    column: IntArray
    state: IntArray

    @classmethod
    def of(cls, table: LabelledTable) -> DesignMatrix:
        real = table.real_columns
        numbers = (table.winsorised[:, real] - table.mean[real]) / np.sqrt(table.variance[real])
        parts, columns, states = [np.nan_to_num(numbers)], [real], [np.full(len(real), -1)]
        for column in table.code_columns:
            of_column = np.arange(table.n_states[column])
            parts.append((table.cells[:, column, None] == of_column).astype(np.float64))
            columns.append(np.full(len(of_column), column))
            states.append(of_column)
        return cls(np.concatenate(parts, axis=1), np.concatenate(columns), np.concatenate(states))

    @cached_property
    def scaled(self) -> FloatArray:
        """Features whose squared distances weigh columns alike: the indicators of a column together as one number."""
        is_indicator = self.state >= 0
        spread = np.where(is_indicator, 1 / np.sqrt(2), 1.0)
        return self.values * spread

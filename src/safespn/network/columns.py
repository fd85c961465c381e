"""The values that a column may take, and the check of a table against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from safespn.foundation.masked_arrays import unmask
from safespn.typing import AnyArray, ArrayLike, BoolArray, FloatArray


@dataclass(frozen=True)
class Domain:
    """The values that a column may take.

    Parameters
    ----------
    kind : {"real", "counts", "codes"}
        Finite numbers; the integers 0, 1, 2, ...; or the integers 0 to ``n_states - 1``.
    n_states : int
        Number of states of a column of codes, else 0.
    """

    kind: str
    n_states: int = 0

    @property
    def expected(self) -> str:
        """What a cell must hold, in words."""
        if self.kind == "real":
            return "a finite number, or NaN where it is missing"
        if self.kind == "counts":
            return "a count (0, 1, 2, ...), or NaN where it is missing"
        return f"an integer code from 0 to {self.n_states - 1}, or NaN where it is missing"

    def refuses(self, values: FloatArray) -> BoolArray:
        """Say for each of ``values`` whether it lies outside the domain; NaN never does."""
        if self.kind == "real":
            return np.isinf(values)
        largest = self.n_states - 1 if self.kind == "codes" else np.finfo(np.float64).max
        with np.errstate(invalid="ignore"):
            fraction = (values != np.floor(values)) & ~np.isnan(values)
            return np.asarray((values < 0) | (values > largest) | fraction)


LARGEST_VALUE, SMALLEST_RANGE = 1e140, 1e-140
"""What can be learned from: variances beyond the squares of these are too close to the ends of floating point."""
ROWS_PER_CHECK = 65_536

REAL = Domain("real")
COUNTS = Domain("counts")


def as_table(X: ArrayLike, n_columns: int, *, n_rows: int | None = None) -> AnyArray:
    """Check the outside of a table: two-dimensional, numeric, with rows, and ``n_columns`` columns.

    The cells are checked block by block while they are used (:func:`as_block`), so that a memory-mapped or very long
    table is neither copied nor read twice.
    """
    table = np.asarray(unmask(X))
    if table.dtype.kind not in "fiub":
        raise ValueError(
            f"the table has dtype {table.dtype}; expected numbers: encode categories as integer codes 0, 1, 2, ... and "
            "missing cells as NaN"
        )
    if table.ndim != 2:
        raise ValueError(
            f"expected a table with rows and columns, got an array of shape {table.shape}; one row is X.reshape(1, -1)"
        )
    if table.shape[1] == 0 or table.shape[0] == 0:
        raise ValueError(f"expected a table with at least one row and one column, got shape {table.shape}")
    if table.shape[1] != n_columns:
        raise ValueError(f"the table has {table.shape[1]} columns, but the network models {n_columns}")
    if n_rows is not None and table.shape[0] != n_rows:
        raise ValueError(f"expected {n_rows} rows, got {table.shape[0]}")
    return table


def as_block(table: AnyArray, start: int, stop: int, domains: tuple[Domain | None, ...], all_real: bool) -> FloatArray:
    """Return rows ``start`` to ``stop`` as a C-ordered float64 array after checking every cell against its domain."""
    block = np.ascontiguousarray(table[start:stop], dtype=np.float64)
    if all_real:
        # Adding up is the fastest way to see that no cell is infinite; a sum that overflows is looked at again below.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()) or not np.isinf(block).any():
                return block
    for column, domain in enumerate(domains):
        if domain is None:
            continue
        refused = domain.refuses(block[:, column])
        if refused.any():
            row = int(np.argmax(refused))
            value = block[row, column]
            raise ValueError(f"row {start + row}, column {column}: {value:g} is not valid, expected {domain.expected}")
    return block


def check_cells(table: AnyArray, domains: tuple[Domain | None, ...], block_rows: int = 65_536) -> None:
    """Check every cell of a table at once, for callers that go on to use its rows out of order."""
    all_real = all(domain is None or domain == REAL for domain in domains)
    for start in range(0, len(table), block_rows):
        as_block(table, start, min(start + block_rows, len(table)), domains, all_real)


def column_names(X: ArrayLike, n_columns: int) -> list[str]:
    """What to call each column in messages: its number, and its title if the table has titles."""
    titles = list(getattr(X, "columns", []))
    return [f"column {column} ({title!r})" for column, title in enumerate(titles)] or [
        f"column {column}" for column in range(n_columns)
    ]


def column_ranges(table: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of each column's range, each of shape (n_columns,); infinity and -infinity of an empty column."""
    lowest = np.fmin.reduce(table, axis=0, dtype=np.float64, initial=np.inf)
    return lowest, np.fmax.reduce(table, axis=0, dtype=np.float64, initial=-np.inf)


def check_magnitudes(table: AnyArray, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Check that the squares of a table's numbers can be added up; return the ends of each column's range."""
    lowest, highest = np.full(table.shape[1], np.inf), np.full(table.shape[1], -np.inf)
    for start in range(0, len(table), ROWS_PER_CHECK):
        block = table[start : start + ROWS_PER_CHECK]
        of_block = column_ranges(block)
        lowest, highest = np.fmin(lowest, of_block[0]), np.fmax(highest, of_block[1])
        too_large = np.maximum(highest, -lowest) > LARGEST_VALUE
        if too_large.any():
            column = int(np.argmax(too_large))
            row = int(np.argmax(np.abs(block[:, column]) > LARGEST_VALUE))
            value = float(block[row, column])
            raise ValueError(
                f"row {start + row}, {names[column]}: {value:g} is not valid, expected a finite number of at most "
                f"{LARGEST_VALUE:g} in size, or NaN where it is missing"
            )
    return lowest, highest


def check_scale(table: AnyArray, names: Sequence[str]) -> None:
    """Check that variances of a table's columns can be computed, before anything is learned from it.

    Raises
    ------
    ValueError
        If a cell is infinite or too large, or the cells of a column are too close together.
    """
    check_ranges(*check_magnitudes(table, names), names)


def check_ranges(lowest: FloatArray, highest: FloatArray, names: Sequence[str]) -> None:
    """Check that the ends of each column's range, of shape (n_columns,), are not too close together.

    Raises
    ------
    ValueError
        If a column holds different values, but hardly so.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # cells that are too large are refused with their row
        too_narrow = (highest > lowest) & (highest - lowest < SMALLEST_RANGE)
    if too_narrow.any():
        column = int(np.argmax(too_narrow))
        raise ValueError(
            f"{names[column]}: its values lie within {highest[column] - lowest[column]:g} of each other, too close to "
            "compute a variance; choose another unit"
        )


def as_row_weights(sample_weight: ArrayLike | None, n_rows: int) -> FloatArray | None:
    """Check row weights: one per row, finite, non-negative, not all zero."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"expected one sample weight for each of {n_rows} rows, got shape {weights.shape}")
    refused = ~(np.isfinite(weights) & (weights >= 0))
    if refused.any():
        row = int(np.argmax(refused))
        raise ValueError(
            f"sample_weight of row {row} is {weights[row]:g}; expected a finite number that is not negative"
        )
    if not weights.any():
        raise ValueError("every sample_weight is zero: there is no row to learn from")
    return np.ascontiguousarray(weights)

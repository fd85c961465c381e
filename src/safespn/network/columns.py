"""The values that a column may take, and the check of a table against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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


REAL = Domain("real")
COUNTS = Domain("counts")


def as_table(X: ArrayLike, n_columns: int, *, n_rows: int | None = None) -> AnyArray:
    """Check the outside of a table: two-dimensional, numeric, with rows, and ``n_columns`` columns.

    The cells are checked block by block while they are used (:func:`as_block`), so that a memory-mapped or very long
    table is neither copied nor read twice.
    """
    table = np.asarray(X)
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

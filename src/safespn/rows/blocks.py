"""Blocks of a table's rows, and tasks that run on them.

A fit never sees rows. It hands out a :class:`Task`, a pure function of one block and of the state kept with that
block; the summaries of all blocks are added up, and the new states stay where their blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from safespn.network.structure import Structure
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

Validation = tuple[FloatArray, IntArray]
"""Labelled rows to check a model with: their table and their class numbers."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    weights : array of shape (n_rows,) or None
        Row weights.
    number : int
        Which of the blocks this is.
    """

    table: AnyArray
    codes: IntArray
    weights: FloatArray | None = None
    number: int = 0

    @property
    def is_unlabelled(self) -> BoolArray:
        return np.asarray(self.codes < 0)

    def rows_at(self, places: Sequence[IntArray]) -> IntArray:
        """Row numbers, in order, given for each class, and last for unknown class, numbers among the rows of it."""
        wanted = [*enumerate(places[:-1]), (-1, places[-1])]
        return np.sort(np.concatenate([np.nonzero(self.codes == code)[0][chosen] for code, chosen in wanted]))

    def slices(self, n_rows: int) -> list[slice]:
        """Divide the rows into pieces of so many."""
        return [slice(start, start + n_rows) for start in range(0, len(self.codes), n_rows)]

    def take(self, rows: slice | IntArray | BoolArray) -> RowBlock:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return RowBlock(self.table[rows], self.codes[rows], weights, self.number)


class Task(Protocol):
    """A pure function of a block."""

    def __call__(self, structure: Structure, block: RowBlock, state: Any) -> tuple[Any, Any]:
        """Return a summary, which adds over blocks (or None), and the new state of the block."""


BlockStates = Sequence[Any]
"""The state kept with each block, in their order: values, or promises of values that live elsewhere."""


class PartitionedRows(Protocol):
    """All rows of a problem."""

    @property
    def counts(self) -> IntArray:
        """Number of rows of each class and, last, of unknown class; shape (n_classes + 1,)."""

    @property
    def weight_totals(self) -> FloatArray:
        """Total weights in the order of ``counts``."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""

    def run(self, task: Task, structure: Structure, states: BlockStates | None = None) -> tuple[Any, BlockStates]:
        """Run a task on every block; return the sum of the summaries and the new state of each block."""

    def labelled(self) -> PartitionedRows:
        """Return the rows whose class is known."""

    def fetch(self, places: Sequence[IntArray]) -> RowBlock:
        """Bring some rows into memory: for each class, and last for unknown class, numbers among the rows of it."""

    def batches(self, n_rows: int, generator: np.random.Generator) -> Iterator[PartitionedRows]:
        """Yield all rows once, in random mini-batches of about so many rows."""

    def concatenate_unlabelled(self, states: BlockStates, n_columns: int) -> Any:
        """Concatenate states that are arrays over the unlabelled rows of each block into one array."""

    def zip_with_unlabelled(self, states: BlockStates, of_unlabelled: FloatArray) -> BlockStates:
        """Pair the state of each block with its share of an array over all unlabelled rows."""

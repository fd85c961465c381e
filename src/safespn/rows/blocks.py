"""Blocks of a table's rows, and tasks that run on them.

A fit never sees rows. It hands out a :class:`Task`, a pure function of one block and of the state kept with that
block; the summaries of all blocks are added up, and the new states stay where their blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add
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

    def __sizeof__(self) -> int:
        # Dask asks for it: work goes to where large blocks are, and blocks that seem small are moved instead.
        arrays = (self.table, self.codes, self.weights)
        return super().__sizeof__() + sum(int(array.nbytes) for array in arrays if array is not None)

    @property
    def is_unlabelled(self) -> BoolArray:
        return np.asarray(self.codes < 0)

    def rows_at(self, places: Sequence[IntArray]) -> IntArray:
        """Row numbers, in order, given for each class, and last for unknown class, numbers among the rows of it."""
        wanted = [*enumerate(places[:-1]), (-1, places[-1])]
        return np.sort(np.concatenate([np.nonzero(self.codes == code)[0][chosen] for code, chosen in wanted]))

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


@dataclass(frozen=True, eq=False)
class PassRequest:
    """A task for every block, on behalf of one network; ``states`` as they were returned for the last one."""

    task: Task
    structure: Structure
    states: BlockStates | None = None


PassResult = tuple[Any, BlockStates]
"""The sum of the summaries, and the new state of each block."""


def reads_rows(task: Task) -> bool:
    """Whether a task looks at the rows of its block; others only need its number and state, and set this to False."""
    return bool(getattr(task, "reads_rows", True))


class Summaries(tuple[Any, ...]):
    """Summaries of several tasks, which are added one by one."""

    def __add__(self, other: tuple[Any, ...]) -> Summaries:
        pairs = zip(self, other, strict=True)
        return Summaries(None if ours is None else add(ours, theirs) for ours, theirs in pairs)


@dataclass(frozen=True, eq=False)
class TasksTogether:
    """Several tasks as one, so that a block is read once for all of them; its state is a tuple of theirs."""

    tasks: tuple[Task, ...]
    structures: tuple[Structure, ...]

    @property
    def reads_rows(self) -> bool:
        return any(map(reads_rows, self.tasks))

    def __call__(
        self, structure: Structure, block: RowBlock, state: tuple[Any, ...]
    ) -> tuple[Summaries, tuple[Any, ...]]:
        pairs = zip(self.tasks, self.structures, state, strict=True)
        results = [task(of_task, block, before) for task, of_task, before in pairs]
        return Summaries(summary for summary, _ in results), tuple(after for _, after in results)


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

    def run(self, task: Task, structure: Structure, states: BlockStates | None = None) -> PassResult:
        """Run a task on every block; return the sum of the summaries and the new state of each block."""

    def run_together(self, requests: Sequence[PassRequest]) -> list[PassResult]:
        """Run several tasks on every block, which is read once for all of them; return what each leaves."""

    def release(self) -> None:
        """Remove what is held outside memory, at the end of a fit that failed; then these rows are of no more use."""

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


@contextmanager
def released_if_it_fails(rows: PartitionedRows) -> Iterator[None]:
    """Have nothing of the rows left behind outside memory by a block that fails."""
    try:
        yield
    except BaseException:
        rows.release()
        raise

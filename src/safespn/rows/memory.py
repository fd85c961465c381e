"""Rows in memory: blocks are views of the table, and threads work on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from safespn.engine.backends import ROWS_PER_CALL
from safespn.engine.threads import even_slices, in_order, n_threads, single_threaded_blas
from safespn.network.structure import Structure
from safespn.rows.blocks import BlockStates, PassRequest, PassResult, RowBlock, Task, TasksTogether
from safespn.typing import AnyArray, FloatArray, IntArray


class MemoryRows:
    """Rows of a table in memory.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    n_classes : int
    weights : array of shape (n_rows,) or None
    n_jobs : int or None
        Number of threads; None for one on short tables and one per core on long ones.
    """

    def __init__(
        self,
        table: AnyArray,
        codes: IntArray,
        n_classes: int,
        weights: FloatArray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.whole, self.n_classes = RowBlock(table, codes, weights), n_classes
        self.n_threads = n_threads(len(table), n_jobs)
        self.blocks = [
            replace(self.whole.take(rows), number=number)
            for number, rows in enumerate(even_slices(len(table), ROWS_PER_CALL))
        ]

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    @cached_property
    def counts(self) -> IntArray:
        return np.bincount(self._strata, minlength=self.n_classes + 1)

    @cached_property
    def weight_totals(self) -> FloatArray:
        return np.bincount(self._strata, self.whole.weights, minlength=self.n_classes + 1).astype(np.float64)

    @property
    def _strata(self) -> IntArray:
        return np.where(self.whole.is_unlabelled, self.n_classes, self.whole.codes)

    def run(self, task: Task, structure: Structure, states: BlockStates | None = None) -> tuple[Any, BlockStates]:
        """Run a task on every block; return the sum of the summaries and the new state of each block."""
        before = states or [None] * self.n_blocks
        total, after = None, []
        with single_threaded_blas():
            threads = 1 if self.n_blocks == 1 else self.n_threads
            for summary, state in in_order(partial(task, structure), threads, self.blocks, before):
                total = summary if total is None else total + summary
                after.append(state)
        return total, after

    def run_together(self, requests: Sequence[PassRequest]) -> list[PassResult]:
        """Run several tasks on every block, one after the other while its rows are in the cache."""
        if len(requests) == 1:
            return [self.run(requests[0].task, requests[0].structure, requests[0].states)]
        together = TasksTogether(*zip(*[(each.task, each.structure) for each in requests], strict=True))
        before = zip(*[each.states or [None] * self.n_blocks for each in requests], strict=True)
        summaries, states = self.run(together, requests[0].structure, list(before))
        return list(zip(summaries, map(list, zip(*states, strict=True)), strict=True))

    def release(self) -> None:
        """Nothing is held outside memory."""

    def labelled(self) -> MemoryRows:
        """Return the rows whose class is known."""
        known = self.whole.take(~self.whole.is_unlabelled)
        return MemoryRows(known.table, known.codes, self.n_classes, known.weights, self.n_threads)

    def fetch(self, places: Sequence[IntArray]) -> RowBlock:
        """Return some rows: for each class, and last for unknown class, numbers among the rows of it."""
        if all(len(of_class) == count for of_class, count in zip(places, self.counts, strict=True)):
            return self.whole
        return self.whole.take(self.whole.rows_at(places))

    def batches(self, n_rows: int, generator: np.random.Generator) -> Iterator[MemoryRows]:
        """Yield all rows once, in random mini-batches of about so many rows."""
        n_batches = max(1, round(len(self.whole.codes) / n_rows))
        for chosen in np.array_split(generator.permutation(len(self.whole.codes)), n_batches):
            batch = self.whole.take(np.sort(chosen))
            yield MemoryRows(batch.table, batch.codes, self.n_classes, batch.weights, self.n_threads)

    def concatenate_unlabelled(self, states: BlockStates, n_columns: int) -> FloatArray:
        """Concatenate states that are arrays over the unlabelled rows of each block into one array."""
        return np.concatenate(states) if states else np.empty((0, n_columns))

    def zip_with_unlabelled(self, states: BlockStates, of_unlabelled: FloatArray) -> BlockStates:
        """Pair the state of each block with its share of an array over all unlabelled rows."""
        ends = np.cumsum([int(block.is_unlabelled.sum()) for block in self.blocks])
        return list(zip(states, np.split(of_unlabelled, ends[:-1]), strict=True))

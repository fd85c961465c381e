"""Rows in the partitions of Dask collections: one task for each partition, summaries added up in a tree.

Nothing here is gathered but summaries and samples. The state of a block is the result of its last task, which Dask
holds where it was computed; when a worker is lost, Dask computes it again from what led to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

from safespn.network.structure import Structure
from safespn.rows.blocks import BlockStates, PassRequest, PassResult, RowBlock, Summaries, Task, TasksTogether
from safespn.rows.lazy_block import LazyBlock, read
from safespn.rows.memory import MemoryRows
from safespn.typing import FloatArray, IntArray

FAN_IN = 8
LABELLED_IN_MEMORY = 1_000_000
"""Labelled rows are gathered up to this number; more of them stay in partitions."""


class DaskRows:
    """Rows in partitions.

    Parameters
    ----------
    blocks : list of Delayed
        Promises of :class:`RowBlock`, or of how to read one, none of them empty.
    counts : array of shape (n_blocks, n_classes + 1)
        Rows of each class and, last, of unknown class in each block.
    weight_totals : array of shape (n_blocks, n_classes + 1)
    names : list of str
        What to call each block in errors.
    persists : bool
        Let Dask hold the states of the blocks; otherwise they are computed again whenever they are needed.
    """

    def __init__(
        self, blocks: list[Delayed], counts: IntArray, weight_totals: FloatArray, names: list[str], persists: bool
    ) -> None:
        self.blocks, self.names, self.persists = blocks, names, persists
        self._counts, self._weight_totals = counts, weight_totals
        self._structures: dict[int, tuple[Structure, Delayed]] = {}
        self._dropped_later: Any = None

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    @property
    def counts(self) -> IntArray:
        return np.asarray(self._counts.sum(axis=0))

    @property
    def weight_totals(self) -> FloatArray:
        return np.asarray(self._weight_totals.sum(axis=0))

    def run(self, task: Task, structure: Structure, states: BlockStates | None = None) -> PassResult:
        """Run a task on every block; return the sum of the summaries and promises of the new state of each block."""
        return self.run_together([PassRequest(task, structure, states)])[0]

    def run_together(self, requests: Sequence[PassRequest]) -> list[PassResult]:
        """Run several tasks on every block, which is read once for all of them; return what each leaves."""
        token = uuid4().hex
        shared, layer = f"safespn-task-{token}", f"safespn-{token}"
        steps = [f"safespn-block-{token}-{number}" for number in range(self.n_blocks)]
        wirings = [self._shared(request.structure) for request in requests]
        before = [[None] * self.n_blocks if not each.states else [of.key for of in each.states] for each in requests]
        tasks: dict[str, Any] = {shared: [request.task for request in requests]}
        for step, block, label, *of_block in zip(steps, self.blocks, self.names, *before, strict=True):
            tasks[step] = (_run, shared, [wiring.key for wiring in wirings], block.key, of_block, label)
        # Apart from the states, so that only summaries travel between workers.
        summaries_of = [f"safespn-summary-{token}-{number}" for number in range(self.n_blocks)]
        tasks.update({key: (_summary, step) for key, step in zip(summaries_of, steps, strict=True)})
        sums = add_in_tree(tasks, summaries_of, token)
        # With one task its states are part of what the steps return; with more they are told apart, so that each is
        # dropped when nobody needs it any more.
        keys = [steps]
        if len(requests) > 1:
            keys = [[f"safespn-state-{token}-{which}-{step}" for step in steps] for which in range(len(requests))]
            for which, of_request in enumerate(keys):
                tasks.update({key: (_part, step, which) for key, step in zip(of_request, steps, strict=True)})
        needed = [promise for request in requests for promise in request.states or []]
        graph = HighLevelGraph.from_collections(layer, tasks, [*wirings, *self.blocks, *needed])
        promises = [Delayed(key, graph, layer=layer) for key in [*sums, *(key for each in keys for key in each)]]
        try:
            if self.persists:
                promises = list(dask.persist(*promises))
            # What led to this step is dropped after the next one has been handed over: a client of Dask sends word of
            # the former first, and then waits.
            self._dropped_later = (needed, promises)
            summaries = add_summaries(dask.compute(*promises[: len(sums)]))
        except Exception as error:
            raise explained(error, self.names, promises[len(sums) : len(sums) + self.n_blocks]) from error
        after = promises[len(sums) :]
        states = [after[start : start + self.n_blocks] for start in range(0, len(after), self.n_blocks)]
        return list(zip(summaries, states, strict=True))

    def _shared(self, structure: Structure) -> Delayed:
        """Promise of a structure, sent to each worker once."""
        if id(structure) not in self._structures:
            promise = delayed(structure, name=f"safespn-structure-{uuid4().hex}", traverse=False)
            self._structures[id(structure)] = (structure, dask.persist(promise)[0])
        return self._structures[id(structure)][1]

    def labelled(self) -> MemoryRows | DaskRows:
        """Return the rows whose class is known, gathered unless there are very many."""
        counts = self.counts
        if counts[:-1].sum() <= LABELLED_IN_MEMORY:
            known = self.fetch([*map(np.arange, counts[:-1].tolist()), np.arange(0)])
            return MemoryRows(known.table, known.codes, len(counts) - 1, known.weights)
        chosen = np.nonzero(self._counts[:, :-1].sum(axis=1))[0].tolist()
        blocks = dask.persist(*[delayed(_labelled)(self.blocks[number]) for number in chosen])
        without = np.append(np.ones(len(counts) - 1), 0)
        return DaskRows(
            list(blocks),
            self._counts[chosen] * without.astype(np.intp),
            self._weight_totals[chosen] * without,
            [self.names[number] for number in chosen],
            self.persists,
        )

    def fetch(self, places: Sequence[IntArray]) -> RowBlock:
        """Bring some rows into memory: for each class, and last for unknown class, numbers among the rows of it."""
        each_block = zip(self.names, self.blocks, places_in_blocks(places, self._counts), strict=True)
        wanted = [(name, delayed(_fetch)(block, inside)) for name, block, inside in each_block if any(map(len, inside))]
        found: list[RowBlock] = compute(wanted)
        weights = None if found[0].weights is None else np.concatenate([each.weights for each in found])
        return RowBlock(
            np.concatenate([each.table for each in found]), np.concatenate([each.codes for each in found]), weights
        )

    def batches(self, n_rows: int, generator: np.random.Generator) -> Iterator[DaskRows]:
        """Yield all blocks once, in random order, as many at a time as hold about so many rows."""
        order = generator.permutation(self.n_blocks)
        seen = np.cumsum(self._counts.sum(axis=1)[order])
        n_batches = max(1, round(int(seen[-1]) / n_rows))
        ends = np.unique(np.searchsorted(seen, seen[-1] * np.arange(1, n_batches + 1) / n_batches) + 1)
        for start, end in pairwise([0, *ends.tolist()]):
            yield self._some(order[start:end])

    def _some(self, chosen: IntArray) -> DaskRows:
        blocks, names = [self.blocks[number] for number in chosen], [self.names[number] for number in chosen]
        return DaskRows(blocks, self._counts[chosen], self._weight_totals[chosen], names, self.persists)

    def release(self) -> None:
        """Nothing is held but what Dask holds as long as it is needed."""

    def concatenate_unlabelled(self, states: BlockStates, n_columns: int) -> Any:
        """Concatenate states that are arrays over the unlabelled rows of each block into one lazy array."""
        arrays = [
            da.from_delayed(delayed(_state)(promise), shape=(int(count), n_columns), dtype=np.float64)
            for promise, count in zip(states, self._counts[:, -1], strict=True)
        ]
        return da.concatenate(arrays)

    def zip_with_unlabelled(self, states: BlockStates, of_unlabelled: FloatArray) -> BlockStates:
        """Pair the state of each block with its share of an array over all unlabelled rows."""
        shares = np.split(of_unlabelled, np.cumsum(self._counts[:, -1])[:-1])
        return [delayed(_pair)(promise, share) for promise, share in zip(states, shares, strict=True)]


def places_in_blocks(places: Sequence[IntArray], counts: IntArray) -> list[list[IntArray]]:
    """Say for each block which numbers, among its own rows of each class, are meant by numbers among all of them.

    Parameters
    ----------
    places : sequence of arrays
        For each class, and last for unknown class, increasing numbers among the rows of it.
    counts : array of shape (n_blocks, n_classes + 1)
    """
    ends = np.cumsum(counts, axis=0)
    return [
        [
            of_class[np.searchsorted(of_class, start) : np.searchsorted(of_class, end)] - start
            for of_class, start, end in zip(places, starts, of_block, strict=True)
        ]
        for starts, of_block in zip(ends - counts, ends, strict=True)
    ]


def compute(promises: Sequence[tuple[str, Delayed]]) -> list[Any]:
    """Bring values into memory; each has the name of a block, for errors."""
    names, values = [name for name, _ in promises], [promise for _, promise in promises]
    try:
        return list(dask.compute(*values))
    except Exception as error:
        raise explained(error, names, values) from error


def explained(error: Exception, names: Sequence[str], promises: Sequence[Delayed]) -> Exception:
    """Say which block was lost with its workers; other errors name their block themselves."""
    if type(error).__name__ != "KilledWorker":
        return error
    key = getattr(error, "task", None)
    # Promises of blocks of one collection share its graph: only what a block needs of it tells them apart.
    which = [name for name, each in zip(names, promises, strict=True) if key in cull(dict(each.dask), [each.key])[0]]
    return MemoryError(
        f"{which[0] if len(which) == 1 else 'a block'}: every worker that computed it died, probably out of memory; "
        "use smaller partitions or workers with more memory"
    )


Result = tuple[Summaries, tuple[Any, ...]]
"""What tasks leave of a block: their summaries, and their states."""


def _run(
    tasks: list[Task],
    structures: list[Structure],
    block: RowBlock | LazyBlock,
    before: list[Result | None],
    name: str,
) -> Result:
    together = TasksTogether(tuple(tasks), tuple(structures))
    # A block that is not read has nothing but its number.
    rows: Any = read(block) if together.reads_rows else block
    try:
        return together(structures[0], rows, tuple(None if each is None else _state(each) for each in before))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def add_in_tree(tasks: dict[str, Any], keys: list[str], token: str) -> list[str]:
    """Add tasks that add up summaries, a few at a time; return the keys of the few sums that are left."""
    level = 0
    while len(keys) > FAN_IN:
        groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
        keys = [f"safespn-sum-{token}-{level}-{number}" for number in range(len(groups))]
        tasks.update({key: (add_summaries, group) for key, group in zip(keys, groups, strict=True)})
        level += 1
    return keys


def _summary(result: Result) -> Summaries:
    return result[0]


def add_summaries(summaries: Sequence[Summaries]) -> Summaries:
    """Add what blocks return, task by task."""
    return reduce(add, summaries)


def _part(result: Result, which: int) -> Result:
    """Tell the state of one task from the others, without its summary."""
    return Summaries(), (result[1][which],)


def _fetch(block: RowBlock | LazyBlock, places: list[IntArray]) -> RowBlock:
    rows = read(block)
    return rows.take(rows.rows_at(places))


def _labelled(block: RowBlock | LazyBlock) -> RowBlock:
    rows = read(block)
    return rows.take(~rows.is_unlabelled)


def _state(result: Result) -> Any:
    return result[1][0]


def _pair(result: Result, share: FloatArray) -> Result:
    return Summaries(), ((_state(result), share),)

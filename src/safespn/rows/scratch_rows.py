"""Rows of Dask collections whose blocks, and what is kept with them, are files: workers hold nothing between passes.

A worker that is lost takes with it what it has done of the present pass, and nothing of those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph

from safespn.network.structure import Structure
from safespn.rows.blocks import BlockStates, PassRequest, PassResult, Summaries, Task, TasksTogether
from safespn.rows.dask_rows import DaskRows, add_in_tree, add_summaries, explained
from safespn.rows.scratch import Scratch, StoredBlock, StoredState, StoredStates
from safespn.typing import AnyArray, FloatArray, IntArray


class ScratchRows(DaskRows):
    """Rows in files.

    Parameters
    ----------
    scratch : Scratch
        Where new states go.
    stored : list of StoredBlock
        None of them empty.
    counts, weight_totals, names
        As of :class:`safespn.rows.dask_rows.DaskRows`.
    """

    def __init__(
        self,
        scratch: Scratch,
        stored: list[StoredBlock],
        counts: IntArray,
        weight_totals: FloatArray,
        names: list[str],
    ) -> None:
        blocks = [delayed(each, traverse=False) for each in stored]
        super().__init__(blocks, counts, weight_totals, names, persists=True)
        self.scratch, self._stored = scratch, stored

    def _some(self, chosen: IntArray) -> ScratchRows:
        numbers = chosen.tolist()
        stored, names = [self._stored[number] for number in numbers], [self.names[number] for number in numbers]
        return ScratchRows(self.scratch, stored, self._counts[chosen], self._weight_totals[chosen], names)

    def release(self) -> None:
        """Remove all files, also those of states that somebody refers to."""
        self.scratch.remove()

    def run_together(self, requests: Sequence[PassRequest]) -> list[PassResult]:
        """Run several tasks on every block, which is read once for all of them; states go to files."""
        token = uuid4().hex
        shared, layer = f"safespn-task-{token}", f"safespn-{token}"
        after = [StoredStates(self.scratch.folder(), self.n_blocks) for _ in requests]
        wirings = [self._shared(request.structure) for request in requests]
        tasks: dict[str, Any] = {shared: [request.task for request in requests]}
        steps = [f"safespn-block-{token}-{number}" for number in range(self.n_blocks)]
        for number, step in enumerate(steps):
            before = [each.states[number] if each.states else None for each in requests]
            files = _Files(before, [states[number] for states in after])
            wiring = [each.key for each in wirings]
            tasks[step] = (_run, shared, wiring, self.blocks[number].key, files, self.names[number])
        sums = add_in_tree(tasks, steps, token)
        graph = HighLevelGraph.from_collections(layer, tasks, [*wirings, *self.blocks])
        try:
            summaries = add_summaries(dask.compute(*[Delayed(key, graph, layer=layer) for key in sums]))
        except OSError as error:
            raise self.scratch.explained(error) from error
        except Exception as error:
            promises = [Delayed(step, graph, layer=layer) for step in steps]
            raise explained(error, self.names, promises) from error
        return list(zip(summaries, after, strict=True))

    def concatenate_unlabelled(self, states: BlockStates, n_columns: int) -> Any:
        """Concatenate states that are arrays over the unlabelled rows of each block into one lazy array.

        Their files stay as long as somebody refers to the array.
        """
        arrays = [
            da.from_delayed(delayed(_value)(delayed(state, traverse=False)), (int(count), n_columns), np.float64)
            for state, count in zip(states, self._counts[:, -1], strict=True)
        ]
        return da.concatenate(arrays)

    def zip_with_unlabelled(self, states: BlockStates, of_unlabelled: FloatArray) -> BlockStates:
        """Pair the state of each block with its share of an array over all unlabelled rows."""
        pairs = StoredStates(self.scratch.folder(), self.n_blocks)
        shares = np.split(of_unlabelled, np.cumsum(self._counts[:, -1])[:-1])
        for before, pair, share in zip(states, pairs, shares, strict=True):
            state, origins = before.read()
            pair.write((state, share), origins)
        return pairs


class _Files:
    """The files of one block: states before a pass, and where those after it go."""

    def __init__(self, before: list[StoredState | None], after: list[StoredState]) -> None:
        self.before, self.after = before, after


def _run(tasks: list[Task], structures: list[Structure], block: StoredBlock, files: _Files, name: str) -> Summaries:
    """Run tasks as on rows of other collections, but write the states to files."""
    together = TasksTogether(tuple(tasks), tuple(structures))
    read = [(None, {}) if each is None else each.read() for each in files.before]
    # A block that is not read has nothing but its number.
    rows: Any = block.read() if together.reads_rows else block
    try:
        summaries, states = together(structures[0], rows, tuple(state for state, _ in read))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    for target, state, (_, origins) in zip(files.after, states, read, strict=True):
        target.write(state, origins)
    return summaries


def _value(state: StoredState) -> AnyArray:
    # A copy: what the caller keeps must not hold the file.
    return np.array(state.read()[0])

"""Blocks of rows that stay on disk: in every pass each is read by the task that uses it, where that task runs.

As tasks of their own, reading and encoding would run ahead of the pass, fill the memory of workers with what is not
needed yet, and send rows to where soft labels are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import dask
from dask.delayed import Delayed
from dask.optimization import cull

from safespn.rows.blocks import RowBlock


@dataclass(frozen=True, eq=False)
class CollectionBlock:
    """How to make a block of the partitions of collections.

    Parameters
    ----------
    graph : dict
        Dask's tasks that read the collections' partitions.
    keys : list
        Which of them are the partitions.
    make : callable
        Makes the block of the partitions.
    number : int
        Which of the blocks this is.
    """

    graph: dict[Any, Any]
    keys: list[Any]
    make: Callable[..., RowBlock]
    number: int

    def read(self) -> RowBlock:
        return self.make(*dask.get(self.graph, self.keys))


class LazyBlock(Protocol):
    """A block that is somewhere else."""

    @property
    def number(self) -> int:
        """Which of the blocks this is."""

    def read(self) -> RowBlock:
        """Bring the block into memory."""


def read(block: RowBlock | LazyBlock) -> RowBlock:
    """Return the block itself, reading it if it is on disk."""
    return block if isinstance(block, RowBlock) else block.read()


def graphs_apart(partitions: Sequence[Sequence[Delayed]]) -> list[dict[Any, Any]] | None:
    """Tasks that lead to each group of partitions; None if groups share some, or memory of workers holds any."""
    promises = [promise for group in partitions for promise in group]
    # Without a cluster nothing is in its memory, and the import would be slow.
    if "distributed" in sys.modules:
        from distributed import futures_of

        if futures_of(promises):
            return None
    merged: dict[Any, Any] = {}
    # Promises of partitions of one collection have its graph in common.
    for graph in {id(promise.dask): promise.dask for promise in promises}.values():
        merged.update(graph)
    graphs = [cull(merged, [promise.key for promise in group])[0] for group in partitions]
    return graphs if sum(map(len, graphs)) == len(set().union(*graphs)) else None

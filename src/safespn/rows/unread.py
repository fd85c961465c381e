"""Parts that stay on disk: each is read again, by the task that uses it and where that task runs, in every pass.

As tasks of their own, reading and encoding would run ahead of the pass, fill the memory of workers with what is not
needed yet, and send rows to where soft labels are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
from dask.delayed import Delayed
from dask.optimization import cull

from safespn.rows.parts import Part


@dataclass(frozen=True, eq=False)
class Unread:
    """How to make a part.

    Parameters
    ----------
    graph : dict
        Dask's tasks that read the collections' blocks.
    keys : list
        Which of them are the blocks.
    make : callable
        Makes the part of the blocks.
    """

    graph: dict[Any, Any]
    keys: list[Any]
    make: Callable[..., Part]

    def read(self) -> Part:
        return self.make(*dask.get(self.graph, self.keys))


def read(part: Part | Unread) -> Part:
    """Return the part itself, reading it if it is on disk."""
    return part.read() if isinstance(part, Unread) else part


def graphs_apart(blocks: Sequence[Sequence[Delayed]]) -> list[dict[Any, Any]] | None:
    """Tasks that lead to each group of blocks; None if groups share some of them, or memory of workers holds any."""
    promises = [promise for block in blocks for promise in block]
    # Without a cluster nothing is in its memory, and the import would be slow.
    if "distributed" in sys.modules:
        from distributed import futures_of

        if futures_of(promises):
            return None
    merged: dict[Any, Any] = {}
    # Promises of blocks of one collection have its graph in common.
    for graph in {id(promise.dask): promise.dask for promise in promises}.values():
        merged.update(graph)
    graphs = [cull(merged, [promise.key for promise in block])[0] for block in blocks]
    return graphs if sum(map(len, graphs)) == len(set().union(*graphs)) else None

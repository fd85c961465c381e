"""Passes over whole tables: rows in blocks, each block checked and sent through the numpy or the compiled pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeVar

import numpy as np

from safespn.engine import backends
from safespn.engine.bound import BoundNetwork, Features
from safespn.engine.evidence import Evidence, SoftLabelUpdate
from safespn.engine.statistics import Statistics
from safespn.engine.threads import even_slices, in_order, n_threads
from safespn.network.columns import as_block
from safespn.typing import AnyArray, FloatArray

_Result = TypeVar("_Result")


def log_joint(network: BoundNetwork, table: AnyArray, n_jobs: int | None = None) -> FloatArray:
    """Log value of each child of the root times its weight, ``log w_k + log S_k(x)``, shape (n_rows, n_root_edges).

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
        As returned by :func:`safespn.network.columns.as_table`; NaN cells are marginalised.
    n_jobs : int or None
        Number of threads; None for one on short tables and one per core on long ones.
    """
    return map_log_joint(lambda joint: joint, network.structure.n_root_edges, network, table, n_jobs)


def map_log_joint(
    function: Callable[[FloatArray], FloatArray],
    n_values: int,
    network: BoundNetwork,
    table: AnyArray,
    n_jobs: int | None = None,
) -> FloatArray:
    """Apply a function to :func:`log_joint` while it is in cache, so that a wide one is never held whole.

    Parameters
    ----------
    function : callable
        From log values of some rows, shape (n_some, n_root_edges), to an array of shape (n_some, n_values). It runs in
        the thread that computed them.

    Returns
    -------
    array of shape (n_rows, n_values)
    """
    backend = backends.choose(network.structure, len(table))
    result = np.empty((len(table), n_values))

    def run(rows: slice) -> None:
        result[rows] = function(backend.log_joint(network, _features(network, table, rows, backend)))

    deque(_over_blocks(run, network, table, backend, n_jobs), maxlen=0)
    return result


def log_likelihood(network: BoundNetwork, table: AnyArray, n_jobs: int | None = None) -> FloatArray:
    """Log density of each row, in nats, shape (n_rows,); parameters as for :func:`log_joint`."""
    backend = backends.choose(network.structure, len(table))
    result = np.empty(len(table))

    def run(rows: slice) -> None:
        result[rows] = backend.log_likelihood(network, _features(network, table, rows, backend))

    deque(_over_blocks(run, network, table, backend, n_jobs), maxlen=0)
    return result


def statistics(
    network: BoundNetwork,
    table: AnyArray,
    evidence: Evidence | None = None,
    weights: FloatArray | None = None,
    *,
    hard: bool = False,
    n_passes: int = 1,
    n_jobs: int | None = None,
) -> Statistics:
    """Expected statistics of a table: both passes over all rows, added up in the order of the rows.

    Parameters
    ----------
    evidence : Evidence or None
        How rows enter at the root; None for no evidence on the root's children.
    weights : array of shape (n_rows,) or None
        Row weights.
    hard : bool
        Send each row down its best tree only (max-product) instead of sharing it by posterior probability.
    n_passes : int
        How many such passes the caller expects to make; it decides whether compiling pays.
    """
    backend = backends.choose(network.structure, len(table), n_passes)
    evidence = evidence or Evidence()

    def run(rows: slice) -> Statistics:
        of_rows = None if weights is None else weights[rows]
        return backend.statistics(network, _features(network, table, rows, backend), evidence.take(rows), of_rows, hard)

    return reduce(Statistics.__add__, _over_blocks(run, network, table, backend, n_jobs))


def statistics_after_update(
    network: BoundNetwork,
    table: AnyArray,
    update: SoftLabelUpdate,
    weights: FloatArray | None = None,
    *,
    n_passes: int = 1,
) -> tuple[Statistics, FloatArray, FloatArray]:
    """Expected statistics at soft labels that are updated from the class joint of the same pass, in one thread.

    Returns
    -------
    statistics : Statistics
    joint, soft_labels : arrays of shape (n_rows, n_root_edges)
        The class joint as by :func:`log_joint`, and the updated soft labels.
    """
    backend = backends.choose(network.structure, len(table), n_passes)
    # Two arrays, not one in two parts: callers keep the second when they have let go of the first.
    joint = np.empty((len(table), network.structure.n_root_edges))
    soft_labels = np.empty_like(joint)

    def run(rows: slice) -> Statistics:
        features, of_rows = _features(network, table, rows, backend), None if weights is None else weights[rows]
        return backend.statistics_after_update(
            network, features, update.take(rows), of_rows, joint[rows], soft_labels[rows]
        )

    return reduce(Statistics.__add__, map(run, _blocks(network, table, backend))), joint, soft_labels


def _features(network: BoundNetwork, table: AnyArray, rows: slice, backend: backends.Backend) -> Features:
    structure = network.structure
    cells = as_block(table, rows.start, rows.stop, structure.domains, structure.has_only_real_columns)
    return network.features(cells, compiled=backend.is_compiled)


def _blocks(network: BoundNetwork, table: AnyArray, backend: backends.Backend) -> list[slice]:
    return even_slices(len(table), backend.block_rows(network.structure))


def _over_blocks(
    run: Callable[[slice], _Result],
    network: BoundNetwork,
    table: AnyArray,
    backend: backends.Backend,
    n_jobs: int | None,
) -> Iterator[_Result]:
    """Yield ``run(rows)`` for consecutive blocks of rows, in order, however many threads compute them."""
    blocks = _blocks(network, table, backend)
    threads = n_threads(len(table), n_jobs) if backend.is_compiled and len(blocks) > 1 else 1
    return in_order(run, threads, blocks)

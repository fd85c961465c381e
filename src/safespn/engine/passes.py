"""Passes over whole tables: rows in blocks, each block checked and sent through the numpy or the compiled pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import islice
from typing import TypeVar

import numpy as np

from safespn.engine import backends
from safespn.engine.bound import BoundNetwork
from safespn.engine.evidence import Evidence
from safespn.engine.statistics import Statistics
from safespn.network.columns import as_block
from safespn.typing import AnyArray, FloatArray

ROWS_FOR_THREADS = 50_000

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
    shape = (len(table), network.structure.n_root_edges)
    return _per_row(lambda backend, features: backend.log_joint(network, features), network, table, shape, n_jobs)


def log_likelihood(network: BoundNetwork, table: AnyArray, n_jobs: int | None = None) -> FloatArray:
    """Log density of each row, in nats, shape (n_rows,); parameters as for :func:`log_joint`."""
    shape = (len(table),)
    return _per_row(lambda backend, features: backend.log_likelihood(network, features), network, table, shape, n_jobs)


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

    def run(start: int, stop: int) -> Statistics:
        return backend.statistics(
            network,
            _features(network, table, start, stop),
            evidence.take(slice(start, stop)),
            None if weights is None else weights[start:stop],
            hard,
        )

    blocks = _over_blocks(
        run, len(table), backend.block_rows(network.structure), _n_threads(backend, len(table), n_jobs)
    )
    return reduce(Statistics.__add__, blocks)


def _per_row(
    compute: Callable[[backends.Backend, FloatArray], FloatArray],
    network: BoundNetwork,
    table: AnyArray,
    shape: tuple[int, ...],
    n_jobs: int | None,
) -> FloatArray:
    """Compute something for every row, block by block, into one array of the given shape."""
    backend = backends.choose(network.structure, len(table))
    result = np.empty(shape)

    def run(start: int, stop: int) -> None:
        result[start:stop] = compute(backend, _features(network, table, start, stop))

    for _ in _over_blocks(
        run, len(table), backend.block_rows(network.structure), _n_threads(backend, len(table), n_jobs)
    ):
        pass
    return result


def _features(network: BoundNetwork, table: AnyArray, start: int, stop: int) -> FloatArray:
    structure = network.structure
    return network.features(as_block(table, start, stop, structure.domains, structure.has_only_real_columns))


def _n_threads(backend: backends.Backend, n_rows: int, n_jobs: int | None) -> int:
    if not backend.releases_gil or (n_jobs is None and n_rows < ROWS_FOR_THREADS):
        return 1
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    from joblib import cpu_count  # slow to import, and short tables need no threads

    return max(1, int(cpu_count()) + 1 + (-1 if n_jobs is None else n_jobs))


def _over_blocks(run: Callable[[int, int], _Result], n_rows: int, size: int, n_threads: int) -> Iterator[_Result]:
    """Yield ``run(start, stop)`` for consecutive blocks of rows, in order, however many threads compute them."""
    spans = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if n_threads == 1 or len(spans) == 1:
        yield from (run(*span) for span in spans)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # Only a few results wait at a time, so that memory does not grow with the number of rows.
        waiting = iter(spans)
        running = [pool.submit(run, *span) for span in islice(waiting, 2 * n_threads)]
        while running:
            yield running.pop(0).result()
            running.extend(pool.submit(run, *span) for span in islice(waiting, 1))

"""Threads: how many work on a table, in which order their results come, and none of them inside linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

ROWS_FOR_THREADS = 50_000

_Result = TypeVar("_Result")


def n_threads(n_rows: int, n_jobs: int | None) -> int:
    """Return how many threads to use for a table.

    ``n_jobs`` as in scikit-learn; None stands for one on short tables and inside workers of joblib, which use all cores
    already, and for one per core elsewhere.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if n_jobs is None and n_rows < ROWS_FOR_THREADS:
        return 1
    from joblib import cpu_count  # slow to import, and short tables need no threads
    from joblib.parallel import get_active_backend

    if n_jobs is None and get_active_backend()[0].nesting_level:
        return 1
    return max(1, int(cpu_count()) + 1 + (-1 if n_jobs is None else n_jobs))


def in_order(run: Callable[..., _Result], n_threads: int, *arguments: Iterable[Any]) -> Iterator[_Result]:
    """Call a function with one of each of the arguments, as :func:`map` does, in threads; results keep their order."""
    return map(run, *arguments) if n_threads == 1 else _in_threads(run, n_threads, zip(*arguments, strict=True))


def _in_threads(run: Callable[..., _Result], n_threads: int, calls: Iterator[tuple[Any, ...]]) -> Iterator[_Result]:
    with ThreadPoolExecutor(n_threads) as pool:
        # Only a few results wait at a time, so that memory does not grow with the number of calls.
        running = [pool.submit(run, *call) for call in islice(calls, 2 * n_threads)]
        try:
            while running:
                yield running.pop(0).result()
                running.extend(pool.submit(run, *call) for call in islice(calls, 1))
        finally:
            for future in running:
                future.cancel()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """The limit that is in force, and how many ask for it: setting it anew for every small product is slow."""

    lock = Lock()
    n_users = 0
    in_force: Any = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS from starting threads, which cost more than small products gain, most of all on a busy machine."""
    with _Limit.lock:
        if _Limit.n_users == 0:
            _Limit.in_force = _controller().limit(limits=1, user_api="blas")
        _Limit.n_users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.n_users -= 1
            if _Limit.n_users == 0:
                _give_up_control()
                _Limit.in_force.restore_original_limits()
                _give_up_control()


def _give_up_control() -> None:
    """Let any thread set limits again: from threadpoolctl 3.8 on, only the one that set the last limit may.

    The first user here, whose thread set it, need not be the last one.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)

"""Threads: how many work on a table, in which order their results come, and none of them inside linear algebra."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from operator import length_hint
from threading import Lock, Semaphore
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

ROWS_FOR_THREADS = 50_000
RESULTS_PER_THREAD = 4
MOST_THREADS = 1024
MOST_PER_CORE = 16
"""Threads of one pass for each core: more of them would only wait, whatever a file asks for."""

_Result = TypeVar("_Result")


def n_threads(n_rows: int, n_jobs: int | None) -> int:
    """Return how many threads to use for a table.

    ``n_jobs`` as in scikit-learn; None stands for one on short tables and inside workers of joblib, which use all cores
    already, and for one per core elsewhere. There are no more than rows, and no more than a machine has a use for.
    """
    if n_jobs is not None and n_jobs > 0:
        return max(1, min(n_jobs, n_rows, _most_threads()))
    if n_jobs is None and n_rows < ROWS_FOR_THREADS:
        return 1
    from joblib import cpu_count  # slow to import, and short tables need no threads
    from joblib.parallel import get_active_backend

    if n_jobs is None and get_active_backend()[0].nesting_level:
        return 1
    return max(1, int(cpu_count()) + 1 + (-1 if n_jobs is None else n_jobs))


def even_slices(n_rows: int, most: int) -> list[slice]:
    """Divide rows into slices of ``most`` rows or fewer, all of nearly the same length.

    If there are several, their number is even: two threads that take turns are then done at the same time.
    """
    n_slices = -(-n_rows // most)
    n_slices += n_slices % 2 if n_slices > 1 else 0
    return [slice(n_rows * i // n_slices, n_rows * (i + 1) // n_slices) for i in range(n_slices)]


def in_order(run: Callable[..., _Result], n_threads: int, *arguments: Iterable[Any]) -> Iterator[_Result]:
    """Call a function with one of each of the arguments, as :func:`map` does, in threads; results keep their order.

    There are no more threads than calls, if their number is known.
    """
    useful = min(n_threads, _most_threads(), *(length_hint(each, MOST_THREADS) for each in arguments))
    return map(run, *arguments) if useful <= 1 else _in_threads(run, useful, zip(*arguments, strict=True))


def _in_threads(run: Callable[..., _Result], n_threads: int, calls: Iterator[tuple[Any, ...]]) -> Iterator[_Result]:
    """Run calls in this thread and some more, each of which takes the next one when it is done with its last.

    A thread that only waited for results would be woken for each of them, at the cost of those that work.
    """
    waiting: deque[Future[_Result]] = deque()
    # Only so many results wait at a time, so that memory does not grow with the number of calls.
    room, lock = Semaphore(RESULTS_PER_THREAD * n_threads), Lock()

    def run_next() -> bool:
        with lock:
            call = next(calls, None)
            if call is None:
                return False
            result: Future[_Result] = Future()
            waiting.append(result)
        try:
            result.set_result(run(*call))
        except BaseException as error:
            result.set_exception(error)
        return True

    def run_all() -> None:
        while room.acquire() and run_next():
            pass

    helpers = [_pool().submit(run_all) for _ in range(n_threads - 1)]
    try:
        while not (has_room := room.acquire(blocking=False)) or run_next():
            while waiting and (waiting[0].done() or not has_room):
                yield waiting.popleft().result()
                room.release()
                has_room = True
        while waiting:
            yield waiting.popleft().result()
    finally:
        with lock:
            calls = iter(())
        room.release(n_threads)
        started = [helper for helper in helpers if not helper.cancel()]
        wait(started)
    for helper in started:
        helper.result()


def _most_threads() -> int:
    """How many threads one pass may have on this machine."""
    return min(MOST_THREADS, MOST_PER_CORE * (os.cpu_count() or 1))


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay for the next pass: to start one takes as long as thousands of rows."""
    return ThreadPoolExecutor(MOST_THREADS, "safespn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


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

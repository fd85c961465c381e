from __future__ import annotations

import copy
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from safespn.engine import threads as threads_module
from safespn.engine.threads import (
    MOST_PER_CORE,
    RESULTS_PER_THREAD,
    ROWS_FOR_THREADS,
    even_slices,
    in_order,
    n_threads,
    single_threaded_blas,
)


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_all_cores_for_long_tables_and_one_for_short_ones():
    assert n_threads(ROWS_FOR_THREADS - 1, None) == 1
    assert n_threads(ROWS_FOR_THREADS, None) == cpu_count()
    assert n_threads(10, -1) == cpu_count()
    assert n_threads(10, 3) == 3
    assert n_threads(10**9, -cpu_count() - 5) == 1


def test_no_more_threads_than_rows_or_than_cores_have_a_use_for():
    assert n_threads(2, 3) == 2
    assert n_threads(0, 3) == 1
    assert n_threads(10**9, 10**9) == min(1024, MOST_PER_CORE * os.cpu_count())


class Pool(ThreadPoolExecutor):
    """Counts what it is asked to do."""

    n_submitted = 0

    def submit(self, *arguments):
        self.n_submitted += 1
        return super().submit(*arguments)


@pytest.mark.parametrize(("calls", "most"), [(range(3), 2), ([], 0), (iter(range(50)), MOST_PER_CORE * os.cpu_count())])
def test_a_pass_asks_for_no_more_helpers_than_it_has_calls(calls, most, monkeypatch):
    expected = list(copy.copy(calls))
    with Pool(2) as pool:
        monkeypatch.setattr(threads_module, "_pool", lambda: pool)
        assert list(in_order(lambda number: number, 10**9, calls)) == expected
    assert pool.n_submitted <= most


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_do_not_start_more_threads(backend):
    assert Parallel(n_jobs=2, backend=backend)(delayed(n_threads)(10**7, None) for _ in range(3)) == [1, 1, 1]


@pytest.mark.parametrize(
    ("n_rows", "lengths"), [(0, []), (1, [1]), (10, [10]), (11, [5, 6]), (25, [6, 6, 6, 7]), (40, [10] * 4)]
)
def test_slices_are_even_in_number_and_in_length(n_rows, lengths):
    rows = np.arange(n_rows)
    pieces = [rows[piece] for piece in even_slices(n_rows, 10)]
    assert [len(piece) for piece in pieces] == lengths
    assert np.array_equal(np.concatenate([rows[:0], *pieces]), rows)


def test_results_come_in_order_however_long_they_take():
    def slow_first(number):
        time.sleep(0.02 if number % 3 == 0 else 0)
        return number

    assert list(in_order(slow_first, 4, range(20))) == list(range(20))


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(number):
        if number == 5:
            raise ValueError("block 5")
        return number

    with pytest.raises(ValueError, match="block 5"):
        list(in_order(fail, 3, range(100)))


def test_the_caller_takes_part():
    threads = list(in_order(lambda _: time.sleep(0.002) or threading.get_ident(), 3, range(60)))
    assert threading.get_ident() in threads
    assert 1 < len(set(threads)) <= 3


def test_an_error_in_the_arguments_reaches_the_caller_whichever_thread_meets_it():
    def arguments():
        yield from range(6)
        raise OSError("the file is gone")

    for _ in range(20):
        with pytest.raises(OSError, match="the file is gone"):
            list(in_order(lambda _: time.sleep(0.001), 3, arguments()))


def test_threads_of_one_pass_work_on_the_next_and_calls_may_be_nested():
    def inside(number):
        return sum(in_order(lambda k: time.sleep(0.001) or k, 2, range(number)))

    assert list(in_order(inside, 2, range(8))) == [sum(range(number)) for number in range(8)]
    before = threading.active_count()
    for _ in range(200):
        assert list(in_order(str, 2, range(8))) == list("01234567")
    # A pass may begin before the thread of the last one says that it is free.
    assert threading.active_count() < before + 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    caller = threading.get_ident
    list(in_order(lambda _: time.sleep(0.001) or caller(), 2, range(10)))
    child = os.fork()
    if child == 0:
        threads = set(in_order(lambda _: time.sleep(0.01) or caller(), 2, range(10)))
        os._exit(len(threads))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_results_that_nobody_takes_stop_the_work():
    """Memory does not grow with the number of calls, and what is given up is not computed."""
    begun = []
    results = in_order(begun.append, 2, range(10_000))
    next(results)
    time.sleep(0.05)
    assert len(begun) <= 2 * RESULTS_PER_THREAD + 1
    results.close()
    time.sleep(0.05)
    assert len(begun) <= 2 * RESULTS_PER_THREAD + 1


def test_blas_is_limited_by_many_threads_at_once_and_set_free_afterwards():
    before = blas_threads()

    def inside(number):
        with single_threaded_blas():
            time.sleep(0.001 * (number % 3))
            return set(blas_threads()) <= {1}

    assert all(in_order(inside, 4, range(30)))
    assert blas_threads() == before


@pytest.fixture
def two_blas_threads():
    """Two threads of BLAS, whatever the environment says, set by a thread that is gone: none is in control."""
    with ThreadPoolExecutor(1) as pool:
        limit = pool.submit(threadpool_limits, 2, "blas").result()
    yield
    limit.restore_original_limits()


@pytest.mark.usefixtures("two_blas_threads")
def test_the_thread_that_frees_blas_need_not_be_the_one_that_limited_it():
    def run(events):
        """Limit BLAS until told otherwise, and live on until the test ends."""
        with single_threaded_blas():
            events["inside"].set()
            assert events["leave"].wait(10)
        events["outside"].set()
        assert events["end"].wait(10)

    threads = []
    for _ in range(2):
        events = {name: threading.Event() for name in ("inside", "leave", "outside", "end")}
        thread = threading.Thread(target=run, args=(events,))
        thread.start()
        assert events["inside"].wait(10)
        threads.append((thread, events))
    assert set(blas_threads()) == {1}
    for _, events in threads:
        events["leave"].set()
        assert events["outside"].wait(10)
    assert set(blas_threads()) == {2}
    with threadpool_limits(1, user_api="blas"):
        assert set(blas_threads()) == {1}, "limits of others work again"
    for thread, events in threads:
        events["end"].set()
        thread.join()

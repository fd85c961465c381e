"""What every section shares: timing by the best of several runs, fresh processes, and the table of figures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SINGLE_THREADED = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Parameters
    ----------
    target : str
        What must hold, or an empty string for a line that only informs.
    holds : bool or None
        None for a line without a target.
    """

    what: str
    target: str
    measured: str
    holds: bool | None = None


def best_of(
    run: Callable[[], object],
    seconds: float = 1.0,
    at_least: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Run again and again for some seconds; return the shortest time of one run, in seconds.

    The shortest, because other work on the machine can only make a run longer. By default it is processor time: with
    wall time, on a busy machine, a run of a few milliseconds finds an undisturbed moment and one of a second does not,
    which would flatter the faster side of a comparison. Give ``time.perf_counter`` where threads are the subject.
    """
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def in_new_process(code: str, *, python: str = sys.executable, **environment: str) -> str:
    """Run a piece of Python in a process of its own and return what it prints."""
    done = subprocess.run(
        [python, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"a measured process failed:\n{done.stderr}")
    return done.stdout


def use_compiled_pass() -> None:
    """Use the compiled kernels from the first call on, as a long session would after a while."""
    from safespn.engine import backends

    backends._State.loaded = True


def print_section(title: str, figures: Sequence[Figure], notes: Sequence[str] = ()) -> None:
    """Print one section as a table in Markdown."""
    verdict = {True: "yes", False: "**no**", None: ""}
    print(f"\n### {title}\n\n| figure | target | measured | holds |\n|---|---|---|---|")
    for figure in figures:
        print(f"| {figure.what} | {figure.target} | {figure.measured} | {verdict[figure.holds]} |")
    for note in notes:
        print(f"\n{note}")
    sys.stdout.flush()

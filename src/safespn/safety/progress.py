"""How far a fit has come: one record per pass over the rows, for whoever listens."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

RECENT = 5
"""Passes that the speed is an average of: the first ones may wait for compilers and for disks."""


@dataclass(frozen=True)
class PassRecord:
    """Where a fit is after a pass.

    Parameters
    ----------
    number, n_most : int
        Passes made by now, and at most; fits stop by themselves when they gain hardly any more.
    worst_cases : tuple of float
        Worst case of each network that is fitted, in nats: the best so far, of which the supervised model's, zero, is
        the least; of unguarded fits the last.
    rows_per_second : float
    seconds_left : float
        For the passes that are left at most.
    """

    number: int
    n_most: int
    worst_cases: tuple[float, ...]
    rows_per_second: float
    seconds_left: float

    @property
    def share(self) -> float:
        """Share of the passes that are made at most."""
        return self.number / self.n_most

    def __str__(self) -> str:
        values = ", ".join(f"{value:+.4g}" for value in self.worst_cases)
        return (
            f"pass {self.number} of at most {self.n_most}, W {values} nats, "
            f"{_with_unit(self.rows_per_second)} rows/s, at most {_duration(self.seconds_left)} left"
        )


Listener = Callable[[PassRecord], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a function after every pass that fits make in this block.

    Parameters
    ----------
    listener : callable
        Takes a :class:`PassRecord`. The functions of enclosing blocks are called, too.
    """
    outer = _LISTENER.get()

    def tell(record: PassRecord) -> None:
        listener(record)
        if outer is not None:
            outer(record)

    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class PassMonitor:
    """Times the passes of a fit and tells who listens.

    Parameters
    ----------
    n_rows : int
    n_most : int
        Passes at most.
    """

    def __init__(self, n_rows: int, n_most: int) -> None:
        self.n_rows, self.n_most = n_rows, n_most
        self._ends: deque[tuple[int, float]] = deque([(0, time.perf_counter())], maxlen=RECENT + 1)

    def tell(self, number: int, worst_cases: Sequence[float]) -> None:
        """Tell that so many passes have been made, unless that is known already."""
        if number <= self._ends[-1][0]:
            return
        self._ends.append((number, time.perf_counter()))
        listener = _LISTENER.get()
        if listener is None:
            return
        (first, started), (last, ended) = self._ends[0], self._ends[-1]
        seconds = max(ended - started, 1e-9) / (last - first)
        left = (self.n_most - number) * seconds
        listener(PassRecord(number, self.n_most, tuple(worst_cases), self.n_rows / seconds, left))


def _with_unit(value: float) -> str:
    for size, unit in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


def _duration(seconds: float) -> str:
    """Say a time in the two units that matter."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"

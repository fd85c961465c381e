"""Fits side by side: each asks for a pass over the rows and waits, and one pass serves all that wait."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from safespn.rows.blocks import PartitionedRows, PassRequest, PassResult

_Fit = TypeVar("_Fit")

Passes = Generator[PassRequest, PassResult, _Fit]
"""A fit that yields what it asks of the rows, is sent what came of it, and returns its result."""


def run_in_lockstep(
    rows: PartitionedRows, fits: Sequence[Passes[_Fit]], after_pass: Callable[[], None] = lambda: None
) -> list[_Fit]:
    """Run several fits of the same rows to their ends; there are as many passes as the longest of them needs.

    Parameters
    ----------
    after_pass : callable
        Called when every fit has seen what came of its request.
    """
    results: dict[int, _Fit] = {}
    waiting: dict[int, PassRequest] = {}

    def advance(number: int, result: PassResult | None) -> None:
        try:
            # What a generator is sent first is None.
            waiting[number] = fits[number].send(result)  # type: ignore[arg-type]
        except StopIteration as end:
            results[number] = end.value

    try:
        for number in range(len(fits)):
            advance(number, None)
        while waiting:
            asked = dict(waiting)
            waiting.clear()
            for number, result in zip(asked, rows.run_together(list(asked.values())), strict=True):
                advance(number, result)
            after_pass()
    finally:
        # If one fails, the others let go of what they hold.
        for fit in fits:
            fit.close()
    return [results[number] for number in range(len(fits))]

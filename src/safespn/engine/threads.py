"""Threads of the linear algebra libraries: one is best for the small matrices here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS from starting threads, which cost more than small products gain, most of all on a busy machine."""
    with _controller().limit(limits=1, user_api="blas"):
        yield

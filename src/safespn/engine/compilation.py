"""Compiled functions: kept in numba's cache on disk where there is a place for it, else in memory only."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


def compiled(function: Callable[..., Any]) -> Any:
    """Let numba compile a function when it is first called, once for every process if there is no cache on disk."""
    kernel = njit(nogil=True, error_model="numpy")(function)
    try:
        kernel._cache = _Cache(function)
    except RuntimeError as error:
        # What numba raises where it finds no folder: read-only systems, packages without files.
        _warn(error)
    return kernel


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache whose failures, such as a full disk or damaged files, are not errors."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # The index is a pickle: beside what a damaged one raises, one of an older version may name types that are
            # gone. It is written again; where it cannot be, saving will say so.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(error)


class _State:
    warned = False


def _warn(error: Exception) -> None:
    if not _State.warned:
        _State.warned = True
        warnings.warn(
            f"compiled code cannot be cached on disk ({error}): every process compiles again, for some ten seconds; "
            'set NUMBA_CACHE_DIR to a folder that can be written, or SAFESPN_ENGINE to "numpy"',
            RuntimeWarning,
            stacklevel=2,
        )

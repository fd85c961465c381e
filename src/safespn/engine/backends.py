"""Which pass runs: plain numpy at once, or compiled kernels where the work repays loading or compiling them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from safespn.engine import numpy_pass
from safespn.engine.bound import BoundNetwork, Features
from safespn.engine.evidence import Evidence, SoftLabelUpdate
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure
from safespn.typing import FloatArray

ENGINES = ("auto", "numpy", "compiled")
WORK_TO_LOAD = 5e7
"""Edges times rows above which loading kernels from numba's cache on disk (half a second) pays."""
WORK_TO_COMPILE = 1e9
"""Edges times rows above which compiling them (some ten seconds) pays."""
KERNEL_BLOCK = 96
"""Rows per block of the compiled kernel. In a table of 32 columns, so many rows fit into the smallest cache."""
ROWS_PER_CALL = 261 * KERNEL_BLOCK
"""About 25,000: each call costs a tenth of a millisecond, for much of which other threads wait. Rows in memory are
divided into blocks of this length."""
BLOCK_VALUES_PER_CALL = 3_200_000
"""Log densities of leaves of several columns, at most, that a call computes before the kernel reads them."""


class Backend(Protocol):
    """Both passes over one block of rows."""

    is_compiled: bool

    def block_rows(self, structure: Structure) -> int:
        """Return the number of rows to hand over at a time."""

    def log_likelihood(self, network: BoundNetwork, features: Features) -> FloatArray:
        """Log density of each row, shape (n_rows,)."""

    def log_joint(self, network: BoundNetwork, features: Features) -> FloatArray:
        """Log values of the root's edges, shape (n_rows, n_root_edges)."""

    def statistics(
        self, network: BoundNetwork, features: Features, evidence: Evidence, weights: FloatArray | None, hard: bool
    ) -> Statistics:
        """Expected statistics of the block."""

    def statistics_after_update(
        self,
        network: BoundNetwork,
        features: Features,
        update: SoftLabelUpdate,
        weights: FloatArray | None,
        log_joint: FloatArray,
        soft_labels: FloatArray,
    ) -> Statistics:
        """Expected statistics at the updated soft labels; they and the class joint are written to the last arrays."""


def choose(structure: Structure, n_rows: int, n_passes: int = 1) -> Backend:
    """Choose the pass for ``n_passes`` passes over ``n_rows`` rows.

    Once the kernels are in memory they are always used. Until then the work done in numpy is added up, so that many
    small calls bring the kernels in, too. A caller asks again before each of its passes: only one is added each time.
    """
    engine = _setting()
    if engine == "auto" and not _State.loaded:
        work = float(structure.n_terms + structure.n_edges) * n_rows
        enough = WORK_TO_LOAD if _compiled_before() else WORK_TO_COMPILE
        _State.loaded = _State.work_in_numpy + work * n_passes > enough
        _State.work_in_numpy += work
    if engine == "numpy" or not (engine == "compiled" or _State.loaded):
        return cast(Backend, numpy_pass)
    try:
        from safespn.engine import compiled_pass
    except ImportError as error:
        if engine == "compiled":
            raise
        warnings.warn(f"numba cannot be used, numpy takes its place: {error}", RuntimeWarning, stacklevel=2)
        _State.loaded, _State.work_in_numpy = False, float("-inf")
        return cast(Backend, numpy_pass)
    return cast(Backend, compiled_pass)


def is_compiled() -> bool:
    """Whether compiled kernels are in use: then other compiled functions pay, too."""
    return _setting() == "compiled" or (_setting() == "auto" and _State.loaded)


def may_compile() -> bool:
    """Whether code may be compiled at all, for callers that know what it saves them."""
    return _setting() != "numpy"


@contextmanager
def use_engine(engine: str) -> Iterator[None]:
    """Choose what computes, for all threads of this process, until the block ends.

    The environment variable ``SAFESPN_ENGINE`` does the same for whole processes, such as workers of Dask. Both engines
    give equal results to rounding.

    Parameters
    ----------
    engine : {"auto", "numpy", "compiled"}
        "numpy" never loads or compiles anything, "compiled" always does; "auto", which is what happens without a
        choice, goes from the former to the latter when there has been enough work to repay it.

    Examples
    --------
    >>> import safespn
    >>> with safespn.use_engine("numpy"):
    ...     safespn.SPN(safespn.Gaussian(0, mean=0, variance=1)).log_likelihood([[0.0]]).round(3)
    array([-0.919])
    """
    before = _State.engine
    _State.engine = _checked(engine, "use_engine")
    try:
        yield
    finally:
        _State.engine = before


class _State:
    engine: str | None = None
    loaded = False
    work_in_numpy = 0.0


def _setting() -> str:
    if _State.engine is None:
        return _checked(os.environ.get("SAFESPN_ENGINE", "auto"), "SAFESPN_ENGINE")
    return _State.engine


def _checked(engine: str, source: str) -> str:
    if engine not in ENGINES:
        raise ValueError(f"{source}: expected one of {', '.join(map(repr, ENGINES))}, got {engine!r}")
    return engine


@cache
def _compiled_before() -> bool:
    """Look for compiled kernels where numba would: in the folder that the user set, else next to this file."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__"
    return any(Path(folder).rglob("kernels.run-*.nbi"))

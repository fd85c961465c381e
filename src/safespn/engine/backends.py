"""Which pass runs: plain numpy at once, or compiled kernels where the work repays loading or compiling them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from safespn.engine import numpy_pass
from safespn.engine.bound import BoundNetwork
from safespn.engine.evidence import Evidence, Response
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure
from safespn.typing import FloatArray

WORK_TO_LOAD = 5e7
"""Edges times rows above which loading kernels from numba's cache on disk (half a second) pays."""
WORK_TO_COMPILE = 1e9
"""Edges times rows above which compiling them (some ten seconds) pays."""


class Backend(Protocol):
    """Both passes over one block of rows."""

    releases_gil: bool

    def block_rows(self, structure: Structure) -> int:
        """Return the number of rows to hand over at a time."""

    def log_likelihood(self, network: BoundNetwork, features: FloatArray) -> FloatArray:
        """Log density of each row, shape (n_rows,)."""

    def log_joint(self, network: BoundNetwork, features: FloatArray) -> FloatArray:
        """Log values of the root's edges, shape (n_rows, n_root_edges)."""

    def statistics(
        self, network: BoundNetwork, features: FloatArray, evidence: Evidence, weights: FloatArray | None, hard: bool
    ) -> Statistics:
        """Expected statistics of the block."""

    def respond(
        self, network: BoundNetwork, features: FloatArray, response: Response, weights: FloatArray | None
    ) -> tuple[Statistics, FloatArray, FloatArray]:
        """Expected statistics at soft labels that answer the class joint; the class joint; those soft labels."""


def choose(structure: Structure, n_rows: int, n_passes: int = 1) -> Backend:
    """Choose the pass for ``n_passes`` passes over ``n_rows`` rows.

    Once the kernels are in memory they are always used. Until then the work done in numpy is added up, so that many
    small calls bring the kernels in, too. A caller asks again before each of its passes: only one is added each time.
    """
    if not _State.loaded:
        work = float(structure.n_terms + structure.n_edges) * n_rows
        enough = WORK_TO_LOAD if _compiled_before() else WORK_TO_COMPILE
        _State.loaded = _State.work_in_numpy + work * n_passes > enough
        _State.work_in_numpy += work
    if not _State.loaded:
        return cast(Backend, numpy_pass)
    from safespn.engine import compiled_pass

    return cast(Backend, compiled_pass)


def is_loaded() -> bool:
    """Whether the compiled kernels are in memory: then other compiled functions pay, too."""
    return _State.loaded


class _State:
    loaded = False
    work_in_numpy = 0.0


@cache
def _compiled_before() -> bool:
    """Look for compiled kernels where numba would: in the folder that the user set, else next to this file."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__"
    return any(Path(folder).rglob("kernels.run-*.nbi"))

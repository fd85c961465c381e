"""Which pass runs: plain numpy at once, or compiled kernels where the work repays loading or compiling them."""

from __future__ import annotations

from typing import Protocol

from safespn.engine import numpy_pass
from safespn.engine.bound import BoundNetwork
from safespn.engine.evidence import Evidence
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure
from safespn.typing import FloatArray


class Backend(Protocol):
    """Both passes over one block of rows."""

    releases_gil: bool

    def block_rows(self, structure: Structure) -> int:
        """Return the number of rows to hand over at a time."""

    def log_joint(self, network: BoundNetwork, features: FloatArray) -> FloatArray:
        """Log values of the root's edges, shape (n_rows, n_root_edges)."""

    def statistics(
        self, network: BoundNetwork, features: FloatArray, evidence: Evidence, weights: FloatArray | None, hard: bool
    ) -> Statistics:
        """Expected statistics of the block."""


class NumpyBackend:
    """Plain numpy: ready at once, and the reference for the compiled pass."""

    releases_gil = False

    def block_rows(self, structure: Structure) -> int:
        return numpy_pass.block_rows(structure)

    def log_joint(self, network: BoundNetwork, features: FloatArray) -> FloatArray:
        return numpy_pass.upward(network, features).joint.T

    def statistics(
        self, network: BoundNetwork, features: FloatArray, evidence: Evidence, weights: FloatArray | None, hard: bool
    ) -> Statistics:
        return numpy_pass.statistics(network, features, evidence, weights, hard)


_NUMPY = NumpyBackend()


def choose(structure: Structure, n_rows: int, n_passes: int = 1) -> Backend:
    """Choose the pass for ``n_passes`` passes over ``n_rows`` rows."""
    return _NUMPY

"""Poisson leaves: a column of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from safespn.network.columns import COUNTS, Domain
from safespn.network.leaves.family import LeafPrior, Leaves, Linear, Term, UnivariateFamily
from safespn.network.nodes import UnivariateLeaf, check_column
from safespn.typing import FloatArray

SMALLEST_RATE = 1e-12
"""A leaf that saw only zeros keeps this rate, so that a later count is improbable rather than impossible."""


def _log_factorial(count: FloatArray) -> FloatArray:
    return np.asarray(gammaln(count + 1))


class PoissonFamily(UnivariateFamily):
    """Parameter: rate. Unconstrained parameter: log rate."""

    name = "Poisson"
    features = (None, _log_factorial)

    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        return (COUNTS,)

    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> Poisson:
        return Poisson(columns[0], rate=parameters[0])

    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        rate = parameters[:, 0]
        base_measure = Linear(slope=-np.ones_like(rate), constant=np.zeros_like(rate), feature=1)
        return (Linear(slope=np.log(rate), constant=-rate), base_measure)

    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        flow, total = statistics[0].T
        rate = np.divide(total, flow, out=parameters[:, 0].copy(), where=flow > 0)
        return np.asarray(np.maximum(rate, SMALLEST_RATE)[:, None])

    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        counts = np.column_stack([np.ones(len(source)), source[:, 0]])
        return (counts, np.zeros_like(counts))

    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        return np.asarray(source[:, 0] * np.log(parameters[:, 0]) - parameters[:, 0])

    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        return np.asarray(np.log(parameters))

    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(np.exp(free), SMALLEST_RATE))

    def unconstrained_lower_bound(self, free: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        return np.full_like(free, math.log(SMALLEST_RATE))

    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        flow, total = statistics[0].T
        return np.asarray((total - parameters[:, 0] * flow)[:, None])

    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        return len(leaves.columns)

    def mode(self, parameters: FloatArray) -> FloatArray:
        return np.floor(parameters[:, 0])

    def draw(self, parameters: FloatArray, generator: np.random.Generator) -> FloatArray:
        return generator.poisson(parameters[:, 0]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Poisson(UnivariateLeaf):
    """A Poisson distribution of one column of counts.

    Parameters
    ----------
    column : int
    rate : float
        The mean count, positive.
    """

    column: int
    rate: float
    family: ClassVar[PoissonFamily] = PoissonFamily()

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", check_column("Poisson", self.column))
        object.__setattr__(self, "rate", float(self.rate))
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"Poisson on column {self.column}: the rate must be finite and positive, got {self.rate}")

    def __repr__(self) -> str:
        return f"Poisson({self.column}, rate={self.rate:.4g})"

    @property
    def parameters(self) -> FloatArray:
        return np.array([self.rate])

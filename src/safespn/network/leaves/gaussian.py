"""Gaussian leaves: a column of real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from safespn.network.columns import REAL, Domain
from safespn.network.leaves.family import LeafPrior, Leaves, Square, Term, UnivariateFamily
from safespn.network.nodes import UnivariateLeaf, check_column
from safespn.typing import FloatArray

SMALLEST_VARIANCE = 1e-300
LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


class GaussianFamily(UnivariateFamily):
    """Parameters: mean, variance. Unconstrained parameters: mean, log variance."""

    name = "Gaussian"

    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        return (REAL,)

    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> Gaussian:
        return Gaussian(columns[0], mean=parameters[0], variance=parameters[1])

    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        mean, variance = parameters.T
        return (Square(centre=mean, scale=1 / np.sqrt(variance), constant=-0.5 * np.log(2 * math.pi * variance)),)

    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        # The statistics are in units of the present mean and deviation, so that neither large values nor tiny variances
        # cancel digits.
        flow, first, second = statistics[0].T
        mean, variance = parameters.T
        reached = flow > 0
        first = np.divide(first, flow, out=np.zeros_like(first), where=reached)
        second = np.divide(second, flow, out=np.ones_like(second), where=reached)
        new_mean = mean + np.sqrt(variance) * first
        new_variance = variance * np.maximum(second - first**2, 0.0)
        floor = np.maximum(prior.min_variance_of(leaves.columns[:, 0]), SMALLEST_VARIANCE)
        return np.column_stack([new_mean, np.maximum(new_variance, floor)])

    def recentred(self, statistics: Sequence[FloatArray], old: FloatArray, new: FloatArray) -> Sequence[FloatArray]:
        flow, first, second = statistics[0].T
        ratio, shift = np.sqrt(old[:, 1] / new[:, 1]), (old[:, 0] - new[:, 0]) / np.sqrt(new[:, 1])
        moved = ratio * first + shift * flow
        return (np.column_stack([flow, moved, ratio**2 * second + 2 * ratio * shift * first + shift**2 * flow]),)

    def constrain(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        return np.column_stack(
            [parameters[:, 0], np.maximum(parameters[:, 1], prior.min_variance_of(leaves.columns[:, 0]))]
        )

    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        shift = (source[:, 0] - parameters[:, 0]) / np.sqrt(parameters[:, 1])
        return (np.column_stack([np.ones(len(source)), shift, source[:, 1] / parameters[:, 1] + shift**2]),)

    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        (statistics,) = self.expected_statistics(source, parameters)
        return np.asarray(-0.5 * (np.log(parameters[:, 1]) + statistics[:, 2]))

    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        return np.column_stack([parameters[:, 0], np.log(parameters[:, 1])])

    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        return np.column_stack([free[:, 0], np.maximum(np.exp(free[:, 1]), SMALLEST_VARIANCE)])

    def unconstrained_lower_bound(self, free: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        floor = np.maximum(prior.min_variance_of(leaves.columns[:, 0]), SMALLEST_VARIANCE)
        return np.column_stack([np.full(len(free), -np.inf), np.log(floor)])

    def unconstrained_scale(self, parameters: FloatArray) -> FloatArray:
        return np.column_stack([np.sqrt(parameters[:, 1]), np.ones(len(parameters))])

    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        flow, first, second = statistics[0].T
        return np.column_stack([first / np.sqrt(parameters[:, 1]), (second - flow) / 2])

    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        return len(leaves.columns) * 2

    def mode(self, parameters: FloatArray) -> FloatArray:
        return parameters[:, 0]

    def draw(self, parameters: FloatArray, generator: np.random.Generator) -> FloatArray:
        return generator.normal(parameters[:, 0], np.sqrt(parameters[:, 1]))


@dataclass(frozen=True, eq=False)
class Gaussian(UnivariateLeaf):
    """A normal distribution of one column.

    Parameters
    ----------
    column : int
    mean : float
    variance : float
        Positive, in the squared unit of the column.
    """

    column: int
    mean: float
    variance: float
    family: ClassVar[GaussianFamily] = GaussianFamily()

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", check_column("Gaussian", self.column))
        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "variance", float(self.variance))
        if not math.isfinite(self.mean):
            raise ValueError(f"Gaussian on column {self.column}: the mean must be finite, got {self.mean}")
        if not (math.isfinite(self.variance) and self.variance > 0):
            raise ValueError(
                f"Gaussian on column {self.column}: the variance must be finite and positive, got {self.variance}"
            )

    def __repr__(self) -> str:
        return f"Gaussian({self.column}, mean={self.mean:.4g}, variance={self.variance:.4g})"

    @property
    def parameters(self) -> FloatArray:
        return np.array([self.mean, self.variance])

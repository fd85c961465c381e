"""Categorical leaves: a column of integer codes. An indicator is a categorical with one certain state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax, xlogy

from safespn.network.columns import Domain
from safespn.network.leaves.family import LeafPrior, Leaves, Table, Term, UnivariateFamily
from safespn.network.nodes import UnivariateLeaf, check_column
from safespn.typing import FloatArray


class CategoricalFamily(UnivariateFamily):
    """Parameters: one probability per state. Unconstrained parameters: logits."""

    name = "Categorical"

    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        return (Domain("codes", parameters.size),)

    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> Categorical:
        return Categorical(columns[0], parameters.tolist())

    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        with np.errstate(divide="ignore"):
            return (Table(np.log(parameters)),)

    def flow_of(self, statistics: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(statistics[0].sum(axis=1))

    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        counts = statistics[0] + prior.category_prior
        total = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, total, out=parameters.copy(), where=total > 0))

    def log_prior(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> float:
        return float(xlogy(prior.category_prior, parameters).sum())

    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        return (source,)

    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        return np.asarray(xlogy(source, parameters).sum(axis=1))

    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(parameters))

    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        return np.asarray(softmax(free, axis=1))

    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        counts = statistics[0] + prior.category_prior
        return np.asarray(counts - parameters * counts.sum(axis=1, keepdims=True))

    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        return int(parameters.size) - len(parameters)

    def mode(self, parameters: FloatArray) -> FloatArray:
        return np.asarray(parameters.argmax(axis=1), dtype=np.float64)

    def draw(self, parameters: FloatArray, generator: np.random.Generator) -> FloatArray:
        cumulative = parameters.cumsum(axis=1)
        threshold = generator.random((len(parameters), 1)) * cumulative[:, -1:]
        return np.asarray((cumulative <= threshold).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Categorical(UnivariateLeaf):
    """A distribution over the codes 0, 1, ..., of one column.

    Parameters
    ----------
    column : int
    probabilities : sequence of floats
        One per state, non-negative, adding up to one. ``[0, 1]`` is the indicator of state 1.
    """

    column: int
    probabilities: tuple[float, ...]
    family: ClassVar[CategoricalFamily] = CategoricalFamily()

    def __init__(self, column: int, probabilities: Sequence[float]) -> None:
        object.__setattr__(self, "column", check_column("Categorical", column))
        object.__setattr__(self, "probabilities", tuple(float(probability) for probability in probabilities))
        values = self.parameters
        if values.size == 0:
            raise ValueError(f"Categorical on column {self.column}: expected at least one probability, got none")
        if not (np.isfinite(values).all() and (values >= 0).all() and abs(values.sum() - 1) < 1e-8):
            raise ValueError(
                f"Categorical on column {self.column}: probabilities must be non-negative and add up to one, "
                f"got {list(self.probabilities)} (total {values.sum():g})"
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{probability:.3g}" for probability in self.probabilities[:8])
        return f"Categorical({self.column}, [{shown}{', ...' if len(self.probabilities) > 8 else ''}])"

    @property
    def parameters(self) -> FloatArray:
        return np.array(self.probabilities, dtype=np.float64)

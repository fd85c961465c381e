"""What every leaf family supplies: a log density made of terms, an EM update, a gradient, draws.

The engine never looks at a family. It knows three kinds of *terms*, and a leaf's log density is a sum of such terms:

========  =====================================  ==========================================
kind      adds to the log density                expected statistics per leaf (flow ``f``)
========  =====================================  ==========================================
Square    ``constant - z**2 / 2``,               ``sum f``, ``sum f z``, ``sum f z**2``
          ``z = (x - centre) * scale``
Linear    ``constant + slope * x``               ``sum f``, ``sum f x``
Table     ``values[x]``                          ``sum f`` for each value of ``x``
========  =====================================  ==========================================

``x`` is the leaf's column or a feature derived from it. Exponential families of one column are sums of such terms, so a
new family is one file like its neighbours here, and no engine code changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from safespn.network.columns import Domain
from safespn.network.nodes import Leaf
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Square:
    """``constant - z**2 / 2`` with ``z = (x - centre) * scale``; arrays of shape (n_leaves,)."""

    centre: FloatArray
    scale: FloatArray
    constant: FloatArray
    feature: int = 0


@dataclass(frozen=True)
class Linear:
    """``constant + slope * x``; arrays of shape (n_leaves,)."""

    slope: FloatArray
    constant: FloatArray
    feature: int = 0


@dataclass(frozen=True)
class Table:
    """``values[leaf, x]``; an array of shape (n_leaves, n_states)."""

    values: FloatArray
    feature: int = 0


Term: TypeAlias = Square | Linear | Table


@dataclass(frozen=True)
class LeafPrior:
    """What keeps leaves away from degenerate parameters while they are learned.

    Parameters
    ----------
    variance_floor : float or array of shape (n_columns,)
        Lower bound of a Gaussian leaf's variance, in the squared unit of its column.
    category_prior : float
        Pseudo-count of every state of a categorical leaf: a Dirichlet prior with concentration ``1 + category_prior``.
    """

    variance_floor: float | FloatArray = 0.0
    category_prior: float = 0.0

    def variance_floor_of(self, columns: IntArray) -> FloatArray:
        """Return the variance floor of each of ``columns``."""
        floor = np.asarray(self.variance_floor, dtype=np.float64)
        return np.broadcast_to(floor, columns.shape) if floor.ndim == 0 else floor[columns]


class LeafFamily(ABC):
    """All leaves of one kind at once; ``parameters`` has one row per leaf, shape (n_leaves, n_parameters)."""

    name: ClassVar[str]
    features: ClassVar[tuple[Callable[[FloatArray], FloatArray] | None, ...]] = (None,)
    """What the terms see: None for the column itself, or a function that derives a feature from it."""

    @abstractmethod
    def domain(self, n_parameters: int) -> Domain:
        """Return the values that a column of such a leaf may take."""

    @abstractmethod
    def node(self, column: int, parameters: FloatArray) -> Leaf:
        """Describe one leaf by a node again, given its row of parameters."""

    @abstractmethod
    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        """Write the log density as a sum of terms."""

    @abstractmethod
    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, columns: IntArray, prior: LeafPrior
    ) -> FloatArray:
        """Maximise the expected log-likelihood (plus log prior) given the terms' statistics; the M-step.

        A leaf that no row reaches keeps its parameters.
        """

    def constrain(self, parameters: FloatArray, columns: IntArray, prior: LeafPrior) -> FloatArray:
        """Move parameters that break the prior's hard bounds on to the bound."""
        return parameters

    def log_prior(self, parameters: FloatArray, prior: LeafPrior) -> float:
        """Log density of the prior, up to a constant."""
        return 0.0

    @abstractmethod
    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Map parameters to coordinates without equality constraints, shape (n_leaves, n_free)."""

    @abstractmethod
    def from_free(self, free: FloatArray) -> FloatArray:
        """Invert :meth:`to_free`."""

    def free_lower_bound(self, free: FloatArray, columns: IntArray, prior: LeafPrior) -> FloatArray:
        """Return the lower bound of each free coordinate, minus infinity where there is none."""
        return np.full_like(free, -np.inf)

    def free_scale(self, parameters: FloatArray) -> FloatArray:
        """Return a natural step size for each free coordinate, for gradient fits; one for logarithms and logits."""
        return np.ones_like(self.to_free(parameters))

    @abstractmethod
    def gradient(self, statistics: Sequence[FloatArray], parameters: FloatArray, prior: LeafPrior) -> FloatArray:
        """Gradient of the log-likelihood plus log prior in the free coordinates, shape (n_leaves, n_free)."""

    @abstractmethod
    def degrees_of_freedom(self, n_parameters: int) -> int:
        """Return the number of independent parameters of one leaf."""

    @abstractmethod
    def mode(self, parameters: FloatArray) -> FloatArray:
        """Return the most probable value of each leaf, shape (n_leaves,)."""

    @abstractmethod
    def draw(self, parameters: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Draw one value for each row of ``parameters``."""

    def log_density(self, parameters: FloatArray, values: FloatArray) -> FloatArray:
        """Log density of one value per leaf, from the terms; shape (n_leaves,)."""
        total = np.zeros(len(parameters))
        for term in self.terms(parameters):
            derive = self.features[term.feature]
            x = values if derive is None else derive(values)
            if isinstance(term, Square):
                total += term.constant - 0.5 * ((x - term.centre) * term.scale) ** 2
            elif isinstance(term, Linear):
                total += term.constant + term.slope * x
            else:
                total += term.values[np.arange(len(x)), x.astype(np.intp)]
        return total

"""What every leaf family supplies: a log density made of terms, an EM update, a gradient, draws.

The engine never looks at a family. It knows a few kinds of *terms*, and a leaf's log density is a sum of such terms:

========  =====================================  ==========================================
kind      adds to the log density                expected statistics per leaf (flow ``f``)
========  =====================================  ==========================================
Square    ``constant - z**2 / 2``,               ``sum f``, ``sum f z``, ``sum f z**2``
          ``z = (x - centre) * scale``
Linear    ``constant + slope * x``               ``sum f``, ``sum f x``
Table     ``values[x]``                          ``sum f`` for each value of ``x``
Block     what the family computes itself        what the family computes itself
========  =====================================  ==========================================

``x`` is the leaf's column or a feature derived from it. Exponential families of one column are sums of such terms, so a
new family is one file like its neighbours here, and no engine code changes. A block serves leaves of several columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeAlias

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


class Gaussians(NamedTuple):
    """Multivariate normal densities ``constant - z'z / 2`` with ``z = whitening (x - mean)``.

    Parameters
    ----------
    mean : array of shape (n_leaves, n_columns)
    whitening : array of shape (n_leaves, n_columns, n_columns)
        Lower triangles.
    constant : array of shape (n_leaves,)
    """

    mean: FloatArray
    whitening: FloatArray
    constant: FloatArray


@dataclass(frozen=True)
class Block:
    """A log density of several columns, computed by the family for all its leaves at once.

    Parameters
    ----------
    log_density : callable
        From cells (n_leaves, n_rows, n_columns) to (n_leaves, n_rows); its second argument says whether missing cells
        take their most probable values instead of being marginalised.
    statistics : callable
        From cells and flow (n_leaves, n_rows) to expected statistics, one row per leaf.
    gaussians : Gaussians or None
        What the leaves are, if they are Gaussian and compiled code is the faster way to them: then the engine may
        compute the same for complete rows, with ``sum f``, ``sum f z`` and ``sum f z z'`` as statistics.
    """

    log_density: Callable[[FloatArray, bool], FloatArray]
    statistics: Callable[[FloatArray, FloatArray], FloatArray]
    gaussians: Gaussians | None = None
    feature: int = 0


Term: TypeAlias = Square | Linear | Table | Block


@dataclass(frozen=True, eq=False)
class Leaves:
    """Which columns the leaves of a group model, and which leaves share parameters.

    Parameters
    ----------
    columns : array of shape (n_leaves, n_columns)
    tie : array of shape (n_leaves,)
        Leaves with equal entries share what their family lets them share.
    """

    columns: IntArray
    tie: IntArray

    @cached_property
    def first_of_tie(self) -> IntArray:
        """One leaf of every set that shares."""
        return np.unique(self.tie, return_index=True)[1]

    @cached_property
    def size_of_tie(self) -> IntArray:
        """Number of leaves that share with each leaf, itself included."""
        return np.asarray(np.bincount(self.tie)[self.tie])

    def sum_over_ties(self, values: FloatArray) -> FloatArray:
        """Replace each leaf's entry by the sum over the leaves that share with it."""
        totals = np.zeros((int(self.tie.max()) + 1, *values.shape[1:]))
        np.add.at(totals, self.tie, values)
        return np.asarray(totals[self.tie])

    def mean_over_ties(self, values: FloatArray) -> FloatArray:
        """Replace each leaf's entry by the mean over the leaves that share with it."""
        return self.sum_over_ties(values) / self.size_of_tie.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True)
class LeafPrior:
    """What keeps leaves away from degenerate parameters while they are learned.

    Parameters
    ----------
    min_variance : float or array of shape (n_columns,)
        Lower bound of a Gaussian leaf's variance, in the squared unit of its column.
    category_prior : float
        Pseudo-count of every state of a categorical leaf and of every box of a density tree: a Dirichlet prior with
        concentration ``1 + category_prior``.
    covariance_prior : float
        Pseudo-count of rows with covariance ``covariance_target`` that a multivariate Gaussian leaf sees besides its
        own.
    covariance_target : array of shape (n_columns, n_columns) or (n_columns,), optional
        Covariance that multivariate Gaussian leaves are pulled towards, or its diagonal if nothing else is in it; the
        identity if not given.
    """

    min_variance: float | FloatArray = 0.0
    category_prior: float = 0.0
    covariance_prior: float = 0.0
    covariance_target: FloatArray | None = None

    def min_variance_of(self, columns: IntArray) -> FloatArray:
        """Return the variance floor of each of ``columns``."""
        floor = np.asarray(self.min_variance, dtype=np.float64)
        return np.broadcast_to(floor, columns.shape) if floor.ndim == 0 else floor[columns]

    def covariance_target_of(self, columns: IntArray) -> FloatArray:
        """Return the target for each leaf over ``columns`` (n_leaves, d), shape (n_leaves, d, d)."""
        if self.covariance_target is None:
            return np.broadcast_to(np.eye(columns.shape[1]), (*columns.shape, columns.shape[1]))
        if self.covariance_target.ndim == 1:
            return np.eye(columns.shape[1]) * self.covariance_target[columns][:, :, None]
        return self.covariance_target[columns[:, :, None], columns[:, None, :]]


class LeafFamily(ABC):
    """All leaves of one kind at once; ``parameters`` has one row per leaf, shape (n_leaves, n_parameters)."""

    name: ClassVar[str]
    features: ClassVar[tuple[Callable[[FloatArray], FloatArray] | None, ...]] = (None,)
    """What the terms see: None for the column itself, or a function that derives a feature from it."""

    @abstractmethod
    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        """Return the values that each column of a leaf may take, given the leaf's row of parameters."""

    @abstractmethod
    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> Leaf:
        """Describe one leaf by a node again, given its row of parameters."""

    @abstractmethod
    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        """Write the log density as a sum of terms."""

    def flow_of(self, statistics: Sequence[FloatArray]) -> FloatArray:
        """Return the number of rows that reached each leaf, shape (n_leaves,)."""
        return statistics[0][:, 0]

    @abstractmethod
    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        """Maximise the expected log-likelihood (plus log prior) given the terms' statistics; the M-step.

        A leaf that no row reaches keeps its parameters.
        """

    def recentred(self, statistics: Sequence[FloatArray], old: FloatArray, new: FloatArray) -> Sequence[FloatArray]:
        """Return the terms' statistics relative to ``new`` parameters instead of ``old`` ones.

        The same for families whose statistics do not depend on parameters, as those of linear and table terms.
        """
        return statistics

    def constrain(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        """Move parameters that break the prior's hard bounds on to the bound."""
        return parameters

    def log_prior(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> float:
        """Log density of the prior, up to a constant."""
        return 0.0

    @abstractmethod
    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        """Statistics, at ``parameters``, of one row per leaf that is distributed as that leaf at ``source``."""

    @abstractmethod
    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        """Mean log density at ``parameters`` of rows distributed as at ``source``, up to a constant."""

    @abstractmethod
    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        """Map parameters to coordinates without equality constraints, shape (n_leaves, n_unconstrained)."""

    @abstractmethod
    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        """Invert :meth:`to_unconstrained`; parameters that are not learned are those of ``origin``."""

    def unconstrained_lower_bound(self, free: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        """Return the lower bound of each unconstrained parameter, minus infinity where there is none."""
        return np.full_like(free, -np.inf)

    def unconstrained_scale(self, parameters: FloatArray) -> FloatArray:
        """Return a natural step size of each unconstrained parameter for gradients; one for logarithms and logits."""
        return np.ones_like(self.to_unconstrained(parameters))

    @abstractmethod
    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        """Gradient of log-likelihood plus log prior in unconstrained parameters, shape (n_leaves, n_unconstrained)."""

    @abstractmethod
    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        """Return the number of independent parameters of the leaves together."""

    @abstractmethod
    def complete(
        self, parameters: FloatArray, which: IntArray, cells: FloatArray, generator: np.random.Generator | None
    ) -> FloatArray:
        """Fill missing cells with their most probable values, or with draws if there is a ``generator``.

        Row i of ``cells``, shape (n_rows, n_columns), belongs to leaf ``which[i]``; observed cells condition the
        missing ones.
        """

    def log_density(self, parameters: FloatArray, values: FloatArray) -> FloatArray:
        """Log density of one row of cells per leaf, ``values`` of shape (n_leaves, n_columns); shape (n_leaves,)."""
        return self.log_density_of_cells(parameters, values[:, 0])

    def log_density_of_cells(self, parameters: FloatArray, cells: FloatArray) -> FloatArray:
        """Log density of leaves of one column; ``cells`` has shape (..., n_leaves), as has the result."""
        total = np.zeros(cells.shape)
        for term in self.terms(parameters):
            derive = self.features[term.feature]
            x = cells if derive is None else derive(cells)
            if isinstance(term, Square):
                total += term.constant - 0.5 * ((x - term.centre) * term.scale) ** 2
            elif isinstance(term, Linear):
                total += term.constant + term.slope * x
            elif isinstance(term, Table):
                total += term.values[np.arange(x.shape[-1]), x.astype(np.intp)]
        return total


class UnivariateFamily(LeafFamily):
    """A family of leaves of one column, completed by their mode or by independent draws."""

    @abstractmethod
    def mode(self, parameters: FloatArray) -> FloatArray:
        """Return the most probable value of each leaf, shape (n_leaves,)."""

    @abstractmethod
    def draw(self, parameters: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Draw one value for each row of ``parameters``."""

    def complete(
        self, parameters: FloatArray, which: IntArray, cells: FloatArray, generator: np.random.Generator | None
    ) -> FloatArray:
        reached = parameters[which]
        return (self.mode(reached) if generator is None else self.draw(reached, generator))[:, None]

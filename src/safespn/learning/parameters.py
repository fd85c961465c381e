"""From statistics to parameters: the M-step, the gradient in unconstrained parameters, and the prior they share."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import xlogy

from safespn.engine.statistics import Statistics
from safespn.engine.threads import single_threaded_blas
from safespn.network.leaves.family import LeafPrior
from safespn.network.structure import Parameters, Structure
from safespn.typing import AnyArray, FloatArray

LEAST_SHARE = 1e-16
"""Leaves keep at least this share of their column's variance, asked for or not: deviations of 1e-8 of the column's."""
ROWS_FOR_VARIANCES = 65_536
SMALLEST_LOGIT = -700.0
"""Weights and probabilities of zero get this logit: gradient fits work with finite numbers."""


@dataclass(frozen=True, eq=False)
class PseudoDataPrior:
    """A prior made of pseudo-data: as if, besides the real rows, some more had come from a known network.

    Parameters
    ----------
    parameters : Parameters
        The known network's.
    edge_counts : array of shape (n_edges,)
        Pseudo-rows that pass through each edge of a sum.
    leaf_counts : tuple of arrays of shape (n_leaves,)
        Pseudo-rows that reach each leaf, for each leaf group.
    """

    parameters: Parameters
    edge_counts: FloatArray
    leaf_counts: tuple[FloatArray, ...]

    def scaled(self, share: float) -> PseudoDataPrior:
        """Return the prior with a share of its pseudo-rows."""
        return PseudoDataPrior(
            self.parameters, self.edge_counts * share, tuple(counts * share for counts in self.leaf_counts)
        )


@dataclass(frozen=True, eq=False)
class Prior:
    """Priors and bounds that learning respects.

    Parameters
    ----------
    weight_prior : float or array of shape (n_edges,)
        Pseudo-count of every edge of a sum: a Dirichlet prior with concentration ``1 + weight_prior``.
    leaves : LeafPrior
        Variance floor and pseudo-counts of the leaves.
    pseudo_data : PseudoDataPrior or None
        Pseudo-data from a known network.
    """

    weight_prior: float | FloatArray = 0.0
    leaves: LeafPrior = field(default_factory=LeafPrior)
    pseudo_data: PseudoDataPrior | None = None

    def scaled(self, share: float) -> Prior:
        """Return the prior that goes with a share of the rows: pseudo-counts shrink, bounds stay."""
        leaves = replace(
            self.leaves,
            category_prior=self.leaves.category_prior * share,
            covariance_prior=self.leaves.covariance_prior * share,
        )
        return Prior(self.weight_prior * share, leaves, self.pseudo_data and self.pseudo_data.scaled(share))

    def edge_counts(self) -> FloatArray | float:
        """Pseudo-counts of the edges, from the weight prior and the pseudo-data."""
        return self.weight_prior if self.pseudo_data is None else self.weight_prior + self.pseudo_data.edge_counts

    def leaf_statistics(
        self, structure: Structure, parameters: Parameters, statistics: Statistics, index: int
    ) -> list[FloatArray]:
        """Statistics of one leaf group with those of the pseudo-data added."""
        real = statistics.of_group(structure, index)
        if self.pseudo_data is None:
            return real
        source, counts = self.pseudo_data.parameters.leaves[index], self.pseudo_data.leaf_counts[index][:, None]
        pseudo = structure.groups[index].family.expected_statistics(source, parameters.leaves[index])
        return [ours + counts * theirs for ours, theirs in zip(real, pseudo, strict=True)]


def least_variances(table: AnyArray, weights: FloatArray | None, floor: float | FloatArray) -> FloatArray:
    """Lower bound of each column's variances: what the caller asks for, and what keeps a leaf from collapsing.

    A leaf that sees the same value again and again would become ever narrower. It stays above a share of its column's
    variance, of some rows, or of the smallest variance that digits of its values can tell from zero.
    """
    rows = np.arange(len(table)) if weights is None else np.nonzero(weights > 0)[0]
    some = np.asarray(table[rows[:: -(-len(rows) // ROWS_FOR_VARIANCES)]], dtype=np.float64)
    observed = ~np.isnan(some)
    count = np.maximum(observed.sum(axis=0), 1)
    largest = np.abs(np.where(observed, some, 0.0)).max(axis=0)
    # In units of the largest value, so that no mean or square leaves the range of floating point.
    unit = np.where(largest > 0, largest, 1.0)
    scaled = np.where(observed, some / unit, 0.0)
    spread = np.where(observed, scaled - scaled.sum(axis=0) / count, 0.0)
    relative = np.maximum((spread**2).sum(axis=0) / count, LEAST_SHARE)
    return np.maximum(floor, np.where(largest > 0, LEAST_SHARE * relative * unit**2, 0.0))


def m_step(structure: Structure, parameters: Parameters, statistics: Statistics, prior: Prior) -> Parameters:
    """Maximise the expected log-likelihood plus log prior; what no row reaches keeps its parameters."""
    flow = statistics.edge_flow + prior.edge_counts()
    total = structure.sum_over_edges(flow)[structure.edge_sum]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.where(total > 0, np.log(flow) - np.log(total), parameters.log_weights)
    with single_threaded_blas() if structure.block.n_slots else nullcontext():
        leaves = tuple(
            group.family.update(
                prior.leaf_statistics(structure, parameters, statistics, index),
                parameters.leaves[index],
                group.leaves,
                prior.leaves,
            )
            for index, group in enumerate(structure.groups)
        )
    return Parameters(log_weights, leaves)


def constrain(structure: Structure, parameters: Parameters, prior: Prior) -> Parameters:
    """Move leaf parameters that break the prior's bounds on to the bounds."""
    leaves = tuple(
        group.family.constrain(values, group.leaves, prior.leaves)
        for group, values in zip(structure.groups, parameters.leaves, strict=True)
    )
    return Parameters(parameters.log_weights, leaves)


def log_prior(structure: Structure, parameters: Parameters, prior: Prior) -> float:
    """Log density of the prior at ``parameters``, up to a constant."""
    total = float(xlogy(prior.edge_counts(), np.exp(parameters.log_weights)).sum())
    for index, (group, values) in enumerate(zip(structure.groups, parameters.leaves, strict=True)):
        total += group.family.log_prior(values, group.leaves, prior.leaves)
        if prior.pseudo_data is not None:
            source, counts = prior.pseudo_data.parameters.leaves[index], prior.pseudo_data.leaf_counts[index]
            total += float(counts @ group.family.expected_log_density(source, values))
    return total


def n_parameters(structure: Structure, parameters: Parameters) -> int:
    """Count free parameters: weights less one per sum, and those of the leaves."""
    leaves = sum(
        group.family.degrees_of_freedom(values, group.leaves)
        for group, values in zip(structure.groups, parameters.leaves, strict=True)
    )
    return structure.n_edges - structure.n_sums + leaves


class UnconstrainedParameters:
    """Parameters as one vector without equality constraints, each entry in a natural unit.

    Weights become logits; leaves become what their family says, divided by its natural step size.

    Parameters
    ----------
    origin : Parameters
        Gives the shapes, the units and the parameters that are not learned.
    """

    def __init__(self, structure: Structure, origin: Parameters) -> None:
        self.structure, self.origin = structure, origin
        self.shapes = [
            group.family.to_unconstrained(values).shape
            for group, values in zip(structure.groups, origin.leaves, strict=True)
        ]
        leaves = [
            group.family.unconstrained_scale(values).ravel()
            for group, values in zip(structure.groups, origin.leaves, strict=True)
        ]
        self.scale: FloatArray = np.concatenate([np.ones(structure.n_edges), *leaves])

    def pack(self, parameters: Parameters) -> FloatArray:
        """Write parameters as a vector; a probability of zero gets the logit ``SMALLEST_LOGIT``."""
        leaves = [
            group.family.to_unconstrained(values).ravel()
            for group, values in zip(self.structure.groups, parameters.leaves, strict=True)
        ]
        vector = np.concatenate([parameters.log_weights, *leaves])
        return np.where(np.isneginf(vector), SMALLEST_LOGIT, vector / self.scale)

    def unpack(self, vector: FloatArray) -> Parameters:
        """Invert :meth:`pack`."""
        structure = self.structure
        free = vector * self.scale
        logits = free[: structure.n_edges]
        totals = np.logaddexp.reduceat(logits, structure.edge_start[:-1])
        ends = structure.n_edges + np.cumsum([0] + [rows * columns for rows, columns in self.shapes])
        leaves = tuple(
            group.family.from_unconstrained(free[start:stop].reshape(shape), values)
            for group, values, shape, start, stop in zip(
                structure.groups, self.origin.leaves, self.shapes, ends[:-1], ends[1:], strict=True
            )
        )
        return Parameters(logits - totals[structure.edge_sum], leaves)

    def gradient(self, parameters: Parameters, statistics: Statistics, prior: Prior) -> FloatArray:
        """Gradient of the objective plus log prior."""
        structure = self.structure
        flow = statistics.edge_flow + prior.edge_counts()
        total = structure.sum_over_edges(flow)[structure.edge_sum]
        parts = [flow - np.exp(parameters.log_weights) * total]
        for index, group in enumerate(structure.groups):
            of_leaves = prior.leaf_statistics(structure, parameters, statistics, index)
            parts.append(group.family.gradient(of_leaves, parameters.leaves[index], group.leaves, prior.leaves).ravel())
        return np.concatenate(parts) * self.scale

    def lower_bound(self, parameters: Parameters, prior: Prior) -> FloatArray:
        """Lower bound of each entry."""
        leaves = [
            group.family.unconstrained_lower_bound(
                group.family.to_unconstrained(values), group.leaves, prior.leaves
            ).ravel()
            for group, values in zip(self.structure.groups, parameters.leaves, strict=True)
        ]
        return np.concatenate([np.full(self.structure.n_edges, -np.inf), *leaves]) / self.scale

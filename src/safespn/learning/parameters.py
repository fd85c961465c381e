"""From statistics to parameters: the M-step, the gradient, and the penalty they share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import xlogy

from safespn.engine.statistics import Statistics
from safespn.network.leaves.family import LeafPrior
from safespn.network.structure import Parameters, Structure
from safespn.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Prior:
    """Priors and bounds that learning respects.

    Parameters
    ----------
    weight_prior : float or array of shape (n_edges,)
        Pseudo-count of every edge of a sum: a Dirichlet prior with concentration ``1 + weight_prior``.
    leaves : LeafPrior
        Variance floor and pseudo-counts of the leaves.
    """

    weight_prior: float | FloatArray = 0.0
    leaves: LeafPrior = field(default_factory=LeafPrior)


def maximise(structure: Structure, parameters: Parameters, statistics: Statistics, prior: Prior) -> Parameters:
    """Maximise the expected log-likelihood plus log prior; what no row reaches keeps its parameters."""
    flow = statistics.edge_flow + prior.weight_prior
    total = structure.sum_over_edges(flow)[structure.edge_sum]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.where(total > 0, np.log(flow) - np.log(total), parameters.log_weights)
    leaves = tuple(
        group.family.update(
            statistics.of_group(structure, index), parameters.leaves[index], group.columns, prior.leaves
        )
        for index, group in enumerate(structure.groups)
    )
    return Parameters(log_weights, leaves)


def constrain(structure: Structure, parameters: Parameters, prior: Prior) -> Parameters:
    """Move leaf parameters that break the prior's bounds on to the bounds."""
    leaves = tuple(
        group.family.constrain(values, group.columns, prior.leaves)
        for group, values in zip(structure.groups, parameters.leaves, strict=True)
    )
    return Parameters(parameters.log_weights, leaves)


def log_prior(structure: Structure, parameters: Parameters, prior: Prior) -> float:
    """Log density of the prior at ``parameters``, up to a constant."""
    weights = float(xlogy(prior.weight_prior, np.exp(parameters.log_weights)).sum())
    return weights + sum(
        group.family.log_prior(values, prior.leaves)
        for group, values in zip(structure.groups, parameters.leaves, strict=True)
    )


def gradient(structure: Structure, parameters: Parameters, statistics: Statistics, prior: Prior) -> FloatArray:
    """Gradient of the objective plus log prior in the free coordinates of :func:`to_free`."""
    flow = statistics.edge_flow + prior.weight_prior
    total = structure.sum_over_edges(flow)[structure.edge_sum]
    parts = [flow - np.exp(parameters.log_weights) * total]
    for index, group in enumerate(structure.groups):
        of_leaves = statistics.of_group(structure, index)
        parts.append(group.family.gradient(of_leaves, parameters.leaves[index], prior.leaves).ravel())
    return np.concatenate(parts)


def to_free(structure: Structure, parameters: Parameters) -> FloatArray:
    """Pack parameters into one vector without equality constraints: weights as logits, leaves as their family says."""
    leaves = [
        group.family.to_free(values).ravel() for group, values in zip(structure.groups, parameters.leaves, strict=True)
    ]
    return np.concatenate([parameters.log_weights, *leaves])


def from_free(structure: Structure, like: Parameters, vector: FloatArray) -> Parameters:
    """Unpack a vector made by :func:`to_free`; ``like`` gives the shapes."""
    logits = vector[: structure.n_edges]
    totals = np.logaddexp.reduceat(logits, structure.edge_start[:-1])
    leaves, start = [], structure.n_edges
    for group, values in zip(structure.groups, like.leaves, strict=True):
        size = group.family.to_free(values).size
        leaves.append(group.family.from_free(vector[start : start + size].reshape(group.n_leaves, -1)))
        start += size
    return Parameters(logits - totals[structure.edge_sum], tuple(leaves))


def free_lower_bound(structure: Structure, parameters: Parameters, prior: Prior) -> FloatArray:
    """Lower bound of each entry of the free vector."""
    leaves = [
        group.family.free_lower_bound(group.family.to_free(values), group.columns, prior.leaves).ravel()
        for group, values in zip(structure.groups, parameters.leaves, strict=True)
    ]
    return np.concatenate([np.full(structure.n_edges, -np.inf), *leaves])

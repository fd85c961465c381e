"""Refining a freshly learned network by EM, with the regularisation that its structure was learned with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.statistics import Statistics
from safespn.learning.parameters import Prior, m_step
from safespn.network.structure import Parameters, Structure
from safespn.typing import FloatArray

FREE_WORK = 6e7
WORK_PER_ROW = 6000


@dataclass(frozen=True, eq=False)
class Target:
    """What the variance or covariance of a Gaussian leaf is drawn towards, as if by ``pseudo_rows`` rows of it.

    Parameters
    ----------
    covariance : array of shape (d, d)
        In the units of the leaf's columns; d is 1 for a univariate leaf.
    pseudo_rows : float
    """

    covariance: FloatArray
    pseudo_rows: float


class Shrinkage:
    """Draws (co)variances of Gaussian leaves towards those of broader groups of rows.

    Parameters
    ----------
    structure : Structure
    targets : dict
        By the ``id`` of a leaf's node; other leaves are left alone.
    """

    def __init__(self, structure: Structure, targets: dict[int, Target]) -> None:
        self.structure = structure
        self.rows: dict[int, list[tuple[int, Target]]] = {}
        for position, (group, row) in structure.leaf_position.items():
            target = targets.get(id(structure.nodes[position]))
            if target is not None:
                self.rows.setdefault(group, []).append((row, target))

    def apply(self, parameters: Parameters, statistics: Statistics) -> Parameters:
        """Return parameters with the (co)variances drawn towards their targets."""
        leaves = list(parameters.leaves)
        for group, entries in self.rows.items():
            which = np.array([row for row, _ in entries])
            target = np.array([entry.covariance.ravel() for _, entry in entries])
            strength = np.array([entry.pseudo_rows for _, entry in entries])[:, None]
            flow = statistics.of_group(self.structure, group)[0][which, 0][:, None]
            values = leaves[group].copy()
            own = values[which, -target.shape[1] :]
            total = np.maximum(flow + strength, 1e-300)
            values[which, -target.shape[1] :] = np.where(
                flow + strength > 0, (flow * own + strength * target) / total, own
            )
            leaves[group] = values
        return Parameters(parameters.log_weights, tuple(leaves))


def affordable_iterations(n_parameters: int, n_rows: int) -> int:
    """Return a number of EM steps, at most ten, whose time stays proportional to the number of rows.

    A network learned from more rows has more parameters, so that a fixed number of steps would take quadratic time.
    """
    return int(min(10, (FREE_WORK + WORK_PER_ROW * n_rows) // (max(n_parameters, 1) * n_rows)))


def refine(
    structure: Structure,
    parameters: Parameters,
    table: FloatArray,
    weights: FloatArray,
    prior: Prior,
    shrinkage: Shrinkage,
    n_iterations: int,
) -> Parameters:
    """Take EM steps on all weights and leaves (maximum a posteriori), as many as asked for."""
    for _ in range(n_iterations):
        statistics = passes.statistics(bind(structure, parameters), table, None, weights, n_passes=n_iterations)
        parameters = m_step(structure, parameters, statistics, prior)
        parameters = shrinkage.apply(parameters, statistics)
    return parameters

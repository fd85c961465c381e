"""Refining a freshly learned network by EM, with the regularisation that its structure was learned with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.statistics import Statistics
from safespn.learning.parameters import Prior, maximise
from safespn.network.leaves.gaussian import GaussianFamily
from safespn.network.structure import Parameters, Structure
from safespn.typing import FloatArray

FREE_WORK = 3e7
WORK_PER_ROW = 3000


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Draws each Gaussian leaf's variance towards that of a broader group of rows.

    Parameters
    ----------
    pseudo_rows : float
        Strength: so many rows of the broader variance are added.
    broader_variance : dict
        By the ``id`` of a leaf's node; other leaves are left alone.
    """

    pseudo_rows: float
    broader_variance: dict[int, float]

    def apply(self, structure: Structure, parameters: Parameters, statistics: Statistics) -> Parameters:
        """Return parameters with the Gaussian variances drawn towards the broader ones."""
        leaves = list(parameters.leaves)
        for index, group in enumerate(structure.groups):
            if not isinstance(group.family, GaussianFamily):
                continue
            target = self._targets(structure, index)
            flow = statistics.of_group(structure, index)[0][:, 0]
            mean, variance = leaves[index].T
            drawn = (flow * variance + self.pseudo_rows * target) / np.maximum(flow + self.pseudo_rows, 1e-300)
            leaves[index] = np.column_stack([mean, np.where(np.isnan(target), variance, drawn)])
        return Parameters(parameters.log_weights, tuple(leaves))

    def _targets(self, structure: Structure, group_index: int) -> FloatArray:
        target = np.full(structure.groups[group_index].n_leaves, np.nan)
        for position, (group, row) in structure.leaf_position.items():
            if group == group_index:
                target[row] = self.broader_variance.get(id(structure.nodes[position]), np.nan)
        return target


def affordable_iterations(n_edges: int, n_rows: int) -> int:
    """Return a number of EM steps, at most ten, whose time stays proportional to the number of rows.

    A network learned from more rows has more edges, so that a fixed number of steps would take quadratic time.
    """
    return int(min(10, (FREE_WORK + WORK_PER_ROW * n_rows) // (max(n_edges, 1) * n_rows)))


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
        parameters = maximise(structure, parameters, statistics, prior)
        parameters = shrinkage.apply(structure, parameters, statistics)
    return parameters

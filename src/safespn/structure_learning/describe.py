"""From a learned tree to a network in the caller's units."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from safespn.network.leaves import Categorical, Gaussian, MultivariateGaussian, Poisson
from safespn.network.nodes import Leaf, Node, Product, Sum
from safespn.structure_learning.blocks import GaussianBlock
from safespn.structure_learning.plan import Plan
from safespn.structure_learning.refine import Target
from safespn.structure_learning.table import LearningTable
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Description:
    """A network, and what the variances of its Gaussian leaves are drawn towards when they are refined.

    Parameters
    ----------
    root : Node
    targets : dict
        By the ``id`` of a Gaussian leaf, in the caller's units; a leaf at a frequent value is not in it.
    """

    root: Node
    targets: dict[int, Target]


@dataclass(frozen=True, eq=False)
class Describer:
    """Writes trees as networks in the caller's units.

    A Gaussian leaf with mean m and variance v of z-scores is one with mean ``m * scale + shift`` and variance
    ``v * scale ** 2`` of the column itself, so that densities need no further factor.

    A leaf whose rows all hold the same value would be degenerate: other values, however near, would be impossible.
    Such a leaf is replaced by a mixture of a narrow leaf at that value and a leaf as broad as that of the rows which
    its own were chosen from.

    Parameters
    ----------
    variance_floor : array of shape (n_columns,)
        In units of z-scores.
    weight_prior : float
        Pseudo-count of every child of a sum.
    pseudo_rows : float
        How strongly univariate leaves are drawn towards broader ones.
    """

    table: LearningTable
    variance_floor: FloatArray
    weight_prior: float
    pseudo_rows: float

    def describe(self, plan: Plan, depth: int | None = None) -> Description:
        """Describe a tree, cut after ``depth`` splits (None: not cut)."""
        writer = _Writer(self.table, self.variance_floor, self.weight_prior, self.pseudo_rows)
        return Description(writer.node(plan, depth), writer.targets)


@dataclass(frozen=True, eq=False)
class _Writer:
    table: LearningTable
    variance_floor: FloatArray
    weight_prior: float
    pseudo_rows: float
    targets: dict[int, Target] = field(default_factory=dict)

    def node(self, plan: Plan, depth: int | None) -> Node:
        if not plan.children or depth == 0:
            leaves = self._leaves(plan, None if depth == 0 else plan.block)
            return leaves[0] if len(leaves) == 1 else Product(leaves)
        below = None if depth is None else depth - 1
        nodes = [self.node(child, below) for child in plan.children]
        if not plan.splits_rows:
            return Product([inner for node in nodes for inner in _factors(node)])
        return Sum(nodes, self._weights([child.total for child in plan.children]))

    def _weights(self, totals: list[float]) -> list[float]:
        counts = np.array(totals) + self.weight_prior
        return list(counts / counts.sum())

    def _leaves(self, plan: Plan, block: GaussianBlock | None) -> list[Node]:
        """Return the leaves in the order of their (first) columns."""
        part, leaves = plan.part, plan.leaves
        nodes: dict[int, Node] = {}
        if block is not None:
            nodes[int(part.real_columns[0])] = self._multivariate(part.real_columns, block)
        else:
            for position, column in enumerate(part.real_columns):
                nodes[int(column)] = self._gaussian(plan, position, int(column))
        for position, column in enumerate(part.count_columns):
            nodes[int(column)] = Poisson(int(column), rate=leaves.rate[0, position])
        for position, column in enumerate(part.code_columns):
            states = slice(*part.state_start[position : position + 2])
            probability = np.exp(leaves.log_probability[0, states])
            nodes[int(column)] = Categorical(int(column), probability / probability.sum())
        return [nodes[column] for column in sorted(nodes)]

    def _multivariate(self, columns: IntArray, block: GaussianBlock) -> Leaf:
        scale = self.table.scale[columns]
        unit = np.outer(scale, scale)
        mean = block.mean * scale + self.table.shift[columns]
        leaf = MultivariateGaussian(columns.tolist(), mean=mean, covariance=block.covariance * unit)
        self.targets[id(leaf)] = Target(block.broader * unit, block.pseudo_rows)
        return leaf

    def _gaussian(self, plan: Plan, position: int, column: int) -> Node:
        scale = self.table.scale[column]
        mean = plan.leaves.mean[0, position] * scale + self.table.shift[column]
        broader = plan.broader_variance[position] * scale**2
        leaf = Gaussian(column, mean=mean, variance=plan.leaves.variance[0, position] * scale**2)
        floor = self.variance_floor[column] * scale**2
        if not plan.atoms[position] or broader <= floor:
            return self._drawn(leaf, broader)
        narrow = Gaussian(column, mean=mean, variance=floor)
        escape = self._drawn(Gaussian(column, mean=mean, variance=broader), broader)
        return Sum([narrow, escape], self._weights([plan.total, 0.0]))

    def _drawn(self, leaf: Leaf, broader: float) -> Leaf:
        self.targets[id(leaf)] = Target(np.array([[broader]]), self.pseudo_rows)
        return leaf


def _factors(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, Product) else (node,)

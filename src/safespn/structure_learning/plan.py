"""What structure learning leaves behind: a tree whose every node also knows its product of univariate leaves.

So the tree can be cut at any depth without going back to the rows, and every cut is a complete, decomposable network.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from safespn.structure_learning.blocks import GaussianBlock
from safespn.structure_learning.univariate import ROWS_OF_AN_ATOM, Slice, UnivariateLeaves
from safespn.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Plan:
    """A node of the learned tree.

    Parameters
    ----------
    part : Slice
        Its columns; without rows.
    total : float
        Weight of the rows that reached it.
    leaves : UnivariateLeaves
        The product of univariate leaves over its columns, fitted to its rows.
    broader_variance : array of shape (n_real_columns,)
        Variances of the rows that these rows were chosen from: what the leaves' variances are drawn towards.
    atoms : array of shape (n_real_columns,)
        Whether all rows, at least three, hold the same value up to the variance floor.
    children : tuple of Plan
        Empty where the product of leaves stays.
    splits_rows : bool
        Whether the children are clusters of rows (a sum) or groups of columns (a product).
    block : GaussianBlock, optional
        Models the real columns together; such a node has no children.
    """

    part: Slice
    total: float
    leaves: UnivariateLeaves
    broader_variance: FloatArray
    atoms: BoolArray
    children: tuple[Plan, ...] = field(default=())
    splits_rows: bool = False
    block: GaussianBlock | None = None

    @property
    def depth(self) -> int:
        """Number of splits on the longest path; a block counts as one, since a cut at its node undoes it."""
        if self.block is not None:
            return 1
        return 1 + max(child.depth for child in self.children) if self.children else 0


def plan_of(
    part: Slice,
    leaves: UnivariateLeaves,
    broader: UnivariateLeaves,
    variance_floor: FloatArray,
    children: tuple[Plan, ...] = (),
    splits_rows: bool = False,
    block: GaussianBlock | None = None,
) -> Plan:
    """Make a node of the tree for a slice; a cluster that is itself split into clusters hands these up."""
    if splits_rows:
        children = tuple(inner for child in children for inner in (child.children if child.splits_rows else (child,)))
    return Plan(
        part.take(np.empty(0, dtype=np.intp)),
        part.total,
        leaves,
        broader.variance[0],
        _atoms(part, leaves, variance_floor),
        children,
        splits_rows,
        block,
    )


def _atoms(part: Slice, leaves: UnivariateLeaves, variance_floor: FloatArray) -> BoolArray:
    distance = np.abs(part.real - leaves.mean)
    if part.real_observed is None:
        seen = np.full(part.real.shape[1], part.total)
    else:
        distance *= part.real_observed
        seen = part.weights @ part.real_observed
    narrow = distance.max(axis=0, initial=0.0) <= np.sqrt(variance_floor[part.real_columns])
    return np.asarray(narrow & (seen >= ROWS_OF_AN_ATOM))

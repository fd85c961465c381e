"""LearnSPN (Gens and Domingos 2013): split independent columns, else cluster rows, down to univariate leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safespn.structure_learning.blocks import GaussianBlock, block_log_likelihood, fit_block
from safespn.structure_learning.clustering import find_two_clusters, looks_gaussian
from safespn.structure_learning.dependence import independent_groups
from safespn.structure_learning.plan import Plan, plan_of
from safespn.structure_learning.univariate import Regularisation, Slice, UnivariateLeaves, among
from safespn.typing import FloatArray, IntArray

MOST_LEVELS = 100
"""Bounds the recursion; only a table made for it comes near."""
PATIENCE = 3
"""How many splits of rows, one below the other, are tried against a block before it is kept."""


@dataclass(frozen=True)
class GrowthSettings:
    """How the tree is grown; see :func:`safespn.learn_spn`."""

    min_rows: float
    max_depth: int | None
    alpha: float
    dependence: str
    criterion: str
    seed: int
    multivariate: bool = False
    covariance_strength: float = 0.2


def grow(part: Slice, settings: GrowthSettings, regularisation: Regularisation) -> Plan:
    """Learn the tree of a slice."""
    return _Grower(settings, regularisation).grow(part)


@dataclass(frozen=True, eq=False)
class _Origin:
    """What a part starts from.

    Parameters
    ----------
    leaves : UnivariateLeaves
        The part's own univariate leaves.
    broader : UnivariateLeaves
        Those of the rows that its rows were chosen from.
    covariance : array or None
        Covariance of those rows' real columns, if blocks are in use.
    """

    leaves: UnivariateLeaves
    broader: UnivariateLeaves
    covariance: FloatArray | None

    def part(self, part: Slice, columns: IntArray) -> _Origin:
        """Return what a group of the part's columns starts from."""
        kept = among(part.real_columns, columns)
        covariance = None if self.covariance is None else self.covariance[np.ix_(kept, kept)]
        return _Origin(part.part_of(self.leaves, columns), part.part_of(self.broader, columns), covariance)


@dataclass(frozen=True)
class _Budget:
    """How much further a part may be split. Clusters of a cluster join the same sum: they cost no depth."""

    depth: int
    levels: int
    inside_sum: bool = False

    def allows(self, *, splits_rows: bool) -> bool:
        return self.levels > 0 and (self.depth > 0 or (splits_rows and self.inside_sum))

    def after(self, *, splits_rows: bool) -> _Budget:
        free = splits_rows and self.inside_sum
        return _Budget(self.depth if free else self.depth - 1, self.levels - 1, splits_rows)


@dataclass(frozen=True, eq=False)
class _Grown:
    """A part of the tree and its score: log-likelihood, each row in its own cluster, less the price of its splits."""

    plan: Plan
    score: float


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns that stay together, with what describes them without splitting their rows.

    Parameters
    ----------
    block : GaussianBlock or None
        Of the real columns, if blocks are in use.
    is_block : bool
        Whether the block scores higher than univariate leaves.
    score : float
        Of the better of the two.
    """

    grower: _Grower
    part: Slice
    origin: _Origin
    budget: _Budget
    block: GaussianBlock | None
    is_block: bool
    score: float

    @cached_property
    def clusters(self) -> list[_Opened]:
        """Two clusters of the rows, or nothing where the rows stay together."""
        return self.grower.open_clusters(self)

    @cached_property
    def overhead(self) -> float:
        """What splitting the rows adds to the clusters' scores: the weights of the sum and the price of the leaves."""
        totals = np.array([cluster.part.total for cluster in self.clusters])
        entropy = float(totals @ np.log(totals / self.part.total))
        return entropy - self.grower.price(self.part, self.part.n_leaf_parameters + 1)

    def promise(self, n_splits: int) -> float:
        """Highest score within so many splits of rows, one below the other."""
        if n_splits == 0 or not self.clusters:
            return self.score
        return max(self.score, self.overhead + sum(cluster.promise(n_splits - 1) for cluster in self.clusters))


@dataclass(frozen=True, eq=False)
class _Opened:
    """A part whose columns have been split, its rows not yet."""

    part: Slice
    origin: _Origin
    groups: list[_Group]

    def promise(self, n_splits: int) -> float:
        return sum(group.promise(n_splits) for group in self.groups)


@dataclass(frozen=True, eq=False)
class _Grower:
    settings: GrowthSettings
    regularisation: Regularisation

    def grow(self, part: Slice) -> Plan:
        leaves = part.fit(part.weights[:, None], self.regularisation)
        depth = MOST_LEVELS if self.settings.max_depth is None else self.settings.max_depth
        return self._close(self._open(part, _Origin(leaves, leaves, None), _Budget(depth, MOST_LEVELS))).plan

    def _open(self, part: Slice, origin: _Origin, budget: _Budget) -> _Opened:
        """Split the columns of a part where they are independent."""
        groups = self._groups(part) if self._is_large(part) and budget.allows(splits_rows=False) else []
        if len(groups) <= 1:
            return _Opened(part, origin, [self._group(part, origin, budget)])
        below = budget.after(splits_rows=False)
        return _Opened(
            part, origin, [self._group(part.part(group), origin.part(part, group), below) for group in groups]
        )

    def open_clusters(self, group: _Group) -> list[_Opened]:
        """Split the rows of a group in two where that gains."""
        part, origin, budget = group.part, group.origin, group.budget
        if not (self._is_large(part) and budget.allows(splits_rows=True)):
            return []
        below = budget.after(splits_rows=True)
        covariance = None if group.block is None else group.block.covariance
        clusters = []
        for rows in self._clusters(part, origin.leaves):
            inner = part.take(rows)
            leaves = inner.fit(inner.weights[:, None], self.regularisation, origin.leaves)
            clusters.append(self._open(inner, _Origin(leaves, origin.leaves, covariance), below))
        return clusters

    def _close(self, opened: _Opened) -> _Grown:
        """Grow every group of columns."""
        grown = [self._grow(group) for group in opened.groups]
        if len(grown) == 1:
            return grown[0]
        plan = self._plan(opened.part, opened.origin, tuple(child.plan for child in grown))
        return _Grown(plan, sum(child.score for child in grown))

    def _grow(self, group: _Group) -> _Grown:
        """Split the rows of a group where that gains.

        A block is given up for clusters only if they score higher. Where a few levels of them do not, deeper ones
        hardly ever do, and they would take most of the time.
        """
        if not group.clusters or (group.is_block and group.promise(PATIENCE) <= group.score):
            return self._whole(group)
        grown = [self._close(cluster) for cluster in group.clusters]
        score = group.overhead + sum(child.score for child in grown)
        if group.is_block and score <= group.score:
            return self._whole(group)
        plan = self._plan(group.part, group.origin, tuple(child.plan for child in grown), splits_rows=True)
        return _Grown(plan, score)

    def _whole(self, group: _Group) -> _Grown:
        """Leave the rows of a group together."""
        block = group.block if group.is_block else None
        return _Grown(self._plan(group.part, group.origin, block=block), group.score)

    def _group(self, part: Slice, origin: _Origin, budget: _Budget) -> _Group:
        block = self._block(part, origin, budget)
        of_leaves, of_block = float(part.weights @ part.log_density(origin.leaves)[:, 0]), -np.inf
        if block is not None:
            of_block = block_log_likelihood(part, origin.leaves, block) - self.price(part, block.n_extra_parameters)
        return _Group(self, part, origin, budget, block, of_block > of_leaves, max(of_block, of_leaves))

    def _block(self, part: Slice, origin: _Origin, budget: _Budget) -> GaussianBlock | None:
        if not self.settings.multivariate or len(part.real_columns) < 2 or budget.depth < 1 - budget.inside_sum:
            return None
        floor, strength = self.regularisation.variance_floor, self.settings.covariance_strength
        return fit_block(part, origin.covariance, floor, strength)

    def _is_large(self, part: Slice) -> bool:
        return part.total >= self.settings.min_rows and len(part.weights) > 1

    def _groups(self, part: Slice) -> list[IntArray]:
        settings = self.settings
        if part.n_columns == 1:
            return [part.columns]
        return independent_groups(part, settings.alpha, settings.dependence, settings.seed)

    def _clusters(self, part: Slice, leaves: UnivariateLeaves) -> list[IntArray]:
        """Return the rows of two clusters, or nothing if one product of leaves does as well."""
        if part.n_columns == len(part.code_columns) == 1:
            return []  # a mixture of categorical leaves is a categorical leaf
        if part.n_columns == 1 and looks_gaussian(part):
            return []
        clusters = find_two_clusters(part, leaves, self.regularisation)
        if clusters is None or clusters.gain <= self.price(part, part.n_leaf_parameters + 1):
            return []
        members = clusters.members
        return list(members) if all(len(rows) for rows in members) else []

    def price(self, part: Slice, n_parameters: int) -> float:
        """Gain in log-likelihood that so many more parameters must bring."""
        per_parameter = 0.5 * float(np.log(max(part.total, 2.0))) if self.settings.criterion == "bic" else 1.0
        return n_parameters * per_parameter

    def _plan(
        self,
        part: Slice,
        origin: _Origin,
        children: tuple[Plan, ...] = (),
        splits_rows: bool = False,
        block: GaussianBlock | None = None,
    ) -> Plan:
        floor = self.regularisation.variance_floor
        return plan_of(part, origin.leaves, origin.broader, floor, children, splits_rows, block)

"""LearnSPN (Gens and Domingos 2013): split independent columns, else cluster rows, down to univariate leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.learning.structure.clustering import find_two_clusters, looks_gaussian
from safespn.learning.structure.dependence import independent_groups
from safespn.learning.structure.plan import Plan, plan_of
from safespn.learning.structure.univariate import Leaves, Regularisation, Slice
from safespn.typing import IntArray

MOST_LEVELS = 100
"""Bounds the recursion; only a table made for it comes near."""


@dataclass(frozen=True)
class Settings:
    """How the tree is grown; see :func:`safespn.learn_spn`."""

    min_rows: float
    max_depth: int | None
    alpha: float
    dependence: str
    criterion: str
    seed: int


def grow(part: Slice, settings: Settings, regularisation: Regularisation) -> Plan:
    """Learn the tree of a slice."""
    return _Grower(settings, regularisation).grow(part)


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
class _Grower:
    settings: Settings
    regularisation: Regularisation

    def grow(self, part: Slice) -> Plan:
        leaves = part.fit(part.weights[:, None], self.regularisation)
        depth = MOST_LEVELS if self.settings.max_depth is None else self.settings.max_depth
        return self._grow(part, leaves, leaves, _Budget(depth, MOST_LEVELS))

    def _grow(self, part: Slice, leaves: Leaves, broader: Leaves, budget: _Budget) -> Plan:
        """Split a slice further; ``broader`` are the leaves of the rows that its rows were chosen from."""
        if part.total >= self.settings.min_rows and len(part.weights) > 1:
            groups = self._groups(part) if budget.allows(splits_rows=False) else []
            if len(groups) > 1:
                below = budget.after(splits_rows=False)
                children = tuple(
                    self._grow(part.part(group), part.part_of(leaves, group), part.part_of(broader, group), below)
                    for group in groups
                )
                return self._plan(part, leaves, broader, children)
            members = self._clusters(part, leaves) if budget.allows(splits_rows=True) else []
            if members:
                below = budget.after(splits_rows=True)
                children = tuple(self._grow_cluster(part.take(rows), leaves, below) for rows in members)
                return self._plan(part, leaves, broader, children, splits_rows=True)
        return self._plan(part, leaves, broader)

    def _grow_cluster(self, part: Slice, broader: Leaves, budget: _Budget) -> Plan:
        return self._grow(part, part.fit(part.weights[:, None], self.regularisation, broader), broader, budget)

    def _groups(self, part: Slice) -> list[IntArray]:
        settings = self.settings
        if part.n_columns == 1:
            return [part.columns]
        return independent_groups(part, settings.alpha, settings.dependence, settings.seed)

    def _clusters(self, part: Slice, leaves: Leaves) -> list[IntArray]:
        """Return the rows of two clusters, or nothing if one product of leaves does as well."""
        if part.n_columns == len(part.code_columns) == 1:
            return []  # a mixture of categorical leaves is a categorical leaf
        if part.n_columns == 1 and looks_gaussian(part):
            return []
        clusters = find_two_clusters(part, leaves, self.regularisation)
        if clusters is None or clusters.gain <= self._price(part):
            return []
        members = clusters.members
        return list(members) if all(len(rows) for rows in members) else []

    def _price(self, part: Slice) -> float:
        """Gain in log-likelihood that a second product of leaves and its weight must bring."""
        per_parameter = 0.5 * float(np.log(max(part.total, 2.0))) if self.settings.criterion == "bic" else 1.0
        return (part.n_leaf_parameters + 1) * per_parameter

    def _plan(
        self, part: Slice, leaves: Leaves, broader: Leaves, children: tuple[Plan, ...] = (), splits_rows: bool = False
    ) -> Plan:
        return plan_of(part, leaves, broader, self.regularisation.variance_floor, children, splits_rows)

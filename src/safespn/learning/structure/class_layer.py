"""Class networks: one sub-network per class under a root sum, from labelled and unlabelled rows.

Every class also sees all rows, labelled or not, with a small total weight (``pooling`` rows): a class with few labels
stays near the distribution of the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.learning.parameters import Prior
from safespn.learning.structure.blocks import floored_covariance
from safespn.learning.structure.describe import Describer, Description
from safespn.learning.structure.gaussian_classes import GAUSSIAN_STRUCTURES, GaussianClasses
from safespn.learning.structure.learnspn import Settings, grow
from safespn.learning.structure.plan import Plan
from safespn.learning.structure.refine import Shrinkage, refine
from safespn.learning.structure.table import LearningTable
from safespn.learning.structure.univariate import Regularisation, whole_table
from safespn.network.leaves import MultivariateGaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Leaf, Node, Product, Sum, walk
from safespn.network.structure import Parameters
from safespn.spn import SPN
from safespn.typing import FloatArray, IntArray

STRUCTURES = ("copied", "shared", "per_class", "tied", *GAUSSIAN_STRUCTURES)


@dataclass(frozen=True, eq=False)
class ClassLayer:
    """Learns class networks of one table.

    Parameters
    ----------
    table : LearningTable
        All rows, labelled or not.
    settings, regularisation : how structures are learned
    weight_prior, category_prior : float
    pooling : float
        Weight of all rows together in each class.
    n_iterations : int
        EM steps on each class.
    """

    table: LearningTable
    settings: Settings
    regularisation: Regularisation
    weight_prior: float
    pooling: float
    n_iterations: int

    def pooled_plan(self) -> Plan:
        """Learn one structure from all rows, without labels."""
        return grow(whole_table(self.table), self.settings, self.regularisation)

    def learn(self, structure: str, class_weights: FloatArray, plan: Plan | None, depth: int | None = None) -> SPN:
        """Learn a class network.

        Parameters
        ----------
        structure : str
            One of ``STRUCTURES``.
        class_weights : array of shape (n_classes, n_distinct_rows)
            Weight of the rows that are labelled with each class.
        plan : Plan or None
            The structure of all rows, for those that start from it.
        depth : int, optional
            Cut the structures after so many splits.
        """
        if structure in GAUSSIAN_STRUCTURES:
            gaussian = GaussianClasses(self.table, class_weights, self.regularisation, self.weight_prior)
            nodes, root_weights = gaussian.learn(structure)
            return SPN(Sum(nodes, root_weights.tolist()))
        totals = class_weights.sum(axis=1) + self.weight_prior
        children = self._children(structure, class_weights, plan, depth)
        return SPN(Sum(children, (totals / totals.sum()).tolist()))

    def _children(self, structure: str, class_weights: FloatArray, plan: Plan | None, depth: int | None) -> list[Node]:
        if structure == "tied":
            return self._tied(class_weights)
        if structure == "per_class":
            tables = [self._table_of(weights) for weights in class_weights]
            plans = [grow(whole_table(table), self.settings, self.regularisation) for table in tables]
            return [
                self._fitted(self._describer.describe(own, depth), table).root
                for own, table in zip(plans, tables, strict=True)
            ]
        assert plan is not None
        if structure == "shared":
            shared = self._fitted(self._describer.describe(plan, depth), self.table)
            return [self._reweighted(shared, self._table_of(weights)) for weights in class_weights]
        return [
            self._fitted(self._describer.describe(plan, depth), self._table_of(weights)).root
            for weights in class_weights
        ]

    @property
    def _describer(self) -> Describer:
        floors = self.regularisation.variance_floor
        return Describer(self.table, floors, self.weight_prior, self.regularisation.pseudo_rows)

    def _table_of(self, weights: FloatArray) -> LearningTable:
        return self.table.weighted(weights + self.pooling * self.table.weights / self.table.weights.sum())

    @property
    def _prior(self) -> Prior:
        floors = self.regularisation.variance_floor * self.table.scale**2
        return Prior(self.weight_prior, LeafPrior(floors, self.regularisation.category_prior))

    def _fitted(self, description: Description, table: LearningTable) -> SPN:
        spn = SPN(description.root)
        shrinkage = Shrinkage(spn._structure, description.targets)
        parameters = refine(
            spn._structure, spn._parameters, table.own_units(), table.weights, self._prior, shrinkage, self.n_iterations
        )
        return SPN._from_parameters(spn._structure, parameters)

    def _reweighted(self, shared: SPN, table: LearningTable) -> Node:
        """Return the shared network with weights of its own: new sums and products over the same leaves."""
        parameters = shared._parameters
        for _ in range(self.n_iterations):
            stepped = refine(
                shared._structure, parameters, table.own_units(), table.weights, self._prior, Shrinkage.none(), 1
            )
            parameters = Parameters(stepped.log_weights, parameters.leaves)
        own = SPN._from_parameters(shared._structure, parameters)
        return _with_leaves_of(own.root, shared.root)

    def _tied(self, class_weights: FloatArray) -> list[Node]:
        """One multivariate Gaussian per class over the real columns with a common covariance; the rest univariate."""
        part = whole_table(self.table)
        leaves = part.fit(part.weights[:, None], self.regularisation)
        shares = class_weights.T + self.pooling * (self.table.weights / self.table.weights.sum())[:, None]
        of_classes = part.fit(shares, self.regularisation, leaves)
        columns = part.real_columns
        scatter, seen = np.zeros((len(columns), len(columns))), np.full((len(columns), len(columns)), 1e-300)
        observed = np.ones_like(part.real) if part.real_observed is None else part.real_observed
        for weights, mean in zip(shares.T, of_classes.mean, strict=True):
            centred = (part.real - mean) * observed
            scatter += (centred * weights[:, None]).T @ centred
            seen += (observed * weights[:, None]).T @ observed
        pull = len(columns)
        centred = (part.real - leaves.mean) * observed
        everyone = (centred * part.weights[:, None]).T @ centred
        everyone /= np.maximum((observed * part.weights[:, None]).T @ observed, 1e-300)
        covariance = (scatter + pull * everyone) / (seen + pull)
        covariance = floored_covariance(covariance, columns, self.regularisation.variance_floor)
        return [
            self._tied_class(covariance, Plan(part, 1.0, of_classes.of(k), leaves.variance[0], np.zeros(0, dtype=bool)))
            for k in range(len(class_weights))
        ]

    def _tied_class(self, covariance: FloatArray, plan: Plan) -> Node:
        columns: IntArray = plan.part.real_columns
        others = plan.part.part(np.concatenate([plan.part.count_columns, plan.part.code_columns]))
        nodes: list[Node] = []
        if len(columns):
            scale = self.table.scale[columns]
            mean = plan.leaves.mean[0] * scale + self.table.shift[columns]
            nodes.append(MultivariateGaussian(columns.tolist(), mean, covariance * np.outer(scale, scale), tie=0))
        if others.n_columns:
            leaves = plan.part.part_of(plan.leaves, others.columns)
            rest = Plan(others, plan.total, leaves, np.zeros(0), np.zeros(0, dtype=bool))
            root = self._describer.describe(rest).root
            nodes.extend(root.children if isinstance(root, Product) else (root,))
        return nodes[0] if len(nodes) == 1 else Product(nodes)


def _with_leaves_of(root: Node, shared: Node) -> Node:
    """Copy a network with the leaf objects of another one of the same wiring."""
    built: dict[int, Node] = {}
    for node, twin in zip(walk(root), walk(shared), strict=True):
        if isinstance(twin, Leaf):
            built[id(node)] = twin
        elif isinstance(node, Sum):
            built[id(node)] = Sum([built[id(child)] for child in node.children], node.weights)
        else:
            built[id(node)] = Product([built[id(child)] for child in node.children])
    return built[id(root)]

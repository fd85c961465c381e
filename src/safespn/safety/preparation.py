"""From a table to a semi-supervised problem: the network of all rows, copied per class, and the prior that ties them.

Labels are not used here but to say which rows have one: what all classes have in common is learned from all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from safespn.learning.class_network import block_root, copies, imagined_rows
from safespn.learning.em import fit_em
from safespn.learning.expectation import TableExpectation
from safespn.learning.parameters import Anchor, Prior
from safespn.learning.structure import learn_spn
from safespn.network.leaves import MultivariateGaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, walk
from safespn.network.structure import Parameters, Structure, describe
from safespn.rows.memory import MemoryRows
from safespn.rows.parts import Rows
from safespn.safety.problem import Problem
from safespn.spn import SPN
from safespn.typing import FloatArray, IntArray

CATEGORY_PRIOR = 0.1


@dataclass(frozen=True)
class ClassPrior:
    """How strongly the classes are held near the whole table.

    Parameters
    ----------
    tied : bool
        The classes share the covariances of multivariate leaves.
    covariance_rows : float
        Rows imagined per column, for all classes together, whose covariance about the class mean is that of all rows.
    ridge : float
        Share by which the correlations of these imagined rows are taken back towards zero.
    """

    tied: bool
    covariance_rows: float
    ridge: float


# For each purpose the first is taken unless left-out labels clearly speak for the other.
CLASS_PRIORS = {
    "density": (
        ClassPrior(tied=True, covariance_rows=0.1, ridge=0.0),
        ClassPrior(tied=False, covariance_rows=1.0, ridge=0.0),
    ),
    "both": (
        ClassPrior(tied=True, covariance_rows=0.3, ridge=0.1),
        ClassPrior(tied=False, covariance_rows=1.0, ridge=0.1),
    ),
    "classes": (
        ClassPrior(tied=True, covariance_rows=1.0, ridge=0.5),
        ClassPrior(tied=False, covariance_rows=1.0, ridge=0.5),
    ),
}


@dataclass(frozen=True, eq=False)
class Preparation:
    """What the class networks start from, whatever the labels.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
    weights : array of shape (n_rows,) or None
    n_states : sequence of int
        Number of states of each column of codes, 0 for a real column.
    n_classes : int
    max_depth : int or None
        Depth of the learned structure; None for the simplest one, or where leaves have one column only the depth
        that Akaike's criterion prefers.
    multivariate : bool
        Allow leaves of several columns.
    relative_floor : float
        Lower bound of variances relative to a column's own variance.
    rows_per_class : float
        Rows imagined per class from the network of all rows.
    n_jobs : int or None
    """

    table: FloatArray
    weights: FloatArray | None
    n_states: Sequence[int]
    n_classes: int
    max_depth: int | None
    multivariate: bool
    relative_floor: float
    rows_per_class: float
    n_jobs: int | None
    _class_networks: dict[bool, tuple[Structure, Parameters, Anchor]] = field(default_factory=dict, init=False)

    def problem(self, codes: IntArray, class_prior: ClassPrior) -> tuple[Problem, Parameters]:
        """Copy the network of all rows per class, for these rows.

        Parameters
        ----------
        codes : array of shape (n_rows,)
            Class of each row, negative where unknown.
        """
        return self.problem_of(MemoryRows(self.table, codes, self.n_classes, self.weights, self.n_jobs), class_prior)

    def problem_of(self, rows: Rows, class_prior: ClassPrior) -> tuple[Problem, Parameters]:
        """Copy the network of all rows per class, for other rows than those that it was learned from."""
        structure, parameters, anchor = self._class_network(class_prior.tied)
        return Problem(structure, rows, Prior(0.0, self._leaf_prior(class_prior), anchor)), parameters

    def _class_network(self, tied: bool) -> tuple[Structure, Parameters, Anchor]:
        if tied not in self._class_networks:
            spn = SPN(copies(self.network_of_all_rows, self.n_classes, tied=tied))
            anchor = imagined_rows(spn._structure, spn._parameters, self.table, self.rows_per_class, self.weights)
            self._class_networks[tied] = (spn._structure, spn._parameters, anchor)
        return self._class_networks[tied]

    @cached_property
    def network_of_all_rows(self) -> Node:
        """The network that every class starts from."""
        if self.max_depth is not None or not self.multivariate:
            return learn_spn(
                self.table,
                leaves=["categorical" if states else "gaussian" for states in self.n_states],
                multivariate=self.multivariate,
                max_depth=self.max_depth,
                truncate="aic" if self.max_depth is None else None,
                sample_weight=self.weights,
            ).root
        spn = SPN(block_root(self.table, self.n_states))
        prior = Prior(0.0, LeafPrior(variance_floor=self.variance_floors, category_prior=CATEGORY_PRIOR))
        with warnings.catch_warnings():
            # With many missing cells twenty steps may not suffice, and need not: this is a starting point.
            warnings.simplefilter("ignore", ConvergenceWarning)
            rows = TableExpectation(spn._structure, self.table, weights=self.weights, n_jobs=self.n_jobs)
            fit = fit_em(rows, spn._parameters, prior=prior, max_iter=20)
        return describe(spn._structure, fit.parameters)

    @property
    def has_choice(self) -> bool:
        """Whether classes can differ in how they are regularised: only where they have a multivariate leaf."""
        return self._covariance_of_all_rows[1] > 0

    def _leaf_prior(self, class_prior: ClassPrior) -> LeafPrior:
        target, n_columns = self._covariance_of_all_rows
        covariance = (1 - class_prior.ridge) * target + class_prior.ridge * np.diag(np.diag(target))
        n_covariances = 1 if class_prior.tied else self.n_classes
        strength = class_prior.covariance_rows * n_columns / n_covariances
        return LeafPrior(self.variance_floors, CATEGORY_PRIOR, strength, covariance)

    @cached_property
    def _covariance_of_all_rows(self) -> tuple[FloatArray, int]:
        """Covariance of all columns, and how many of them one block holds: none where leaves are learned otherwise."""
        blocks = [node for node in walk(self.network_of_all_rows) if isinstance(node, MultivariateGaussian)]
        covariance = np.eye(self.table.shape[1])
        if self.max_depth is not None or len(blocks) != 1:
            return covariance, 0
        columns = np.array(blocks[0].columns)
        covariance[np.ix_(columns, columns)] = blocks[0].covariance
        return covariance, len(columns)

    @cached_property
    def variance_floors(self) -> FloatArray:
        """Variance floor of each column, in its squared unit."""
        table = self.table
        each = np.ones(len(table)) if self.weights is None else self.weights
        observed = ~np.isnan(table)
        total = np.maximum(each @ observed, 1e-300)
        filled = np.where(observed, table, 0.0)
        mean = each @ filled / total
        variance = each @ (observed * (filled - mean) ** 2) / total
        # A constant column says nothing about its spread, and its variance is rounding error: any small bound would
        # only inflate densities.
        constant = variance <= (1e-12 * np.abs(filled).max(axis=0)) ** 2
        return np.where(constant, 1.0, self.relative_floor * variance)

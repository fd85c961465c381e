"""What shared components know of the classes: tables ``p(y | c)`` by EM over all rows, labelled or not.

A row without a label belongs to several components at once and carries what one knows of the classes to the others:
label propagation as the EM of a sum-product network whose components are held fixed. It is inductive and linear in the
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safespn.class_networks.folds import Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.typing import FloatArray

PSEUDO_ROWS = 0.03
"""Pseudo-rows of the class proportions in the table of each component; unlabelled rows multiply them."""
PROPORTION_STEPS = 5
SMALLEST_TABLE_ENTRY = 1e-12


@dataclass(frozen=True, eq=False)
class Responsibilities:
    """Which components the rows of a table belong to.

    Parameters
    ----------
    table : LabelledTable
    folds : Folds
    values : array of shape (n_rows, n_components)
        Posterior probabilities of the components, of all rows.
    """

    table: LabelledTable
    folds: Folds
    values: FloatArray

    @cached_property
    def overlap(self) -> FloatArray:
        """Weight of the rows that two components share, shape (n_components, n_components)."""
        return np.asarray((self.values * self.table.weights[:, None]).T @ self.values)

    @cached_property
    def shares(self) -> FloatArray:
        """Share of all rows that each component has, shape (n_components,)."""
        return np.asarray(self.table.weights @ self.values / self.table.weights.sum())

    @cached_property
    def of_labelled(self) -> FloatArray:
        """Of the labelled rows, shape (n_labelled, n_components)."""
        return self.values[self.folds.rows]


def spread_tables(responsibilities: Responsibilities, weights: FloatArray) -> FloatArray:
    """p(y | c) where EM over labelled and unlabelled rows ends, shape (n_components, n_classes).

    A step of EM is ``tables <- normalise(labels + overlap @ tables)``, and the rows of ``tables`` sum to one: the
    fixed point solves a system of linear equations.

    Parameters
    ----------
    weights : array of shape (n_labelled,)
        Zero for labels that are left out.
    """
    labels = _label_counts(responsibilities, weights)
    overlap = responsibilities.overlap
    total = labels.sum(axis=1) + overlap.sum(axis=1)
    tables = np.linalg.solve(np.diag(total) - overlap, labels)
    tables = np.maximum(tables, SMALLEST_TABLE_ENTRY)
    # Spreading inflates large clusters: bring the mean prediction back to the labelled class proportions.
    target = _class_counts(responsibilities, weights).sum(axis=0) + 0.5
    for _ in range(PROPORTION_STEPS):
        tables = tables / tables.sum(axis=1, keepdims=True)
        tables = tables * (target / target.sum() / np.maximum(responsibilities.shares @ tables, 1e-9))
    tables = np.maximum(tables / tables.sum(axis=1, keepdims=True), SMALLEST_TABLE_ENTRY)
    return np.asarray(tables)


def _class_counts(responsibilities: Responsibilities, weights: FloatArray) -> FloatArray:
    """Weights of the labelled rows by class, shape (n_labelled, n_classes)."""
    classes = np.arange(responsibilities.table.n_classes)
    return np.asarray((responsibilities.folds.codes[:, None] == classes) * weights[:, None])


def _label_counts(responsibilities: Responsibilities, weights: FloatArray) -> FloatArray:
    """Weight of labels by component and class, with pseudo-rows, shape (n_components, n_classes).

    The pseudo-rows have the class proportions, with one row per class added, of the same weights: a label that is left
    out is left out of them, too.
    """
    indicators = _class_counts(responsibilities, weights)
    proportions = indicators.sum(axis=0) + 1
    counts = responsibilities.of_labelled.T @ indicators
    return np.asarray(counts + PSEUDO_ROWS * proportions / proportions.sum())

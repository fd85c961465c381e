"""A semi-supervised problem: a class network, rows with and without labels, and passes over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.learning.parameters import Prior
from safespn.network.structure import Parameters, Structure
from safespn.safety.contrast import contrast, gains, labelled_gains, worst_case
from safespn.safety.soft_labels import log_of, log_posterior
from safespn.typing import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows for a class network, labelled ones first.

    Parameters
    ----------
    structure : Structure
        Of a network whose root has one child per class.
    table : array of shape (n_labelled + n_unlabelled, n_columns)
    classes : array of shape (n_labelled,)
    weights : array of shape (n_rows,) or None
    prior : Prior
        What every parameter update respects.
    """

    structure: Structure
    table: AnyArray
    classes: IntArray
    weights: FloatArray | None = None
    prior: Prior = field(default_factory=Prior)
    n_jobs: int | None = None

    @property
    def n_classes(self) -> int:
        return self.structure.n_root_edges

    @property
    def n_labelled(self) -> int:
        return len(self.classes)

    @property
    def n_unlabelled(self) -> int:
        return len(self.table) - len(self.classes)

    @property
    def total_weight(self) -> float:
        return float(len(self.table) if self.weights is None else self.weights.sum())

    def labelled_part(self) -> Problem:
        """Return the problem without its unlabelled rows."""
        n = self.n_labelled
        weights = None if self.weights is None else self.weights[:n]
        return Problem(self.structure, self.table[:n], self.classes, weights, self.prior, self.n_jobs)

    def joint(self, parameters: Parameters) -> FloatArray:
        """Class joint of all rows, shape (n_rows, n_classes)."""
        return passes.log_joint(bind(self.structure, parameters), self.table, self.n_jobs)

    def evidence(self, of_unlabelled: FloatArray, tilt: float = 1.0, conditional: bool = False) -> Evidence:
        """Join the labels with log factors (n_unlabelled, n_classes) for the unlabelled rows."""
        known = np.where(self.classes[:, None] == np.arange(self.n_classes), 0.0, -np.inf)
        return Evidence(np.concatenate([known, of_unlabelled]), tilt, conditional)

    def soft_evidence(self, soft_labels: FloatArray, *, conditional: bool = False) -> Evidence:
        """Evidence of soft labels as the paper reads them: ``log S[u, q] = logsumexp_k(a_k + log q_k)``."""
        return self.evidence(log_of(soft_labels), 1.0, conditional)

    def complete_evidence(self, soft_labels: FloatArray, *, conditional: bool = False) -> Evidence:
        """Evidence of soft labels as row weights: class network k sees row m with weight ``q_mk``."""
        return self.evidence(log_of(soft_labels), 0.0, conditional)


class Comparison:
    """Compares models with the purely supervised one on a problem's rows.

    Parameters
    ----------
    problem : Problem
    supervised : Parameters
    conditional : bool
        Compare class posteriors instead of joint densities.
    """

    def __init__(self, problem: Problem, supervised: Parameters, conditional: bool = False) -> None:
        self.problem, self.supervised, self.conditional = problem, supervised, conditional
        self.rival = self.view(problem.joint(supervised))

    def view(self, joint: FloatArray) -> FloatArray:
        """What is compared of a class joint: itself, or the class posteriors."""
        return log_posterior(joint) if self.conditional else joint

    def gains(self, joint: FloatArray) -> FloatArray:
        """Gains of a model over the supervised one on all rows."""
        return gains(self.view(joint), self.rival)

    def labelled_gain(self, joint: FloatArray) -> float:
        """Gain on the labelled rows, in nats."""
        n, weights = self.problem.n_labelled, self.problem.weights
        per_row = labelled_gains(self.gains(joint)[:n], self.problem.classes)
        return float(per_row.sum() if weights is None else per_row @ weights[:n])

    def worst_case(self, joint: FloatArray) -> float:
        """Worst case of the contrast over all labellings, in nats."""
        n, each = self.problem.n_labelled, self.gains(joint)
        return worst_case(each[:n], self.problem.classes, each[n:], self.problem.weights)

    def contrast(self, joint: FloatArray, soft_labels: FloatArray) -> float:
        """Contrast at given soft labels, in nats."""
        n, weights = self.problem.n_labelled, self.problem.weights
        unlabelled = contrast(
            self.view(joint)[n:], self.rival[n:], soft_labels, None if weights is None else weights[n:]
        )
        return self.labelled_gain(joint) + unlabelled


@dataclass(frozen=True, eq=False)
class SafeFit:
    """A model learned from labelled and unlabelled rows.

    Parameters
    ----------
    history : list of dict
        For each iteration: objective, contrast at the soft labels and worst case (in nats), validation score if any.
    fallback : bool
        Whether the purely supervised model itself was returned.
    """

    parameters: Parameters
    soft_labels: FloatArray
    history: list[dict[str, Any]]
    converged: bool
    fallback: bool

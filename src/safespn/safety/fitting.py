"""From a problem and its supervised solution to a safe fit and its report, by whichever method was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from safespn.network.structure import Parameters
from safespn.safety.certified import fit_certified
from safespn.safety.mcp import fit_mcp
from safespn.safety.problem import Comparison, Problem, SafeFit
from safespn.safety.proportions import fit_proportion_certified, restricted_worst_case
from safespn.safety.report import SafetyReport, promises
from safespn.safety.soft_labels import dirichlet, optimistic
from safespn.typing import FloatArray

ROUNDING = 1e-9
"""Relative rounding error, per nat of log-likelihood, that a certificate may carry."""


@dataclass(frozen=True)
class Method:
    """How to guard against the unlabelled rows; see :class:`safespn.SafeSPNClassifier` for the parameters."""

    safety: str
    objective: str
    soft_label_init: str
    pessimism: float
    confidence: float
    max_iter: int
    tol: float

    @property
    def conditional(self) -> bool:
        return self.objective == "discriminative"

    def fit(
        self,
        problem: Problem,
        supervised: Parameters,
        validation_score: Callable[[Parameters], float] | None,
        generator: np.random.Generator,
    ) -> SafeFit:
        """Learn from all rows, starting from the supervised solution."""
        if problem.n_unlabelled == 0:
            return SafeFit(supervised, np.empty((0, problem.n_classes)), [], converged=True, fallback=False)
        # The prior keeps its proportion to the rows: it weighed against the labelled ones, now against all.
        share = problem.total_weight / problem.labelled_part().total_weight
        problem = replace(problem, prior=problem.prior.scaled(share))
        pessimism = 0.0 if self.safety == "none" else self.pessimism
        if self.safety == "mcp":
            start = self._start(problem, supervised, generator)
            return fit_mcp(
                problem,
                supervised,
                start,
                conditional=self.conditional,
                validation_score=validation_score,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        if not self.conditional:
            return fit_certified(
                problem,
                supervised,
                pessimism=pessimism,
                max_iter=self.max_iter,
                tol=self.tol,
                validation_score=validation_score,
            )
        fit = fit_proportion_certified(
            problem,
            supervised,
            confidence=self.confidence,
            pessimism=pessimism,
            max_iter=self.max_iter,
            tol=self.tol,
            validation_score=validation_score,
        )
        worse = validation_score is not None and validation_score(fit.parameters) < validation_score(supervised)
        if worse and self.safety != "none":
            return replace(fit, parameters=supervised, fallback=True)
        return fit

    def _start(self, problem: Problem, supervised: Parameters, generator: np.random.Generator) -> FloatArray:
        init = self.soft_label_init
        if init == "auto":
            init = "optimistic" if self.conditional else "dirichlet"
        if init == "dirichlet":
            return dirichlet(problem.n_unlabelled, problem.n_classes, generator)
        return optimistic(problem.joint(supervised)[problem.n_labelled :])

    def report(self, problem: Problem, supervised: Parameters, fit: SafeFit) -> SafetyReport:
        """Compare the fit with the supervised solution, exactly, and say what is promised."""
        comparison = Comparison(problem, supervised, self.conditional)
        n, joint, rival = problem.n_labelled, problem.joint(fit.parameters), problem.joint(supervised)
        if self.conditional and problem.n_unlabelled:
            worst_case, _ = restricted_worst_case(comparison, joint, self.confidence)
        else:
            worst_case = comparison.worst_case(joint)
        scale = np.abs(rival[np.isfinite(rival)]).sum()
        certified = bool(worst_case >= -ROUNDING * scale)
        different = joint[n:].argmax(axis=1) != rival[n:].argmax(axis=1)
        disagreement = float(different.mean()) if len(different) else 0.0
        contrast = comparison.contrast(joint, fit.soft_labels)
        return SafetyReport(
            safety=self.safety,
            objective=self.objective,
            n_labelled=n,
            n_unlabelled=problem.n_unlabelled,
            worst_case=worst_case,
            contrast=contrast,
            labelled_gain=comparison.labelled_gain(joint),
            certified=certified,
            fallback=fit.fallback,
            disagreement=disagreement,
            promises=promises(
                safety=self.safety,
                conditional=self.conditional,
                certified=certified,
                fallback=fit.fallback,
                disagreement=disagreement,
                n_unlabelled=problem.n_unlabelled,
                confidence=self.confidence,
                contrast=contrast,
            ),
        )

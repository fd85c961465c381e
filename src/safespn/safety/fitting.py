"""From a problem and its supervised solution to a safe fit and its report, by whichever method was asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from safespn.network.structure import Parameters
from safespn.safety.certified import fit_certified
from safespn.safety.checkpoint import Journal
from safespn.safety.climb import BatchClimber, Climber
from safespn.safety.mcp import fit_mcp
from safespn.safety.problem import Comparison, Problem, SafeFit, ValidationScore
from safespn.safety.proportions import fit_proportion_certified, restricted_worst_case
from safespn.safety.report import SafetyReport, promises
from safespn.safety.soft_labels import dirichlet
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
    batch_size: int | None = None

    @property
    def conditional(self) -> bool:
        return self.objective == "discriminative"

    def fit(
        self,
        problem: Problem,
        supervised: Parameters,
        validation_score: ValidationScore | None,
        generator: np.random.Generator,
        checkpoint: Path | None = None,
    ) -> SafeFit:
        """Learn from all rows, starting from the supervised solution; steps are kept in the folder ``checkpoint``."""
        if problem.n_unlabelled == 0:
            kept = Comparison(problem, supervised, self.conditional).start
            return SafeFit(supervised, kept, [], converged=True, fallback=False)
        # The prior keeps its proportion to the rows: it weighed against the labelled ones, now against all.
        problem = replace(problem, prior=problem.prior.scaled(problem.total_weight / problem.labelled_weight))
        pessimism = 0.0 if self.safety == "none" else self.pessimism
        if self.safety == "mcp":
            start = self._start(problem, generator)
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
            journal = None if checkpoint is None else self._journal(checkpoint, problem, supervised)
            climber = self._climber(problem, supervised, validation_score, generator, journal)
            fit = fit_certified(climber, pessimism=pessimism, max_iter=self.max_iter, tol=self.tol)
            if journal is not None:
                journal.close()
            return fit
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

    def _climber(
        self,
        problem: Problem,
        supervised: Parameters,
        validation_score: ValidationScore | None,
        generator: np.random.Generator,
        journal: Journal | None,
    ) -> Climber:
        if self.batch_size is None:
            return Climber(
                problem, supervised, n_passes=self.max_iter, validation_score=validation_score, journal=journal
            )
        return BatchClimber(
            problem,
            supervised,
            self.batch_size,
            generator,
            n_passes=self.max_iter,
            validation_score=validation_score,
            journal=journal,
        )

    def _journal(self, folder: Path, problem: Problem, supervised: Parameters) -> Journal:
        rows = problem.rows
        identity = {"method": asdict(self), "rows": rows.counts.tolist(), "parts": rows.n_parts}
        return Journal(folder, supervised, identity)

    def _start(self, problem: Problem, generator: np.random.Generator) -> FloatArray | None:
        init = self.soft_label_init
        if init == "auto":
            init = "optimistic" if self.conditional else "dirichlet"
        if init == "dirichlet":
            return dirichlet(problem.n_unlabelled, problem.n_classes, generator)
        return None

    def report(self, problem: Problem, supervised: Parameters, fit: SafeFit) -> SafetyReport:
        """Compare the fit with the supervised solution, exactly, and say what is promised."""
        comparison = Comparison(problem, supervised, self.conditional)
        assessment = comparison.assess(fit.parameters, fit.kept)
        worst_case, contrast = assessment.worst_case, assessment.contrast
        if self.conditional and problem.n_unlabelled:
            worst_case, _ = restricted_worst_case(comparison, fit.parameters, self.confidence)
        certified = bool(worst_case >= -ROUNDING * assessment.magnitude)
        disagreement = assessment.n_changed / max(problem.n_unlabelled, 1)
        return SafetyReport(
            safety=self.safety,
            objective=self.objective,
            n_labelled=problem.n_labelled,
            n_unlabelled=problem.n_unlabelled,
            worst_case=worst_case,
            contrast=contrast,
            labelled_gain=assessment.labelled_gain,
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

"""From a problem and its supervised solution to a safe fit and its report, by whichever method was asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from safespn.foundation.simplex import dirichlet
from safespn.network.structure import Parameters
from safespn.safety.certified import fit_certified
from safespn.safety.certified_em import CertifiedEM, StepwiseCertifiedEM
from safespn.safety.checkpoint import Journal
from safespn.safety.mcp import fit_mcp
from safespn.safety.problem import Comparison, Problem, SafeFit, ValidationScore
from safespn.safety.proportions import fit_proportion_certified, restricted_worst_case
from safespn.safety.report import SafetyReport, promises
from safespn.safety.tasks import Assessment
from safespn.typing import FloatArray, IntArray

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
        """Learn from all rows, starting from the supervised solution; steps are saved in the folder ``checkpoint``."""
        if problem.n_unlabelled == 0:
            states = Comparison(problem, supervised, self.conditional).start
            return SafeFit(supervised, states, [], converged=True, fallback=False)
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
            with self._journal(checkpoint, problem, supervised, generator) as journal:
                em = self._em(problem, supervised, validation_score, generator, journal)
                fit = fit_certified(em, pessimism=pessimism, max_iter=self.max_iter, tol=self.tol)
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

    def _em(
        self,
        problem: Problem,
        supervised: Parameters,
        validation_score: ValidationScore | None,
        generator: np.random.Generator,
        journal: Journal | None,
    ) -> CertifiedEM:
        if self.batch_size is None:
            return CertifiedEM(
                problem, supervised, n_passes=self.max_iter, validation_score=validation_score, journal=journal
            )
        return StepwiseCertifiedEM(
            problem,
            supervised,
            self.batch_size,
            generator,
            n_passes=self.max_iter,
            validation_score=validation_score,
            journal=journal,
        )

    def _journal(
        self, folder: Path | None, problem: Problem, supervised: Parameters, generator: np.random.Generator
    ) -> AbstractContextManager[Journal | None]:
        if folder is None:
            return nullcontext()
        # Only mini-batches are drawn, so only with them another seed is another fit.
        drawn = None if self.batch_size is None else str(generator.bit_generator.state)
        return Journal(folder, problem, supervised, {**asdict(self), "generator": drawn})

    def _start(self, problem: Problem, generator: np.random.Generator) -> FloatArray | None:
        init = self.soft_label_init
        if init == "auto":
            init = "optimistic" if self.conditional else "dirichlet"
        if init == "dirichlet":
            return dirichlet(problem.n_unlabelled, problem.n_classes, generator)
        return None

    def report(self, problem: Problem, supervised: Parameters, fit: SafeFit, network: str) -> SafetyReport:
        """Compare the fit with the supervised solution, exactly, and say what is promised."""
        comparison = Comparison(problem, supervised, self.conditional)
        assessment = comparison.assess(fit.parameters, fit.states)
        if self.conditional and problem.n_unlabelled:
            worst_case, _ = restricted_worst_case(comparison, fit.parameters, self.confidence, assessment.labelled_gain)
            assessment = replace(assessment, worst_case=worst_case)
        return self.report_of(assessment, problem.rows.counts, fit.fallback, network)

    def report_of(self, assessment: Assessment, counts: IntArray, fallback: bool, network: str) -> SafetyReport:
        """Say what an assessment on all rows promises.

        Parameters
        ----------
        counts : array of shape (n_classes + 1,)
            Number of rows of each class and, last, of unknown class.
        network : str
            What the model consists of, in words.
        """
        # A comparison with NaN is false: what cannot be computed is not certified.
        certified = bool(assessment.worst_case >= -ROUNDING * assessment.magnitude)
        n_unlabelled = int(counts[-1])
        disagreement = assessment.n_changed / max(n_unlabelled, 1)
        return SafetyReport(
            safety=self.safety,
            objective=self.objective,
            network=network,
            n_labelled=int(counts[:-1].sum()),
            n_unlabelled=n_unlabelled,
            worst_case=assessment.worst_case,
            density_gain=assessment.density_gain,
            posterior_loss=assessment.density_gain - assessment.worst_case,
            contrast=assessment.contrast,
            labelled_gain=assessment.labelled_gain,
            certified=certified,
            fallback=fallback,
            disagreement=disagreement,
            promises=promises(
                safety=self.safety,
                conditional=self.conditional,
                certified=certified,
                fallback=fallback,
                disagreement=disagreement,
                n_unlabelled=n_unlabelled,
                confidence=self.confidence,
                contrast=assessment.contrast,
            ),
        )

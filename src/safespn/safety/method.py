"""From a problem and its supervised solution to a safe fit and its report, by whichever method was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from safespn.foundation.simplex import dirichlet
from safespn.network.structure import Parameters
from safespn.rows.lockstep import run_in_lockstep
from safespn.safety.certified import certified_passes
from safespn.safety.certified_em import CertifiedEM, StepwiseCertifiedEM
from safespn.safety.checkpoint import Journal, row_digests
from safespn.safety.checkpoint_folder import CheckpointFolder
from safespn.safety.mcp import fit_mcp
from safespn.safety.problem import Comparison, Problem, SafeFit, ValidationScore
from safespn.safety.progress import PassMonitor
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
        if self.safety != "mcp" and not self.conditional:
            return self.fit_together([problem], [supervised], generator, checkpoint, validation_score=validation_score)[
                0
            ]
        problem = _with_prior_for_all_rows(problem)
        monitor = PassMonitor(problem.n_labelled + problem.n_unlabelled, self.max_iter)
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
                monitor=monitor,
            )
        fit = fit_proportion_certified(
            problem,
            supervised,
            confidence=self.confidence,
            pessimism=self._pessimism,
            max_iter=self.max_iter,
            tol=self.tol,
            validation_score=validation_score,
            monitor=monitor,
        )
        worse = validation_score is not None and validation_score(fit.parameters) < validation_score(supervised)
        if worse and self.safety != "none":
            return replace(fit, parameters=supervised, fallback=True)
        return fit

    def fit_together(
        self,
        problems: Sequence[Problem],
        supervised: Sequence[Parameters],
        generator: np.random.Generator,
        checkpoint: Path | None = None,
        names: Sequence[str] = ("",),
        *,
        validation_score: ValidationScore | None = None,
        returns_soft_labels: bool = True,
    ) -> list[SafeFit]:
        """Learn several networks from the same rows by EM: in every pass the rows are read once, for all of them.

        Parameters
        ----------
        problems : sequence of Problem
            With the same rows, some of them unlabelled.
        supervised : sequence of Parameters
            Where each network starts.
        checkpoint : Path, optional
            Folder for the steps of all. They are kept until the last network is done.
        names : sequence of str
            Folder of each network in there; the empty name stands for the folder itself.
        returns_soft_labels : bool
            Whether the caller needs the row states of the fits.
        """
        problems = [_with_prior_for_all_rows(problem) for problem in problems]
        rows = problems[0].rows
        monitor = PassMonitor(int(rows.counts.sum()), self.max_iter)
        with ExitStack() as stack:
            journals: list[Journal] = []
            if checkpoint is not None:
                holder = stack.enter_context(CheckpointFolder(checkpoint, names))
                # Only mini-batches are drawn, so only with them another seed is another fit.
                drawn = None if self.batch_size is None else str(generator.bit_generator.state)
                settings = {**asdict(self), "generator": drawn}
                digests = row_digests(problems[0])
                for name, problem, start in zip(names, problems, supervised, strict=True):
                    journals.append(Journal(holder, name, problem, start, settings, digests))
            options = {"validation_score": validation_score, "returns_soft_labels": returns_soft_labels}
            ems = [
                self._em(problem, start, generator, journal=journal, **options)
                for problem, start, journal in zip_longest(problems, supervised, journals)
            ]
            fits = run_in_lockstep(
                rows,
                [certified_passes(em, pessimism=self._pessimism, max_iter=self.max_iter, tol=self.tol) for em in ems],
                lambda: monitor.tell(
                    max(len(em.history) for em in ems),
                    # Unguarded fits return the last model, whatever its worst case.
                    [em.best_worst_case if self._pessimism == 1 else em.position.worst_case for em in ems],
                ),
            )
            for journal in journals:
                journal.close()
        return fits

    @property
    def _pessimism(self) -> float:
        return 0.0 if self.safety == "none" else self.pessimism

    def _em(
        self, problem: Problem, supervised: Parameters, generator: np.random.Generator, **options: Any
    ) -> CertifiedEM:
        if self.batch_size is None:
            return CertifiedEM(problem, supervised, n_passes=self.max_iter, **options)
        return StepwiseCertifiedEM(problem, supervised, self.batch_size, generator, n_passes=self.max_iter, **options)

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


def _with_prior_for_all_rows(problem: Problem) -> Problem:
    """Keep the prior's proportion to the rows: it weighed against the labelled ones, now against all."""
    return replace(problem, prior=problem.prior.scaled(problem.total_weight / problem.labelled_weight))

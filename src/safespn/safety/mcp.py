"""MCP-SPN, the paper's Algorithm 1: optimistic steps on the parameters against pessimistic steps on the soft labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.network.structure import Parameters
from safespn.safety.problem import Comparison, Problem, ProblemSource, SafeFit, ValidationScore
from safespn.safety.progress import PassMonitor
from safespn.safety.supervised import STEPS_ON_PARAMETERS, improve
from safespn.safety.tasks import Assessment, SoftLabelStep
from safespn.typing import FloatArray

PATIENCE = 10
"""Iterations without a better validation score before early stopping."""


def fit_mcp(
    problem: Problem,
    supervised: Parameters,
    soft_labels: FloatArray | None = None,
    *,
    conditional: bool = False,
    step_size: float = 0.1,
    max_iter: int = 100,
    tol: float = 1e-5,
    validation_score: ValidationScore | None = None,
    monitor: PassMonitor | None = None,
) -> SafeFit:
    """Alternate some steps on the parameters at fixed soft labels with a projected gradient step on the soft labels.

    Parameters
    ----------
    soft_labels : array of shape (n_unlabelled, n_classes)
        Where the soft labels start; at the supervised model's own if not given.
    conditional : bool
        Learn the conditional likelihood (discriminative) instead of the likelihood (generative).
    step_size : float
        Size alpha of the first step on the soft labels; step t has size ``alpha / sqrt(t)``.
    validation_score : callable, optional
        Scores parameters on validation rows, higher is better; the best iterate is returned (for the conditional
        likelihood the supervised model if none is better), and the fit stops early.
    monitor : PassMonitor, optional
        Told of every iteration.

    Returns
    -------
    SafeFit
        At the returned soft labels the model is never less likely than the supervised one: an iterate is kept only if
        the contrast at its own soft labels is not negative, and the supervised model is returned if there is none.
    """
    comparison = Comparison(problem, supervised, conditional)
    states = best_states = comparison.start if soft_labels is None else comparison.at(soft_labels)
    parameters, best, best_score = supervised, supervised, -np.inf
    history: list[dict[str, Any]] = []
    converged, n_without_gain, last = False, 0, -np.inf
    for iteration in range(1, max_iter + 1):
        source = ProblemSource(problem, states, conditional=conditional)
        parameters = improve(
            source, parameters, problem.prior, conditional=conditional, max_iter=STEPS_ON_PARAMETERS, tol=tol
        )
        assessment = comparison.assess(parameters, states)
        value = assessment.contrast
        score = value if validation_score is None else validation_score(parameters)
        history.append(_record(assessment, validation_score, score))
        if monitor is not None:
            monitor.tell(iteration, [assessment.worst_case])
        n_without_gain += 1
        if value >= 0 and (validation_score is None or score > best_score):
            best, best_states, best_score, n_without_gain = parameters, states, score, 0
        converged = abs(value - last) < tol * problem.total_weight
        last = value
        if converged or (validation_score is not None and n_without_gain >= PATIENCE):
            break
        _, states = problem.run(SoftLabelStep(parameters, step_size / np.sqrt(iteration), conditional), states)
    if conditional and validation_score is not None and best_score < validation_score(supervised):
        best = supervised
    return SafeFit(best, best_states, history, converged, fallback=best is supervised)


def _record(assessment: Assessment, validates: object, score: float) -> dict[str, Any]:
    contrast = assessment.contrast
    entry = {"objective": contrast, "contrast": contrast, "worst_case": assessment.worst_case}
    return entry if validates is None else {**entry, "validation_score": score}

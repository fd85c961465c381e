"""The certified fit: maximise the worst case itself, smoothed, and keep only models whose exact worst case is positive.

The smoothed worst case replaces every minimum over classes by a soft one of temperature tau. Its gradient is that of
the complete-data log-likelihood at soft labels ``q_mk`` proportional to ``exp(-c_mk / tau)``, so an EM step in which
class network k sees row m with weight ``q_mk`` climbs it. Soft labels are averaged over iterations, which keeps the
two players from chasing each other, and the temperature falls by stages. The exact worst case of every iterate is
known from one pass; the best one is kept, and the supervised model is returned when none is positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.learning.parameters import maximise
from safespn.network.structure import Parameters
from safespn.safety.problem import Comparison, Problem, SafeFit
from safespn.safety.soft_labels import optimistic, pessimistic

TEMPERATURES = (10.0, 3.0, 1.0, 0.3, 0.1)


def fit_certified(
    problem: Problem,
    supervised: Parameters,
    *,
    pessimism: float = 1.0,
    max_iter: int = 75,
    tol: float = 1e-5,
) -> SafeFit:
    """Learn a class network that is at least as likely as the supervised one for every labelling.

    Parameters
    ----------
    pessimism : float
        Share of the pessimistic soft labels; the rest are the model's own. At 0 this is plain EM. Below 1 the last
        model is returned, certified or not.
    max_iter : int
        EM steps in all, over the stages of falling temperature.
    tol : float
        A stage ends early when the worst case per row rises by less than this many nats.
    """
    comparison = Comparison(problem, supervised)
    n, structure = problem.n_labelled, problem.structure
    parameters, best, best_worst_case = supervised, supervised, 0.0
    soft_labels = optimistic(comparison.rival[n:])
    best_soft_labels = soft_labels
    history: list[dict[str, Any]] = []
    per_stage = max(1, max_iter // len(TEMPERATURES))
    converged = False
    joint = comparison.rival
    for temperature in TEMPERATURES:
        last = -np.inf
        for _ in range(per_stage):
            own, worst = optimistic(joint[n:]), pessimistic(comparison.gains(joint)[n:], temperature)
            target = pessimism * worst + (1 - pessimism) * own
            rate = 1.0 if pessimism == 0 else (len(history) + 1) ** -0.5
            soft_labels = soft_labels + rate * (target - soft_labels)
            evidence = problem.complete_evidence(soft_labels)
            statistics = passes.statistics(
                bind(structure, parameters),
                problem.table,
                evidence,
                problem.weights,
                n_passes=max_iter,
                n_jobs=problem.n_jobs,
            )
            parameters = maximise(structure, parameters, statistics, problem.prior)
            joint = problem.joint(parameters)
            value = comparison.worst_case(joint)
            history.append(
                {
                    "objective": statistics.objective,
                    "contrast": comparison.contrast(joint, soft_labels),
                    "worst_case": value,
                }
            )
            if value > best_worst_case or pessimism < 1:
                best, best_worst_case, best_soft_labels = parameters, value, soft_labels
            converged = abs(value - last) < tol * problem.total_weight
            last = value
            if converged:
                break
    return SafeFit(best, best_soft_labels, history, converged, fallback=best is supervised)

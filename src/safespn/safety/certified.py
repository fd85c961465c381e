"""The certified fit: maximise the worst case itself, smoothed, and keep only models whose exact worst case is positive.

The smoothed worst case replaces every minimum over classes by a soft one of temperature tau. Its gradient is that of
the complete-data log-likelihood at soft labels ``q_mk`` proportional to ``exp(-c_mk / tau)``, so an EM step in which
class network k sees row m with weight ``q_mk`` climbs it. Soft labels are averaged over iterations, which keeps the two
players from chasing each other, and the temperature falls by stages. The exact worst case of every iterate is known
from one pass; the best one is kept, and the supervised model is returned when none is positive.

The best worst case is more than safety asks for. In a last stage the model's own soft labels get a growing share, as
long as the worst case stays above ``KEPT_SHARE`` of the best: a little of the margin buys likelihood.
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
from safespn.typing import FloatArray

TEMPERATURES = (10.0, 3.0, 1.0, 0.3, 0.1)
RELAXED_PESSIMISM = (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0)
RELAXED_TEMPERATURE = 0.3
RELAXED_STEPS = 4
KEPT_SHARE = 0.9


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
        EM steps in all, over the stages of falling temperature; the last stage adds a few.
    tol : float
        A stage ends early when the worst case per row rises by less than this many nats.
    """
    climb = _Climb(problem, supervised, max_iter)
    best, best_value = supervised, 0.0
    best_soft_labels = climb.soft_labels
    converged = False
    for temperature in TEMPERATURES:
        last = -np.inf
        for _ in range(max(1, max_iter // len(TEMPERATURES))):
            rate = 1.0 if pessimism == 0 else (len(climb.history) + 1) ** -0.5
            value = climb.step(pessimism, temperature, rate)
            if value > best_value or pessimism < 1:
                best, best_value, best_soft_labels = climb.parameters, value, climb.soft_labels
            converged = abs(value - last) < tol * problem.total_weight
            last = value
            if converged:
                break
    if pessimism == 1 and best is not supervised:
        best, best_soft_labels = _relax(climb, best, best_value, best_soft_labels)
    return SafeFit(best, best_soft_labels, climb.history, converged, fallback=best is supervised)


def _relax(
    climb: _Climb, best: Parameters, best_value: float, soft_labels: FloatArray
) -> tuple[Parameters, FloatArray]:
    """Trust the model's own soft labels more and more, as long as most of the worst case is kept."""
    climb.move_to(best)
    rate = 1.0
    for pessimism in RELAXED_PESSIMISM:
        value = best_value
        for _ in range(RELAXED_STEPS):
            value = climb.step(pessimism, RELAXED_TEMPERATURE, rate)
            rate = 0.5
        if not value >= KEPT_SHARE * best_value:
            break
        best, soft_labels = climb.parameters, climb.soft_labels
    return best, soft_labels


class _Climb:
    """EM steps with class weights, the soft labels that they use, and what became of the worst case."""

    def __init__(self, problem: Problem, supervised: Parameters, max_iter: int) -> None:
        self.problem, self.max_iter = problem, max_iter
        self.comparison = Comparison(problem, supervised)
        self.parameters, self.joint = supervised, self.comparison.rival
        self.soft_labels = optimistic(self.joint[problem.n_labelled :])
        self.history: list[dict[str, Any]] = []

    def move_to(self, parameters: Parameters) -> None:
        """Go on from other parameters."""
        self.parameters, self.joint = parameters, self.problem.joint(parameters)

    def step(self, pessimism: float, temperature: float, rate: float) -> float:
        """Move the soft labels by ``rate`` towards their targets, make an EM step, and return the exact worst case."""
        problem, n = self.problem, self.problem.n_labelled
        worst = pessimistic(self.comparison.gains(self.joint)[n:], temperature)
        target = pessimism * worst + (1 - pessimism) * optimistic(self.joint[n:])
        self.soft_labels = self.soft_labels + rate * (target - self.soft_labels)
        statistics = passes.statistics(
            bind(problem.structure, self.parameters),
            problem.table,
            problem.complete_evidence(self.soft_labels),
            problem.weights,
            n_passes=self.max_iter,
            n_jobs=problem.n_jobs,
        )
        self.move_to(maximise(problem.structure, self.parameters, statistics, problem.prior))
        value = self.comparison.worst_case(self.joint)
        contrast = self.comparison.contrast(self.joint, self.soft_labels)
        self.history.append({"objective": statistics.objective, "contrast": contrast, "worst_case": value})
        return value

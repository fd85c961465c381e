"""Certificates over soft labels with plausible class proportions, for class posteriors.

Over *all* soft labels nothing can be gained in class posteriors: they sum to one, so every row has a class that loses.
But the unlabelled rows are not labelled at will: their class proportions lie near those of the labelled rows. The
worst case over soft labels q whose mean lies in an interval per class is a linear programme::

    minimise  sum_m w_m sum_k q_mk g_mk   over q on the simplex with   lower_k <= sum_m w_m q_mk / sum_m w_m <= upper_k

with ``g`` the gains in log posterior. For two classes it is a sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, stats
from scipy.optimize import linprog

from safespn.foundation.posteriors import gains
from safespn.network.structure import Parameters
from safespn.safety.problem import Comparison, Problem, ProblemSource, SafeFit, ValidationScore
from safespn.safety.progress import PassMonitor
from safespn.safety.supervised import STEPS_ON_PARAMETERS, improve
from safespn.safety.tasks import Posteriors, UnlabelledWeights
from safespn.typing import FloatArray, IntArray


def proportion_interval(counts: IntArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson intervals of the class proportions, which hold together with the given confidence.

    Parameters
    ----------
    counts : array of shape (n_classes,)
        Labelled rows of each class.

    Returns
    -------
    lower, upper : arrays of shape (n_classes,)
    """
    n = int(counts.sum())
    error = (1 - confidence) / len(counts) / 2
    lower = np.where(counts > 0, stats.beta.ppf(error, counts, n - counts + 1), 0.0)
    upper = np.where(counts < n, stats.beta.ppf(1 - error, counts + 1, np.maximum(n - counts, 1)), 1.0)
    return lower, upper


def worst_soft_labels(
    unlabelled: FloatArray, lower: FloatArray, upper: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Soft labels with proportions within the interval at which the weighted sum of ``q * gains`` is least."""
    n_rows, n_classes = unlabelled.shape
    row_weights = np.ones(n_rows) if weights is None else weights
    bounded = np.clip(unlabelled, -1e9, 1e9)
    if n_classes == 2:
        return _worst_of_two(bounded, lower, upper, row_weights)
    each_row = sparse.kron(sparse.eye(n_rows), np.ones((1, n_classes)))
    each_class = sparse.kron(row_weights[None, :] / row_weights.sum(), sparse.eye(n_classes))
    solution = linprog(
        (bounded * row_weights[:, None]).ravel(),
        A_ub=sparse.vstack([each_class, -each_class]),
        b_ub=np.concatenate([upper, -lower]),
        A_eq=each_row,
        b_eq=np.ones(n_rows),
        bounds=(0, 1),
        method="highs",
    )
    if solution.status != 0:
        raise RuntimeError(f"the linear programme of the certificate was not solved: {solution.message}")
    return np.asarray(solution.x.reshape(n_rows, n_classes))


def _worst_of_two(gains: FloatArray, lower: FloatArray, upper: FloatArray, weights: FloatArray) -> FloatArray:
    """Give class 1 to the rows where that costs most, up to the largest, or least, share of weight that it may have."""
    least, most = max(lower[1], 1 - upper[0]), min(upper[1], 1 - lower[0])
    cost = gains[:, 1] - gains[:, 0]
    order = np.argsort(cost, kind="stable")
    share = weights[order] / weights.sum()
    before = np.cumsum(share) - share
    wanted = float(share[cost[order] < 0].sum())
    mass = np.clip(wanted, least, most)
    filled = np.divide(mass - before, share, out=np.zeros_like(share), where=share > 0)
    second = np.empty(len(gains))
    second[order] = np.clip(filled, 0.0, 1.0)
    return np.column_stack([1 - second, second])


def log_posteriors(problem: Problem, parameters: Parameters) -> FloatArray:
    """Log class posteriors of all unlabelled rows, gathered, shape (n_unlabelled, n_classes)."""
    gathered: FloatArray = problem.rows.concatenate_unlabelled(
        problem.run(Posteriors(parameters))[1], problem.n_classes
    )
    return gathered


def restricted_worst_case(
    comparison: Comparison, parameters: Parameters, confidence: float, labelled_gain: float
) -> tuple[float, FloatArray]:
    """Worst case over soft labels with plausible proportions, in nats, and those soft labels."""
    problem = comparison.problem
    lower, upper = proportion_interval(problem.class_counts, confidence)
    each = gains(log_posteriors(problem, parameters), log_posteriors(problem, comparison.supervised))
    weights = problem.rows.concatenate_unlabelled(problem.run(UnlabelledWeights())[1], 1)[:, 0]
    if np.isnan(each).any():
        # Where a model gives no number nothing is certain, also if the worst soft labels elude it.
        return np.nan, np.full_like(each, 1 / problem.n_classes)
    soft_labels = worst_soft_labels(each, lower, upper, weights)
    per_row = np.where(soft_labels > 0, soft_labels * np.where(soft_labels > 0, each, 0.0), 0.0).sum(axis=1)
    return labelled_gain + float(per_row @ weights), soft_labels


def fit_proportion_certified(
    problem: Problem,
    supervised: Parameters,
    *,
    confidence: float = 0.95,
    pessimism: float = 1.0,
    max_iter: int = 30,
    tol: float = 1e-5,
    validation_score: ValidationScore | None = None,
    monitor: PassMonitor | None = None,
) -> SafeFit:
    """Learn class posteriors that beat the supervised ones for every labelling with plausible class proportions.

    The worst soft labels so far are averaged (fictitious play), L-BFGS steps follow, and the iterate with the
    best exact restricted worst case is kept; the supervised model is returned when none is positive. ``max_iter``
    counts the steps on the parameters, of which the ``monitor`` is told.
    """
    comparison = Comparison(problem, supervised, conditional=True)
    parameters, best, best_value = supervised, supervised, 0.0
    _, soft_labels = restricted_worst_case(comparison, supervised, confidence, labelled_gain=0.0)
    average = np.exp(log_posteriors(problem, supervised))
    states = best_states = comparison.start
    history: list[dict[str, Any]] = []
    converged = False
    for iteration in range(1, max(2, max_iter // STEPS_ON_PARAMETERS + 1)):
        target = pessimism * soft_labels + (1 - pessimism) * np.exp(log_posteriors(problem, parameters))
        average = average + (target - average) / (iteration + 1)
        states = comparison.at(average)
        source = ProblemSource(problem, states, tilt=0.0, conditional=True)
        parameters = improve(source, parameters, problem.prior, conditional=True, max_iter=STEPS_ON_PARAMETERS, tol=tol)
        assessment = comparison.assess(parameters, states)
        value, soft_labels = restricted_worst_case(comparison, parameters, confidence, assessment.labelled_gain)
        history.append({"objective": value, "contrast": assessment.contrast, "worst_case": value})
        if validation_score is not None:
            history[-1]["validation_score"] = validation_score(parameters)
        if value > best_value or pessimism < 1:
            best, best_value, best_states = parameters, value, states
        if monitor is not None:
            monitor.tell(min(iteration * STEPS_ON_PARAMETERS, max_iter), [best_value])
        if iteration > 5 and abs(value - history[-2]["worst_case"]) < tol * problem.total_weight:
            converged = True
            break
    return SafeFit(best, best_states, history, converged, fallback=best is supervised)

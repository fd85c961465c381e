"""Gradient fits of the (conditional) likelihood: L-BFGS on all rows, Adam on mini-batches.

Gradients come from the same flows as EM. With ``hard=True`` they are those of max-product (Gens and Domingos 2012):
each row counts for its best tree given the evidence, minus, for a conditional likelihood, its best tree with the class
unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from safespn.engine.evidence import Evidence
from safespn.learning.em import FitResult, warn_not_converged
from safespn.learning.parameters import Prior, UnconstrainedParameters, constrain, log_prior
from safespn.learning.statistics_source import StatisticsSource, TableSource
from safespn.network.columns import check_cells
from safespn.network.structure import Parameters
from safespn.typing import FloatArray


def objective_and_gradient(
    coordinates: UnconstrainedParameters,
    vector: FloatArray,
    source: StatisticsSource,
    prior: Prior | None = None,
    *,
    n_passes: int = 1,
) -> tuple[float, FloatArray]:
    """Penalised (conditional) log-likelihood in nats at the packed parameters ``vector``, and its gradient there."""
    prior = prior or Prior()
    structure, parameters = coordinates.structure, coordinates.unpack(vector)
    statistics = source.statistics(parameters, n_passes)
    value = statistics.objective + log_prior(structure, parameters, prior)
    return value, coordinates.gradient(parameters, statistics, prior)


def fit_lbfgs(
    source: StatisticsSource,
    parameters: Parameters,
    *,
    prior: Prior | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> FitResult:
    """Maximise the objective by L-BFGS-B on the packed parameters; variance floors are bounds.

    ``tol`` is the rise of the mean objective per row, in nats, below which the fit stops.
    """
    prior = prior or Prior()
    structure, total_weight = source.structure, source.total_weight
    parameters = constrain(structure, parameters, prior)
    coordinates = UnconstrainedParameters(structure, parameters)
    start = coordinates.pack(parameters)
    trace: list[float] = []

    def negative(vector: FloatArray) -> tuple[float, FloatArray]:
        value, slope = objective_and_gradient(coordinates, vector, source, prior, n_passes=max_iter)
        if not np.isfinite(value):
            # A step into parameters that make some row impossible: let the line search turn back.
            return 1e300, np.zeros_like(slope)
        return -value / total_weight, -slope / total_weight

    trace.append(-negative(start)[0])
    converged = False

    def record(intermediate_result: object) -> None:
        nonlocal converged
        trace.append(-float(intermediate_result.fun))  # type: ignore[attr-defined]
        converged = trace[-1] - trace[-2] < tol
        if converged:
            raise StopIteration

    from scipy.optimize import minimize  # slow to import, and EM needs none of it

    lower = coordinates.lower_bound(parameters, prior)
    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([lower, np.full_like(lower, np.inf)]),
        callback=record,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 10, "ftol": 0.0, "gtol": 1e-10},
    )
    converged = converged or bool(result.success)
    if not converged:
        warn_not_converged("L-BFGS", max_iter, tol)
    best = result.x if -result.fun >= trace[0] else start
    return FitResult(coordinates.unpack(best), np.array(trace), converged)


def fit_adam(
    source: TableSource,
    parameters: Parameters,
    *,
    prior: Prior | None = None,
    max_iter: int = 20,
    tol: float = 1e-4,
    batch_size: int = 1024,
    learning_rate: float = 0.02,
    generator: np.random.Generator | None = None,
) -> FitResult:
    """Maximise the objective by Adam (Kingma and Ba 2015) on mini-batches; one iteration is one pass over all rows.

    The objective of an iteration is the mean over its mini-batches, each before its own step. When it does not rise by
    ``tol``, the learning rate is halved; after three such iterations in a row the fit has converged. The parameters
    returned are the average over the last iteration.
    """
    prior = prior or Prior()
    structure, table, weights = source.structure, source.table, source.weights
    evidence, total_weight = source.evidence or Evidence(), source.total_weight
    generator = generator or np.random.default_rng(0)
    check_cells(table, structure.domains)
    parameters = constrain(structure, parameters, prior)
    coordinates = UnconstrainedParameters(structure, parameters)
    vector = coordinates.pack(parameters)
    lower = coordinates.lower_bound(parameters, prior)
    step = _adam_steps(len(vector))
    trace: list[float] = []
    average = vector
    n_without_rise = 0
    for _ in range(max_iter):
        order = generator.permutation(len(table))
        total, n_batches, seen = 0.0, 0, np.zeros_like(vector)
        for begin in range(0, len(table), batch_size):
            rows = np.sort(order[begin : begin + batch_size])
            batch_weights = None if weights is None else weights[rows]
            share = (len(rows) if batch_weights is None else float(batch_weights.sum())) / total_weight
            batch = replace(source, table=table[rows], evidence=evidence.take(rows), weights=batch_weights)
            n_passes = max_iter * (len(table) // batch_size + 1)
            value, slope = objective_and_gradient(coordinates, vector, batch, prior.scaled(share), n_passes=n_passes)
            total += value
            if share > 0:
                vector = vector + step(slope / (share * total_weight), learning_rate)
                vector = np.maximum(vector, lower)
            seen += vector
            n_batches += 1
        average = seen / n_batches
        trace.append(total / total_weight)
        rises = len(trace) == 1 or trace[-1] - max(trace[:-1]) >= tol
        n_without_rise = 0 if rises else n_without_rise + 1
        learning_rate = learning_rate if rises else learning_rate / 2
        if n_without_rise == 3:
            break
    converged = n_without_rise == 3
    if not converged:
        warn_not_converged("Adam", max_iter, tol)
    return FitResult(coordinates.unpack(average), np.array(trace), converged)


def _adam_steps(size: int) -> Callable[[FloatArray, float], FloatArray]:
    """Return a function from gradients to ascent steps that remembers the gradients' first two moments."""
    first, second, count = np.zeros(size), np.zeros(size), 0

    def step(slope: FloatArray, learning_rate: float) -> FloatArray:
        nonlocal first, second, count
        count += 1
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        scale = np.sqrt(second / (1 - 0.999**count)) + 1e-8
        return np.asarray(learning_rate * first / (1 - 0.9**count) / scale)

    return step

"""Expectation-maximisation for all weights and leaves (Peharz et al. 2016), with evidence, row weights and priors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from safespn.learning.parameters import Prior, constrain, log_prior, m_step
from safespn.learning.statistics_source import StatisticsSource
from safespn.network.structure import Parameters
from safespn.typing import FloatArray


@dataclass(frozen=True, eq=False)
class FitResult:
    """Learned parameters and how learning went.

    Parameters
    ----------
    objective : array of shape (n_iter + 1,)
        Mean penalised objective per row, in nats, at the start and after every iteration; it never falls for EM.
    """

    parameters: Parameters
    objective: FloatArray
    converged: bool

    @property
    def n_iter(self) -> int:
        return len(self.objective) - 1


def fit_em(
    source: StatisticsSource,
    parameters: Parameters,
    *,
    prior: Prior | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> FitResult:
    """Learn parameters by EM, starting from the given ones.

    Parameters
    ----------
    source : StatisticsSource
        The rows; where they count for their best trees only (hard EM), the max-product likelihood rises.
    tol : float
        Stop when the mean penalised objective per row rises by less than this; if negative, make all iterations.
    """
    prior = prior or Prior()
    structure, total_weight = source.structure, source.total_weight
    parameters = constrain(structure, parameters, prior)
    objective: list[float] = []
    best = parameters
    converged = False
    for _ in range(max_iter + 1):
        statistics = source.statistics(parameters, n_passes=max_iter)
        value = (statistics.objective + log_prior(structure, parameters, prior)) / total_weight
        if objective and not value > objective[-1]:
            # Rounding can take back a step that no longer gains anything: keep the parameters before it.
            converged = True
            break
        best = parameters
        objective.append(value)
        if len(objective) > 1 and objective[-1] - objective[-2] < tol:
            converged = True
            break
        parameters = m_step(structure, parameters, statistics, prior)
    if not converged and max_iter > 0 and tol >= 0:
        warn_not_converged("EM", max_iter, tol)
    return FitResult(best, np.array(objective), converged)


def warn_not_converged(method: str, max_iter: int, tol: float) -> None:
    """Warn that a fit used up its iterations."""
    from sklearn.exceptions import ConvergenceWarning  # imports all of scikit-learn, which networks can do without

    warnings.warn(
        f"{method} did not converge within max_iter={max_iter} iterations (tol={tol:g}); raise max_iter or tol",
        ConvergenceWarning,
        stacklevel=4,
    )

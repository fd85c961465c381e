"""The two objectives of the paper, as steps on the parameters at fixed soft labels."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from safespn.learning.em import fit_em
from safespn.learning.gradient import fit_lbfgs
from safespn.learning.parameters import Prior
from safespn.learning.statistics_source import StatisticsSource
from safespn.network.structure import Parameters
from safespn.safety.problem import Problem, ProblemSource

STEPS_ON_PARAMETERS = 5
"""Steps on the parameters between two steps on the soft labels."""


def improve(
    source: StatisticsSource, parameters: Parameters, prior: Prior, *, conditional: bool, max_iter: int, tol: float
) -> Parameters:
    """Raise the penalised objective from the given parameters by at most ``max_iter`` steps.

    EM for the likelihood, L-BFGS for the conditional likelihood. Using up the steps needs no warning here: the caller
    alternates.
    """
    fit = fit_lbfgs if conditional else fit_em
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(source, parameters, prior=prior, max_iter=max_iter, tol=tol).parameters


def fit_supervised(
    problem: Problem, start: Parameters, *, conditional: bool, max_iter: int = 200, tol: float = 1e-5
) -> Parameters:
    """Learn the purely supervised model: labelled rows only, from the start, by EM and then, if asked, by gradients."""
    labelled = problem.labelled_problem()
    generative = improve(ProblemSource(labelled), start, problem.prior, conditional=False, max_iter=max_iter, tol=tol)
    if not conditional:
        return generative
    source = ProblemSource(labelled, conditional=True)
    return improve(source, generative, problem.prior, conditional=True, max_iter=max_iter, tol=tol)

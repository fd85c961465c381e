"""The two objectives of the paper, as steps on the parameters at fixed soft labels."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from safespn.engine.evidence import Evidence
from safespn.learning.em import fit_em
from safespn.learning.gradient import fit_lbfgs
from safespn.network.structure import Parameters
from safespn.safety.problem import Problem


def improve(
    problem: Problem, parameters: Parameters, evidence: Evidence, *, conditional: bool, max_iter: int, tol: float
) -> Parameters:
    """Raise the penalised objective from the given parameters by at most ``max_iter`` steps.

    EM for the likelihood, L-BFGS for the conditional likelihood. Using up the steps is no news here: the caller
    alternates.
    """
    fit = fit_lbfgs if conditional else fit_em
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(
            problem.structure,
            parameters,
            problem.table,
            evidence=evidence,
            weights=problem.weights,
            prior=problem.prior,
            max_iter=max_iter,
            tol=tol,
            n_jobs=problem.n_jobs,
        ).parameters


def fit_supervised(
    problem: Problem, start: Parameters, *, conditional: bool, max_iter: int = 200, tol: float = 1e-5
) -> Parameters:
    """Learn the purely supervised model: labelled rows only, from the start, by EM and then, if asked, by gradients."""
    labelled = problem.labelled_part()
    nothing = np.empty((0, labelled.n_classes))
    evidence = labelled.evidence(nothing)
    generative = improve(labelled, start, evidence, conditional=False, max_iter=max_iter, tol=tol)
    if not conditional:
        return generative
    evidence = labelled.evidence(nothing, conditional=True)
    return improve(labelled, generative, evidence, conditional=True, max_iter=max_iter, tol=tol)

"""From rows to a safe model: prepare on a sample, decide by left-out labels, fit without and with unlabelled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from safespn.engine.bound import bind
from safespn.engine.passes import log_joint
from safespn.network.structure import Parameters, Structure
from safespn.rows.parts import Part, Rows
from safespn.rows.sampling import draw_sample
from safespn.safety.fitting import Method
from safespn.safety.objective import fit_supervised
from safespn.safety.preparation import CLASS_PRIORS, ClassPrior, Preparation
from safespn.safety.problem import Problem, SafeFit, ValidationScore
from safespn.safety.report import SafetyReport
from safespn.safety.selection import HeldOut, choose_class_prior, left_out_in_turn, unlabelled_rows_help
from safespn.safety.soft_labels import log_posterior
from safespn.typing import FloatArray, IntArray

Validation = tuple[FloatArray, IntArray]
"""Labelled rows to check a model with: their table and their class numbers."""


@dataclass(frozen=True)
class Settings:
    """What the class networks are made of; see :class:`safespn.SafeSPNClassifier`.

    Parameters
    ----------
    max_depth : int or None
    multivariate : bool
    relative_floor : float
    rows_per_class : float
    tuned_for : {"both", "density", "classes"}
    sample_size : int
    n_jobs : int or None
    checkpoint : Path or None
    """

    max_depth: int | None
    multivariate: bool
    relative_floor: float
    rows_per_class: float
    tuned_for: str
    sample_size: int
    n_jobs: int | None
    checkpoint: Path | None


@dataclass(frozen=True, eq=False)
class Learned:
    """A safe model and the supervised one that it is compared with."""

    problem: Problem
    supervised: Parameters
    fit: SafeFit
    report: SafetyReport
    n_sampled: int


def learn_safely(
    rows: Rows,
    n_states: Sequence[int],
    settings: Settings,
    method: Method,
    validation: Validation | None,
    generator: np.random.Generator,
    say: Callable[[str], None],
) -> Learned:
    """Learn from all rows.

    Parameters
    ----------
    n_states : sequence of int
        Number of states of each column of codes, 0 for a real column.
    say : callable
        Told what happens.
    """
    sample = draw_sample(rows, settings.sample_size, generator)
    n_rows = int(rows.counts.sum())
    if len(sample.codes) < n_rows:
        say(f"structure learned from a stratified sample of {len(sample.codes)} of {n_rows} rows")
    preparation = Preparation(
        sample.table,
        sample.weights,
        n_states,
        len(rows.counts) - 1,
        settings.max_depth,
        settings.multivariate,
        settings.relative_floor,
        settings.rows_per_class,
        settings.n_jobs,
    )
    class_prior, helps = _decide(preparation, sample, settings.tuned_for, validation, method, generator)
    problem, start = preparation.problem_of(rows, class_prior)
    supervised = fit_supervised(problem, start, conditional=method.conditional)
    say(f"supervised model learned from {problem.n_labelled} rows")
    score = _validation_score(problem.structure, validation, method.conditional)
    fit = method.fit(problem, supervised, score, generator, settings.checkpoint)
    if not helps:
        fit = replace(fit, parameters=supervised, fallback=True)
    report = method.report(problem, supervised, fit)
    say(f"{len(fit.history)} iterations over {problem.n_unlabelled} unlabelled rows\n{report}")
    return Learned(problem, supervised, fit, report, len(sample.codes))


def _decide(
    preparation: Preparation,
    sample: Part,
    tuned_for: str,
    validation: Validation | None,
    method: Method,
    generator: np.random.Generator,
) -> tuple[ClassPrior, bool]:
    """How to regularise the classes, and whether the unlabelled rows may change them."""
    codes = sample.codes
    if validation is None:
        held_out = list(left_out_in_turn(preparation, codes))
    else:
        held_out = [HeldOut(codes, *validation, np.ones(len(validation[0])))]
    prior = choose_class_prior(preparation, held_out, CLASS_PRIORS[tuned_for], fewer_errors=tuned_for == "both")
    guarded = tuned_for == "classes" and method.safety == "certified" and not method.conditional
    if not guarded or not (codes < 0).any():
        return prior, True
    return prior, unlabelled_rows_help(preparation, held_out, prior, method, generator)


def _validation_score(structure: Structure, validation: Validation | None, conditional: bool) -> ValidationScore | None:
    """Mean (conditional) log-likelihood of validation rows, as a function of parameters."""
    if validation is None or len(validation[0]) == 0:
        return None
    table, codes = validation

    def score(parameters: Parameters) -> float:
        joint = log_joint(bind(structure, parameters), table)
        compared = log_posterior(joint) if conditional else joint
        return float(np.mean(compared[np.arange(len(codes)), codes]))

    return score

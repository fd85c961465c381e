"""From rows to a safe model: class networks from a sample, then fits without and with the unlabelled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safespn.class_networks.assembly import Assembly, assemble
from safespn.class_networks.candidate import NetworkSettings
from safespn.class_networks.committee import Committee
from safespn.class_networks.labelled_table import LabelledTable
from safespn.engine.bound import bind
from safespn.engine.passes import log_joint
from safespn.foundation.posteriors import log_posterior
from safespn.network.structure import Parameters, Structure
from safespn.rows.blocks import PartitionedRows, Validation
from safespn.rows.sampling import draw_sample
from safespn.safety.committee_fit import fit_committee
from safespn.safety.method import Method
from safespn.safety.problem import Problem, ValidationScore
from safespn.safety.report import SafetyReport
from safespn.safety.supervised import fit_supervised


@dataclass(frozen=True)
class FitSettings:
    """What is learned, and from how many rows; see :class:`safespn.SafeSPNClassifier`.

    Parameters
    ----------
    families : tuple of str
        Families of class networks.
    single : bool
        Whether one network is wanted instead of a committee.
    networks : NetworkSettings
    sample_size : int
    checkpoint : Path or None
    """

    families: tuple[str, ...]
    single: bool
    networks: NetworkSettings
    sample_size: int
    checkpoint: Path | None


@dataclass(frozen=True, eq=False)
class Learned:
    """A safe model and the supervised one that it is compared with."""

    supervised: Committee
    safe: Committee
    soft_labels: Any
    history: list[dict[str, Any]]
    report: SafetyReport
    n_sampled: int


def learn_safely(
    rows: PartitionedRows,
    n_states: Sequence[int],
    settings: FitSettings,
    method: Method,
    validation: Validation | None,
    generator: np.random.Generator,
    log: Callable[[str], None],
) -> Learned:
    """Learn from all rows.

    Parameters
    ----------
    n_states : sequence of int
        Number of states of each column of codes, 0 for a real column.
    log : callable
        Told what happens.
    """
    sample = draw_sample(rows, settings.sample_size, generator)
    n_rows, n_sampled = int(rows.counts.sum()), len(sample.codes)
    if n_sampled < n_rows:
        log(f"class networks learned from a stratified sample of {n_sampled} of {n_rows} rows")
    table = LabelledTable.of_rows(sample.table, sample.codes, sample.weights, n_states, len(rows.counts) - 1)
    assembly = assemble(table, settings.families, settings.networks, generator, single=settings.single)
    log(f"supervised model learned from {int(rows.counts[:-1].sum())} labelled rows: {assembly.committee}")
    if settings.single:
        return _fit_network(assembly, rows, settings, method, validation, generator, n_sampled, log)
    fit = fit_committee(assembly, rows, method, generator, settings.checkpoint, log)
    log(str(fit.report))
    return Learned(assembly.committee, fit.committee, fit.soft_labels, fit.history, fit.report, n_sampled)


def _fit_network(
    assembly: Assembly,
    rows: PartitionedRows,
    settings: FitSettings,
    method: Method,
    validation: Validation | None,
    generator: np.random.Generator,
    n_sampled: int,
    log: Callable[[str], None],
) -> Learned:
    """Fit a single network, by any method."""
    (member,), (prior,) = assembly.committee.members, assembly.priors
    problem = Problem(member.structure, rows, prior)
    supervised = member.parameters
    if method.conditional:
        supervised = fit_supervised(problem, supervised, conditional=True)
    score = _validation_score(problem.structure, validation, method.conditional)
    fit = method.fit(problem, supervised, score, generator, settings.checkpoint)
    report = method.report(problem, supervised, fit, str(assembly.committee))
    log(f"{len(fit.history)} iterations over {problem.n_unlabelled} unlabelled rows\n{report}")
    return Learned(
        assembly.committee.with_parameters([supervised]),
        assembly.committee.with_parameters([fit.parameters]),
        problem.soft_labels(fit.states),
        fit.history,
        report,
        n_sampled,
    )


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

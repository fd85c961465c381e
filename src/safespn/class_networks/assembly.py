"""From a table with some labels to a committee: learn candidates, weigh them by held-out labels, keep what counts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from safespn.class_networks.candidate import Candidate, ClassNetwork, NetworkSettings
from safespn.class_networks.committee import Committee, Member
from safespn.class_networks.families import all_candidates
from safespn.class_networks.folds import Folds, draw_folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.class_networks.weighing import (
    LOWEST_LOG_PROBABILITY,
    USUAL_COMMITTEE_TEMPERATURE,
    choose_temperature,
    log_tempered,
    mixture_weights,
    weigh_within_families,
)
from safespn.exceptions import FewLabelsWarning
from safespn.learning.parameters import Prior, n_parameters
from safespn.typing import BoolArray, FloatArray

ROWS_FOR_DENSITY = 1000
"""Rows that the weights in the density are chosen with."""
SMALLEST_DENSITY_WEIGHT = 0.05
"""Members that count for less have no share in the density: each costs a fit with the unlabelled rows."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """A committee of supervised members, and the prior of each."""

    committee: Committee
    priors: tuple[Prior, ...]


def assemble(
    table: LabelledTable,
    families: Sequence[str],
    settings: NetworkSettings,
    generator: np.random.Generator,
    *,
    single: bool,
) -> Assembly:
    """Learn a committee of some families.

    Parameters
    ----------
    single : bool
        Take the one network under which held-out labels are most probable, at temperature one, instead of an average.
    """
    folds = draw_folds(table, generator)
    if len(folds.left_out) == 0:
        warnings.warn(
            "with one labelled row per class no label can be left out to compare networks with: "
            + ("the first of its family is taken" if single else "all families get equal weights")
            + "; label a second row of some class to have them compared",
            FewLabelsWarning,
            stacklevel=2,
        )
    candidates = all_candidates(families, table, folds, settings, generator)
    chosen, temperature = (_single if single else _weighed)(candidates, folds)
    networks = [candidate.build() for candidate, *_ in chosen]
    members = [_member(network, *each) for network, each in zip(networks, chosen, strict=True)]
    for_density = np.array([network.for_density for network in networks])
    committee = replace(_with_densities(members, for_density, table), temperature=temperature)
    return Assembly(committee, tuple(network.prior for network in networks))


Choice = tuple[Candidate, float, float, float]
"""A candidate, its weight, its temperature and its log loss on held-out labels."""


def _weighed(candidates: Sequence[Candidate], folds: Folds) -> tuple[list[Choice], float]:
    """Temperatures and weights by held-out labels, and the temperature of their average.

    Without held-out labels, temperatures are one and all families have equal weights.
    """
    groups = [candidate.group for candidate in candidates]
    out = folds.left_out
    if len(out) == 0:
        equal = [1 / len(set(groups)) / groups.count(group) for group in groups]
        return [(candidate, weight, 1.0, np.nan) for candidate, weight in zip(candidates, equal, strict=True)], 1.0
    codes, weights = folds.codes[out], folds.weights[out]
    temperatures = [
        choose_temperature(candidate.left_out, codes, weights, candidate.usual_temperature) for candidate in candidates
    ]
    posteriors = [
        log_tempered(candidate.left_out, temperature)
        for candidate, temperature in zip(candidates, temperatures, strict=True)
    ]
    shares = weigh_within_families(posteriors, groups, codes, weights)
    average = np.log(np.tensordot(shares, np.exp(posteriors), axes=1))
    temperature = choose_temperature(average, codes, weights, USUAL_COMMITTEE_TEMPERATURE)
    return [
        (candidate, float(share), own_temperature, _log_loss(posterior, folds))
        for candidate, share, own_temperature, posterior in zip(
            candidates, shares, temperatures, posteriors, strict=True
        )
        if share > 0
    ], temperature


def _single(candidates: Sequence[Candidate], folds: Folds) -> tuple[list[Choice], float]:
    """Choose the network with the lowest log loss on held-out labels, at temperature one."""
    losses = [_log_loss(log_tempered(candidate.left_out, 1.0), folds) for candidate in candidates]
    best = int(np.argmin(losses)) if len(folds.left_out) else 0
    return [(candidates[best], 1.0, 1.0, losses[best])], 1.0


def _log_loss(log_posterior: FloatArray, folds: Folds) -> float:
    """Mean log loss of the held-out labels, in nats; NaN if there are none."""
    out = folds.left_out
    if len(out) == 0:
        return float("nan")
    of_label = np.maximum(log_posterior[np.arange(len(out)), folds.codes[out]], LOWEST_LOG_PROBABILITY)
    return float(np.average(-of_label, weights=folds.weights[out]))


def _member(network: ClassNetwork, candidate: Candidate, weight: float, temperature: float, log_loss: float) -> Member:
    return Member(
        family=candidate.family,
        size=candidate.size,
        weight=weight,
        temperature=temperature,
        log_loss=log_loss,
        density_weight=1.0,
        structure=network.structure,
        parameters=network.parameters,
        votes=network.votes,
    )


def _with_densities(members: Sequence[Member], for_density: BoolArray, table: LabelledTable) -> Committee:
    """Weigh the members' densities: as a mixture that makes the rows most likely, each charged for its parameters.

    The charge per row is that of the Bayesian information criterion; held-out densities would need every member to be
    learned again.

    Parameters
    ----------
    for_density : array of shape (n_members,)
        Which members may have a share; all if none may.
    """
    if len(members) == 1:
        return Committee((replace(members[0], votes=False),) if members[0].temperature == 1 else tuple(members))
    step = max(1, round(len(table.cells) / ROWS_FOR_DENSITY))
    cells, weights = table.cells[::step], table.weights[::step]
    n_rows = float(table.weights.sum())
    charged = np.full((len(cells), len(members)), -np.inf)
    for number in np.nonzero(for_density if for_density.any() else ~for_density)[0].tolist():
        member = members[number]
        charge = 0.5 * n_parameters(member.structure, member.parameters) * np.log(n_rows) / n_rows
        charged[:, number] = member.evaluate(cells)[0] - charge
    for number in range(1, len(members)):
        # Networks that differ in their classes only have one density, and one of them carries it.
        if np.isclose(charged[:, :number].T, charged[:, number], rtol=1e-9, atol=1e-9).all(axis=1).any():
            charged[:, number] = -np.inf
    top = charged.max(axis=1, keepdims=True)
    shares = mixture_weights(np.exp(charged - np.where(np.isfinite(top), top, 0.0)), weights)
    shares = np.where(shares < min(SMALLEST_DENSITY_WEIGHT, shares.max()), 0.0, shares)
    shares /= shares.sum()
    return Committee(
        tuple(member.with_density_weight(float(each)) for member, each in zip(members, shares, strict=True))
    )

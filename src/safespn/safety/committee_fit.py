"""Safety on top of committees: members are fitted side by side, and the certificate is that of the whole.

A committee's joint density is ``p(x) p(k | x)``. Against the committee of supervised members a row gains the change of
``log p(x)`` plus that of ``log p(k | x)``, so that the exact worst case is the gain in density less the most that
posteriors can lose. If it is negative, the posteriors are drawn back towards the supervised ones until it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from safespn.class_networks.assembly import Assembly
from safespn.class_networks.committee import Committee, log_average
from safespn.foundation.posteriors import gains
from safespn.network.structure import Structure
from safespn.rows.blocks import BlockStates, PartitionedRows, RowBlock
from safespn.safety.contrast import contrast, finite_if_all_skipped, gain_totals, magnitude, total_density_gain
from safespn.safety.method import Method
from safespn.safety.problem import Problem
from safespn.safety.report import SafetyReport
from safespn.safety.tasks import Assessment
from safespn.typing import FloatArray, IntArray

DRAW_BACK_STEPS = 7
"""Bisections of the share of supervised posteriors."""


@dataclass(frozen=True, eq=False)
class CommitteeFit:
    """A committee learned from labelled and unlabelled rows."""

    committee: Committee
    history: list[dict[str, Any]]
    report: SafetyReport
    soft_labels: Any


def fit_committee(
    assembly: Assembly,
    rows: PartitionedRows,
    method: Method,
    generator: np.random.Generator,
    checkpoint: Path | None,
    log: Callable[[str], None],
) -> CommitteeFit:
    """Fit the members with the unlabelled rows, and certify the committee."""
    supervised = assembly.committee
    is_guarded = method.safety != "none" and method.pessimism == 1
    # A member without a share in the density has nothing to gain from unlabelled rows that it has not used already:
    # its posteriors stay as they are, unless no guard is wanted.
    fitted = [
        number
        for number, member in enumerate(supervised.members)
        if rows.counts[-1] and (member.density_weight > 0 or not is_guarded)
    ]
    parameters = [member.parameters for member in supervised.members]
    history: list[dict[str, Any]] = []
    if fitted:
        fits = method.fit_together(
            [Problem(supervised.members[number].structure, rows, assembly.priors[number]) for number in fitted],
            [parameters[number] for number in fitted],
            generator,
            checkpoint,
            [f"member-{number}" for number in fitted],
            returns_soft_labels=False,
        )
        for number, fit in zip(fitted, fits, strict=True):
            parameters[number] = fit.parameters
            history += [{**entry, "member": number} for entry in fit.history]
            member = supervised.members[number]
            log(f"member {number} ({member.family}, {member.size}): {len(fit.history)} iterations")
    comparison = CommitteeComparison(supervised.with_parameters(parameters), supervised, rows)
    share = comparison.least_share() if is_guarded else 0.0
    assessment = comparison.assess(share)
    is_unchanged = all(each is member.parameters for each, member in zip(parameters, supervised.members, strict=True))
    fallback = bool(is_guarded and history and (is_unchanged or not assessment.worst_case >= 0))
    if fallback:
        comparison = CommitteeComparison(supervised, supervised, rows)
        share, assessment = 0.0, comparison.assess(0.0)
    committee = comparison.safe if share == 0 else replace(comparison.safe, reference=supervised, drawn_back=share)
    report = method.report_of(assessment, rows.counts, fallback, str(supervised))
    return CommitteeFit(committee, history, report, comparison.soft_labels(share))


class CommitteeComparison:
    """Compares a committee with that of the supervised members on all rows.

    Parameters
    ----------
    safe, supervised : Committee
    rows : PartitionedRows
    """

    def __init__(self, safe: Committee, supervised: Committee, rows: PartitionedRows) -> None:
        self.safe, self.rows = safe, rows
        self._structure = supervised.members[0].structure
        _, self._states = rows.run(_Compare(safe, supervised), self._structure)

    def assess(self, share: float) -> Assessment:
        """Gains with a share of the supervised posteriors."""
        summary: Assessment = self.rows.run(_Assess(share), self._structure, self._states)[0]
        return summary

    def least_share(self) -> float:
        """Smallest share of the supervised posteriors, up to a small step, at which the worst case is not negative."""
        if self.assess(0.0).worst_case >= 0:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(DRAW_BACK_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.assess(middle).worst_case >= 0 else (middle, high)
        return high

    def soft_labels(self, share: float) -> Any:
        """Posteriors of the unlabelled rows, shape (n_unlabelled, n_classes); a lazy array for rows in Dask."""
        states: BlockStates = self.rows.run(_TakePosteriors(share), self._structure, self._states)[1]
        return self.rows.concatenate_unlabelled(states, self.safe.n_classes)


@dataclass(frozen=True, eq=False)
class _CommitteeState:
    """What is kept of the rows of a block, so that they need not be read again.

    The classes and weights, the gain in log density and the supervised log density, of shape (n_rows, 1), and log
    posteriors after and before.
    """

    codes: IntArray
    weights: FloatArray | None
    density_gain: FloatArray
    density: FloatArray
    safe: FloatArray
    supervised: FloatArray

    def log_posterior(self, share: float) -> FloatArray:
        return log_average(self.safe, self.supervised, share)


@dataclass(frozen=True, eq=False)
class _Compare:
    safe: Committee
    supervised: Committee

    def __call__(self, structure: Structure, block: RowBlock, state: Any) -> tuple[None, _CommitteeState]:
        of_members = [member.evaluate(block.table, n_jobs=1) for member in self.supervised.members]
        density, posterior = self.supervised.combine(of_members)
        pairs = zip(self.safe.members, self.supervised.members, of_members, strict=True)
        safe_density, safe_posterior = self.safe.combine(
            [known if ours is theirs else ours.evaluate(block.table, n_jobs=1) for ours, theirs, known in pairs]
        )
        safe_density, density = safe_density[:, None], density[:, None]
        gain = gains(safe_density, density)
        return None, _CommitteeState(block.codes, block.weights, gain, density, safe_posterior, posterior)


@dataclass(frozen=True)
class _Assess:
    share: float
    reads_rows: ClassVar[bool] = False

    def __call__(
        self, structure: Structure, block: RowBlock, state: _CommitteeState
    ) -> tuple[Assessment, _CommitteeState]:
        codes, density_gain = state.codes, state.density_gain
        posterior, reference = state.log_posterior(self.share), state.supervised
        known, free = np.nonzero(codes >= 0)[0], codes < 0
        labels = np.exp(posterior)
        labels[known] = codes[known, None] == np.arange(labels.shape[1])
        of_posteriors = gains(posterior, reference), contrast(posterior, reference, labels)[:, None]
        # A row that the reference makes impossible is out of question in every class, whatever its posteriors.
        is_skipped = np.isposinf(density_gain)
        each, at_labels = (
            np.where(is_skipped, np.inf, gain + np.where(is_skipped, 0.0, density_gain)) for gain in of_posteriors
        )
        return Assessment(
            *gain_totals(each, finite_if_all_skipped(at_labels[:, 0]), codes, state.weights),
            density_gain=total_density_gain(density_gain[:, 0], state.weights),
            n_changed=int((posterior[free].argmax(axis=1) != reference[free].argmax(axis=1)).sum()),
            magnitude=magnitude(np.column_stack([state.density, reference]), state.weights),
        ), state


@dataclass(frozen=True)
class _TakePosteriors:
    share: float
    reads_rows: ClassVar[bool] = False

    def __call__(self, structure: Structure, block: RowBlock, state: _CommitteeState) -> tuple[None, FloatArray]:
        return None, np.exp(state.log_posterior(self.share))[state.codes < 0]

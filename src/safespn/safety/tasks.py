"""What safe fits ask of the rows, as pure functions of one block: see :mod:`safespn.rows.blocks`.

Rows with a known class take part like the others, with soft labels that are certain and never move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from threading import Lock
from typing import Any

import numpy as np

from safespn.engine import backends, passes
from safespn.engine.bound import BoundNetwork, bind
from safespn.engine.evidence import Evidence, SoftLabelUpdate, SoftLabelUpdateRule, log_indicators
from safespn.engine.statistics import Statistics
from safespn.foundation.posteriors import gains, log_posterior, posterior
from safespn.foundation.simplex import log_of, project_simplex
from safespn.network.structure import Parameters, Structure
from safespn.rows.blocks import RowBlock
from safespn.safety.contrast import contrast, gain_totals, magnitude, soft_label_gradient, total_density_gain
from safespn.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class RowState:
    """What a safe fit keeps with the rows of a block.

    Parameters
    ----------
    reference : array of shape (n_rows, n_classes)
        Class joint, or log posteriors, of the supervised model.
    soft_labels : array of shape (n_rows, n_classes)
    """

    reference: FloatArray
    soft_labels: FloatArray

    def at(self, rows: BoolArray, of_rows: FloatArray) -> RowState:
        """Return the state with other soft labels in some of the rows."""
        soft_labels = self.soft_labels.copy()
        soft_labels[rows] = of_rows
        return RowState(self.reference, soft_labels)


@dataclass(frozen=True)
class Assessment:
    """Gains of a model over the supervised one, in nats; they add over blocks.

    Parameters
    ----------
    worst_case : float
        Least gain over all labellings of the unlabelled rows.
    contrast : float
        Gain at the soft labels.
    labelled_gain : float
        Gain on the labelled rows alone, which is part of both.
    density_gain : float
        Gain in the log density of all rows, whatever their classes; computed where models are assessed in full.
    n_changed : int
        Unlabelled rows that the two models predict differently.
    magnitude : float
        Sum of the absolute log values of the supervised model: what rounding errors are relative to.
    """

    worst_case: float = 0.0
    contrast: float = 0.0
    labelled_gain: float = 0.0
    density_gain: float = 0.0
    n_changed: int = 0
    magnitude: float = 0.0

    def __add__(self, other: Assessment) -> Assessment:
        return Assessment(
            self.worst_case + other.worst_case,
            self.contrast + other.contrast,
            self.labelled_gain + other.labelled_gain,
            self.density_gain + other.density_gain,
            self.n_changed + other.n_changed,
            self.magnitude + other.magnitude,
        )


_BINDING = Lock()


@dataclass(frozen=True)
class WithParameters:
    """A task that sends rows through the network at given parameters."""

    parameters: Parameters

    def network(self, structure: Structure) -> BoundNetwork:
        """Bind the parameters, once for all blocks; threads that come meanwhile wait."""
        with _BINDING:
            bound: BoundNetwork | None = self.__dict__.get("_network")
            if bound is None:
                bound = bind(structure, self.parameters)
                object.__setattr__(self, "_network", bound)
        return bound

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_network"}


@dataclass(frozen=True)
class InitStates(WithParameters):
    """Initial state of the rows: the supervised model's class joint and its own soft labels."""

    conditional: bool = False

    def __call__(self, structure: Structure, block: RowBlock, state: None) -> tuple[None, RowState]:
        joint = passes.log_joint(self.network(structure), block.table, n_jobs=1)
        initial = RowState(view(joint, self.conditional), np.eye(joint.shape[1])[block.codes])
        free = block.is_unlabelled
        return None, initial.at(free, posterior(joint[free]))


OWN_LABELS = SoftLabelUpdateRule(pessimism=0.0, temperature=1.0, rate=1.0)


@dataclass(frozen=True)
class InitStatesAndEStep(WithParameters):
    """Initial state of the rows, as by :class:`InitStates`, and in the same pass an E-step at its soft labels."""

    n_passes: int = 1

    def __call__(self, structure: Structure, block: RowBlock, state: None) -> tuple[Statistics, RowState]:
        free = block.is_unlabelled
        known = np.where(free[:, None], 0.0, np.eye(structure.n_root_edges)[block.codes])
        statistics, joint, soft_labels = passes.statistics_after_update(
            self.network(structure),
            block.table,
            SoftLabelUpdate(np.zeros_like(known), known, free, OWN_LABELS),
            block.weights,
            n_passes=self.n_passes,
        )
        return statistics, RowState(joint, soft_labels)


class SetSoftLabels:
    """Replace the soft labels of the unlabelled rows; the state is a pair of a row state and the new ones."""

    def __call__(
        self, structure: Structure, block: RowBlock, state: tuple[RowState, FloatArray]
    ) -> tuple[None, RowState]:
        before, soft_labels = state
        return None, before.at(block.is_unlabelled, soft_labels)


@dataclass(frozen=True)
class EStep(WithParameters):
    """E-step: expected statistics at the block's soft labels, or at the known classes if it has no state.

    With a ``tilt`` of 1 soft labels are read as in the paper, ``log S[u, q] = logsumexp_k(a_k + log q_k)``; with 0
    class network k sees row m with weight ``q_mk``.
    """

    tilt: float = 1.0
    conditional: bool = False
    n_passes: int = 1

    def __call__(
        self, structure: Structure, block: RowBlock, state: RowState | None
    ) -> tuple[Statistics, RowState | None]:
        network, n_classes = self.network(structure), structure.n_root_edges
        log_labels = log_indicators(block.codes, n_classes) if state is None else log_of(state.soft_labels)
        evidence = Evidence(log_labels, self.tilt, self.conditional)
        statistics = passes.statistics(network, block.table, evidence, block.weights, n_passes=self.n_passes, n_jobs=1)
        return statistics, state


@dataclass(frozen=True)
class Assess(WithParameters):
    """Compare the model with the supervised one, in full."""

    conditional: bool = False

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[Assessment, RowState]:
        joint = view(passes.log_joint(self.network(structure), block.table, n_jobs=1), self.conditional)
        of_block = assess(block, state, joint)
        free = block.is_unlabelled
        changed = joint[free].argmax(axis=1) != state.reference[free].argmax(axis=1)
        density_gain = 0.0
        if not self.conditional:
            with np.errstate(invalid="ignore"):  # a NaN stays one, and is never certified
                # Class by class: numpy is slow along short rows.
                densities = [reduce(np.logaddexp, values.T)[:, None] for values in (joint, state.reference)]
            density_gain = total_density_gain(gains(*densities)[:, 0], block.weights)
        return of_block + Assessment(
            density_gain=density_gain,
            n_changed=int(changed.sum()),
            magnitude=magnitude(state.reference, block.weights),
        ), state


@dataclass(frozen=True)
class Posteriors(WithParameters):
    """Keep the log class posteriors of the unlabelled rows; of equally probable classes where none is possible."""

    def __call__(self, structure: Structure, block: RowBlock, state: Any) -> tuple[None, FloatArray]:
        table = block.table[block.is_unlabelled]
        if len(table) == 0:
            return None, np.empty((0, structure.n_root_edges))
        joint = passes.log_joint(self.network(structure), table, n_jobs=1)
        return None, log_posterior(joint)


class UnlabelledWeights:
    """Keep the weights of the unlabelled rows, shape (n_unlabelled, 1)."""

    def __call__(self, structure: Structure, block: RowBlock, state: Any) -> tuple[None, FloatArray]:
        weights = np.ones(len(block.codes)) if block.weights is None else block.weights
        return None, weights[block.is_unlabelled, None]


@dataclass(frozen=True)
class CertifiedEStep(WithParameters):
    """One pass of the certified fit: assess the model, update the soft labels, and an E-step at the updated ones.

    Without a rule the model is only assessed.
    """

    rule: SoftLabelUpdateRule | None = None
    n_passes: int = 1

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[EStepResult, RowState]:
        network = self.network(structure)
        if self.rule is None:
            joint = passes.log_joint(network, block.table, n_jobs=1)
            return EStepResult(assess(block, state, joint), None), state
        update = SoftLabelUpdate(state.reference, state.soft_labels, block.is_unlabelled, self.rule)
        statistics, joint, soft_labels = passes.statistics_after_update(
            network, block.table, update, block.weights, n_passes=self.n_passes
        )
        return EStepResult(assess(block, state, joint), statistics), RowState(state.reference, soft_labels)


@dataclass(frozen=True, eq=False)
class EStepResult:
    """What a pass of the certified fit leaves: how good the model is, and which way it goes on."""

    assessment: Assessment
    statistics: Statistics | None

    def __add__(self, other: EStepResult) -> EStepResult:
        if self.statistics is None or other.statistics is None:
            return EStepResult(self.assessment + other.assessment, None)
        return EStepResult(self.assessment + other.assessment, self.statistics + other.statistics)


@dataclass(frozen=True)
class SoftLabelStep(WithParameters):
    """Move the soft labels of the unlabelled rows down the contrast's slope and back on the simplex."""

    step_size: float = 0.1
    conditional: bool = False

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[None, RowState]:
        free = block.is_unlabelled
        if not free.any():
            return None, state
        joint = view(passes.log_joint(self.network(structure), block.table[free], n_jobs=1), self.conditional)
        slope = soft_label_gradient(joint, state.reference[free], state.soft_labels[free])
        return None, state.at(free, project_simplex(state.soft_labels[free] - self.step_size * slope))


class TakeSoftLabels:
    """Keep nothing but the soft labels of the unlabelled rows."""

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[None, FloatArray]:
        return None, state.soft_labels[block.is_unlabelled]


def view(joint: FloatArray, conditional: bool) -> FloatArray:
    """What is compared of a class joint: itself, or the class posteriors."""
    return log_posterior(joint) if conditional else joint


def assess(block: RowBlock, state: RowState, joint: FloatArray) -> Assessment:
    """Worst case, contrast and labelled gain of a block's rows from what is compared of the model's class joint."""
    if backends.is_compiled():
        from safespn.safety import contrast_kernel

        return Assessment(
            *contrast_kernel.gain_totals(joint, state.reference, state.soft_labels, block.codes, block.weights)
        )
    at_labels = contrast(joint, state.reference, state.soft_labels)
    return Assessment(*gain_totals(gains(joint, state.reference), at_labels, block.codes, block.weights))

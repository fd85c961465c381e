"""What safe fits ask of the rows, as pure functions of one part: see :mod:`safespn.rows.parts`.

Rows with a known class take part like the others, with soft labels that are certain and never move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from safespn.engine import backends, passes
from safespn.engine.bound import BoundNetwork, bind
from safespn.engine.evidence import Evidence, Response, ResponseRule, gains, optimistic
from safespn.engine.statistics import Statistics
from safespn.network.structure import Parameters, Structure
from safespn.rows.parts import ROWS_PER_PIECE, Part
from safespn.safety.contrast import contrast, labelled_gains, soft_label_gradient, worst_gains
from safespn.safety.soft_labels import log_of, log_posterior, project_simplex
from safespn.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class RowState:
    """What a safe fit keeps with the rows of a part.

    Parameters
    ----------
    rival : array of shape (n_rows, n_classes)
        Class joint, or log posteriors, of the supervised model.
    soft_labels : array of shape (n_rows, n_classes)
    """

    rival: FloatArray
    soft_labels: FloatArray

    def at(self, rows: BoolArray, of_rows: FloatArray) -> RowState:
        """Return the state with other soft labels in some of the rows."""
        soft_labels = self.soft_labels.copy()
        soft_labels[rows] = of_rows
        return RowState(self.rival, soft_labels)


@dataclass(frozen=True)
class Assessment:
    """Gains of a model over the supervised one, in nats; they add over parts.

    Parameters
    ----------
    worst_case : float
        Least gain over all labellings of the unlabelled rows.
    contrast : float
        Gain at the soft labels.
    labelled_gain : float
        Gain on the labelled rows alone, which is part of both.
    n_changed : int
        Unlabelled rows that the two models predict differently.
    magnitude : float
        Sum of the absolute log densities of the supervised model: what rounding errors are relative to.
    """

    worst_case: float = 0.0
    contrast: float = 0.0
    labelled_gain: float = 0.0
    n_changed: int = 0
    magnitude: float = 0.0

    def __add__(self, other: Assessment) -> Assessment:
        return Assessment(
            self.worst_case + other.worst_case,
            self.contrast + other.contrast,
            self.labelled_gain + other.labelled_gain,
            self.n_changed + other.n_changed,
            self.magnitude + other.magnitude,
        )


@dataclass(frozen=True)
class WithParameters:
    """A task that sends rows through the network at given parameters."""

    parameters: Parameters

    def network(self, structure: Structure) -> BoundNetwork:
        """Bind the parameters, once for all parts."""
        bound: BoundNetwork | None = self.__dict__.get("_network")
        if bound is None:
            bound = bind(structure, self.parameters)
            object.__setattr__(self, "_network", bound)
        return bound

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_network"}


@dataclass(frozen=True)
class Start(WithParameters):
    """Keep a row state with the part: the supervised model's class joint and its own soft labels."""

    conditional: bool = False

    def __call__(self, structure: Structure, part: Part, kept: None) -> tuple[None, RowState]:
        joint = passes.log_joint(self.network(structure), part.table, n_jobs=1)
        state = RowState(view(joint, self.conditional), np.eye(joint.shape[1])[part.codes])
        free = part.is_unlabelled
        return None, state.at(free, optimistic(joint[free]))


class SetSoftLabels:
    """Replace the soft labels of the unlabelled rows; keeps pairs of a row state and the new ones."""

    def __call__(self, structure: Structure, part: Part, kept: tuple[RowState, FloatArray]) -> tuple[None, RowState]:
        state, soft_labels = kept
        return None, state.at(part.is_unlabelled, soft_labels)


@dataclass(frozen=True)
class Expect(WithParameters):
    """Expected statistics at the soft labels kept with the part, or at the known classes if nothing is kept.

    With a ``tilt`` of 1 soft labels are read as in the paper, ``log S[u, q] = logsumexp_k(a_k + log q_k)``; with 0
    class network k sees row m with weight ``q_mk``.
    """

    tilt: float = 1.0
    conditional: bool = False
    n_passes: int = 1

    def __call__(self, structure: Structure, part: Part, kept: RowState | None) -> tuple[Statistics, RowState | None]:
        if kept is None:
            known = part.codes[:, None] == np.arange(structure.n_root_edges)
            log_labels = np.where(known | part.is_unlabelled[:, None], 0.0, -np.inf)
        else:
            log_labels = log_of(kept.soft_labels)
        evidence = Evidence(log_labels, self.tilt, self.conditional)
        statistics = passes.statistics(
            self.network(structure), part.table, evidence, part.weights, n_passes=self.n_passes, n_jobs=1
        )
        return statistics, kept


@dataclass(frozen=True)
class Assess(WithParameters):
    """Compare the model with the supervised one, in full."""

    conditional: bool = False

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[Assessment, RowState]:
        joint = view(passes.log_joint(self.network(structure), part.table, n_jobs=1), self.conditional)
        of_part = assess(part, kept, joint)
        free = part.is_unlabelled
        changed = joint[free].argmax(axis=1) != kept.rival[free].argmax(axis=1)
        magnitude = float(np.abs(kept.rival[np.isfinite(kept.rival)]).sum())
        return of_part + Assessment(n_changed=int(changed.sum()), magnitude=magnitude), kept


@dataclass(frozen=True)
class Posteriors(WithParameters):
    """Keep the log class posteriors of the unlabelled rows; of equally probable classes where none is possible."""

    def __call__(self, structure: Structure, part: Part, kept: Any) -> tuple[None, FloatArray]:
        table = part.table[part.is_unlabelled]
        if len(table) == 0:
            return None, np.empty((0, structure.n_root_edges))
        joint = passes.log_joint(self.network(structure), table, n_jobs=1)
        return None, log_of(optimistic(joint))


class UnlabelledWeights:
    """Keep the weights of the unlabelled rows, shape (n_unlabelled, 1)."""

    def __call__(self, structure: Structure, part: Part, kept: Any) -> tuple[None, FloatArray]:
        weights = np.ones(len(part.codes)) if part.weights is None else part.weights
        return None, weights[part.is_unlabelled, None]


@dataclass(frozen=True)
class Climb(WithParameters):
    """One pass of the certified fit: assess the model at the soft labels before, let them answer, and expect.

    Without a rule the model is only assessed.
    """

    rule: ResponseRule | None = None
    n_passes: int = 1

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[Ascent, RowState]:
        # In pieces that stay in cache, however long the part is.
        results = [
            self._piece(structure, part.take(rows), RowState(kept.rival[rows], kept.soft_labels[rows]))
            for rows in part.slices(ROWS_PER_PIECE)
        ]
        ascent = reduce(add, [of_piece for of_piece, _ in results])
        if self.rule is None:
            return ascent, kept
        return ascent, RowState(kept.rival, passes.joined([soft_labels for _, soft_labels in results]))

    def _piece(self, structure: Structure, part: Part, kept: RowState) -> tuple[Ascent, FloatArray]:
        network = self.network(structure)
        if self.rule is None:
            joint = passes.log_joint(network, part.table, n_jobs=1)
            return Ascent(assess(part, kept, joint), None), kept.soft_labels
        response = Response(kept.rival, kept.soft_labels, part.is_unlabelled, self.rule)
        statistics, joint, soft_labels = passes.respond(
            network, part.table, response, part.weights, n_passes=self.n_passes, n_jobs=1
        )
        return Ascent(assess(part, kept, joint), statistics), soft_labels


@dataclass(frozen=True, eq=False)
class Ascent:
    """What a pass of the certified fit leaves: how good the model is, and which way it goes on."""

    assessment: Assessment
    statistics: Statistics | None

    def __add__(self, other: Ascent) -> Ascent:
        if self.statistics is None or other.statistics is None:
            return Ascent(self.assessment + other.assessment, None)
        return Ascent(self.assessment + other.assessment, self.statistics + other.statistics)


@dataclass(frozen=True)
class Descend(WithParameters):
    """Move the soft labels of the unlabelled rows down the contrast's slope and back on the simplex."""

    step_size: float = 0.1
    conditional: bool = False

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[None, RowState]:
        free = part.is_unlabelled
        if not free.any():
            return None, kept
        joint = view(passes.log_joint(self.network(structure), part.table[free], n_jobs=1), self.conditional)
        slope = soft_label_gradient(joint, kept.rival[free], kept.soft_labels[free])
        return None, kept.at(free, project_simplex(kept.soft_labels[free] - self.step_size * slope))


class Free:
    """Keep nothing but the soft labels of the unlabelled rows."""

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[None, FloatArray]:
        return None, kept.soft_labels[part.is_unlabelled]


def view(joint: FloatArray, conditional: bool) -> FloatArray:
    """What is compared of a class joint: itself, or the class posteriors."""
    return log_posterior(joint) if conditional else joint


def assess(part: Part, kept: RowState, joint: FloatArray) -> Assessment:
    """Worst case, contrast and labelled gain of a part's rows from what is compared of the model's class joint."""
    weights = np.empty(0) if part.weights is None else part.weights
    if backends.is_loaded():
        from safespn.safety.contrast_kernel import gain_totals

        # Arrays that came from another process may be read-only, for which numba would compile once more.
        arrays = (joint, kept.rival, kept.soft_labels, part.codes, weights)
        return Assessment(*gain_totals(*(np.require(array, requirements=["C", "W"]) for array in arrays)))
    each = gains(joint, kept.rival)
    known = np.nonzero(part.codes >= 0)[0]
    of_labelled = labelled_gains(each[known], part.codes[known])
    worst = worst_gains(each)
    worst[known] = of_labelled
    at_labels = contrast(joint, kept.rival, kept.soft_labels)
    if part.weights is None:
        return Assessment(float(worst.sum()), float(at_labels.sum()), float(of_labelled.sum()))
    return Assessment(float(worst @ weights), float(at_labels @ weights), float(of_labelled @ weights[known]))

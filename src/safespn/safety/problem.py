"""A semi-supervised problem: a class network, rows with and without labels, and the prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from safespn.engine.statistics import Statistics
from safespn.learning.parameters import Prior
from safespn.network.structure import Parameters, Structure
from safespn.rows.blocks import BlockStates, PartitionedRows, PassRequest, Task
from safespn.safety.tasks import Assess, Assessment, EStep, InitStates, SetSoftLabels, TakeSoftLabels
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows for a class network.

    Parameters
    ----------
    structure : Structure
        Of a network whose root has one child per class.
    rows : PartitionedRows
    prior : Prior
        What every parameter update respects.
    """

    structure: Structure
    rows: PartitionedRows
    prior: Prior = field(default_factory=Prior)

    @property
    def n_classes(self) -> int:
        return self.structure.n_root_edges

    @property
    def class_counts(self) -> IntArray:
        """Number of labelled rows of each class."""
        return self.rows.counts[:-1]

    @property
    def n_labelled(self) -> int:
        return int(self.rows.counts[:-1].sum())

    @property
    def n_unlabelled(self) -> int:
        return int(self.rows.counts[-1])

    @property
    def total_weight(self) -> float:
        return float(self.rows.weight_totals.sum())

    @property
    def labelled_weight(self) -> float:
        return float(self.rows.weight_totals[:-1].sum())

    def labelled_problem(self) -> Problem:
        """Return the problem without its unlabelled rows."""
        return Problem(self.structure, self.rows.labelled(), self.prior)

    def run(self, task: Task, states: BlockStates | None = None) -> tuple[Any, BlockStates]:
        """Run a task on every block of the rows."""
        return self.rows.run(task, self.structure, states)

    def request(self, task: Task, states: BlockStates | None = None) -> PassRequest:
        """Ask for a pass, to be made together with those that others ask for."""
        return PassRequest(task, self.structure, states)

    def soft_labels(self, states: BlockStates) -> Any:
        """Soft labels of the unlabelled rows, shape (n_unlabelled, n_classes); a lazy array for rows in Dask."""
        return self.rows.concatenate_unlabelled(self.run(TakeSoftLabels(), states)[1], self.n_classes)


@dataclass(frozen=True, eq=False)
class ProblemSource:
    """The rows of a problem as the fits of parameters see them.

    Rows enter by the soft labels of their states, or by their known classes if none are given; see :class:`EStep`.
    """

    problem: Problem
    states: BlockStates | None = None
    tilt: float = 1.0
    conditional: bool = False

    @property
    def structure(self) -> Structure:
        return self.problem.structure

    @property
    def total_weight(self) -> float:
        return self.problem.total_weight

    def statistics(self, parameters: Parameters, n_passes: int = 1) -> Statistics:
        task = EStep(parameters, self.tilt, self.conditional, n_passes * self.problem.rows.n_blocks)
        summary: Statistics = self.problem.run(task, self.states)[0]
        return summary


class Comparison:
    """Compares models with the purely supervised one on a problem's rows.

    Parameters
    ----------
    problem : Problem
    supervised : Parameters
    conditional : bool
        Compare class posteriors instead of joint densities.

    Attributes
    ----------
    start : BlockStates
        A :class:`safespn.safety.tasks.RowState` for each block, with the supervised model's own soft labels.
    """

    def __init__(self, problem: Problem, supervised: Parameters, conditional: bool = False) -> None:
        self.problem, self.supervised, self.conditional = problem, supervised, conditional

    @cached_property
    def start(self) -> BlockStates:
        # Takes a pass over the rows: not made where states are at hand already.
        return self.problem.run(InitStates(self.supervised, self.conditional))[1]

    def at(self, soft_labels: FloatArray) -> BlockStates:
        """Return the row states at given soft labels of the unlabelled rows, shape (n_unlabelled, n_classes)."""
        return self.problem.run(SetSoftLabels(), self.problem.rows.zip_with_unlabelled(self.start, soft_labels))[1]

    def assess(self, parameters: Parameters, states: BlockStates | None = None) -> Assessment:
        """Gains of a model over the supervised one, at the soft labels given or those of the start."""
        summary: Assessment = self.problem.run(Assess(parameters, self.conditional), states or self.start)[0]
        return summary


@dataclass(frozen=True, eq=False)
class SafeFit:
    """A model learned from labelled and unlabelled rows.

    Parameters
    ----------
    states : BlockStates
        A :class:`safespn.safety.tasks.RowState` for each block of the rows, with the final soft labels.
    history : list of dict
        For each iteration: objective, contrast at the soft labels and worst case (in nats), validation score if any.
    fallback : bool
        Whether the purely supervised model itself was returned.
    """

    parameters: Parameters
    states: BlockStates
    history: list[dict[str, Any]]
    converged: bool
    fallback: bool


ValidationScore = Callable[[Parameters], float]

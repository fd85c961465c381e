"""Steps of the certified fit: update the soft labels given the model, then the model given the soft labels.

One pass over the rows does both halves: it assesses the model that the last step made, updates the soft labels, and
*prefetches* the statistics of the next step, for the update rule that the caller says is most likely next. A wrong
prediction of that rule changes no result; it costs one more pass.

Steps are generators that yield the passes they ask for: see :mod:`safespn.rows.lockstep`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from safespn.engine.evidence import SoftLabelUpdateRule
from safespn.engine.statistics import Statistics
from safespn.learning.damping import damped_m_step
from safespn.network.structure import Parameters
from safespn.rows.blocks import BlockStates
from safespn.rows.lockstep import Passes
from safespn.safety.checkpoint import Journal
from safespn.safety.problem import Problem, SafeFit, ValidationScore
from safespn.safety.tasks import Assessment, CertifiedEStep, EStepResult, InitStates, InitStatesAndEStep

FORGETTING = 0.7
"""Mini-batch t of a pass has the weight ``t ** -FORGETTING`` in the average of the statistics."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A model on the way, its exact worst case in nats, and the soft labels at which it was made.

    Parameters
    ----------
    number : int
        Steps that led here.
    states : BlockStates
        A :class:`safespn.safety.tasks.RowState` for each block of the rows; empty if they are not kept.
    """

    number: int
    parameters: Parameters
    worst_case: float
    states: BlockStates


class CertifiedEM:
    """Makes steps on all rows: one EM step, full or damped, at soft labels averaged over the steps.

    Parameters
    ----------
    problem : Problem
    supervised : Parameters
        Where it starts, and what it is compared with.
    n_passes : int
        How many steps to expect.
    validation_score : callable, optional
        Scores parameters on validation rows, for the record only.
    journal : Journal, optional
        Writes steps down, and knows those of an interrupted fit.
    returns_soft_labels : bool
        Keep the soft labels of the best model, which only the caller needs.

    Attributes
    ----------
    position : Iterate
        The model of the last step.
    history : list of dict
    """

    _steps_in_batches = False

    def __init__(
        self,
        problem: Problem,
        supervised: Parameters,
        *,
        n_passes: int = 75,
        validation_score: ValidationScore | None = None,
        journal: Journal | None = None,
        returns_soft_labels: bool = True,
    ) -> None:
        self.problem, self.supervised, self.n_passes = problem, supervised, n_passes
        self.validation_score, self.journal, self.returns_soft_labels = validation_score, journal, returns_soft_labels
        self.position = Iterate(0, supervised, 0.0, ())
        self.history: list[dict[str, Any]] = []
        self._initial: BlockStates = ()
        self._prefetched: tuple[SoftLabelUpdateRule, Statistics, BlockStates] | None = None

    def start(self, first_rule: SoftLabelUpdateRule) -> Passes[None]:
        """Make the first pass: densities of the supervised model, and its own soft labels.

        If a step by the first rule is a step at these labels, its statistics are computed in the same pass.
        """
        if self._steps_in_batches or not first_rule.keeps_own_labels:
            _, states = yield self.problem.request(InitStates(self.supervised))
        else:
            task = InitStatesAndEStep(self.supervised, self.n_passes * self.problem.rows.n_blocks)
            statistics, states = yield self.problem.request(task)
            self._prefetched = first_rule, statistics, states
        self.position = replace(self.position, states=states)
        if self._needs_initial_states:
            self._initial = states

    @property
    def _needs_initial_states(self) -> bool:
        return self.journal is not None

    @property
    def best_worst_case(self) -> float:
        """The highest worst case so far, in nats; that of the supervised model is zero."""
        values: list[float] = [entry["worst_case"] for entry in self.history]
        return max([0.0, *values])

    def remember(self) -> Iterate:
        """Return the position as one that the fit may come back to."""
        return self.position if self.returns_soft_labels else replace(self.position, states=())

    def move_to(self, parameters: Parameters) -> None:
        """Continue from other parameters, with the present soft labels."""
        if parameters is not self.position.parameters:
            self.position, self._prefetched = replace(self.position, parameters=parameters), None

    def step(
        self, rule: SoftLabelUpdateRule, next_rule: SoftLabelUpdateRule | None, best: Iterate, size: float = 1.0
    ) -> Passes[float]:
        """Update the soft labels, make an EM step, and return the exact worst case of the model that it makes.

        Soft labels and flows are those of the present position; the step is made from ``best``, which may be another.

        Parameters
        ----------
        next_rule : SoftLabelUpdateRule or None
            Rule of the next step, most likely: its statistics are computed ahead. None if there will be none.
        best : Iterate
            Where the step starts, and what must survive an interruption besides the present position.
        size : float
            Length of the step, above 0; 1 is a full EM step.
        """
        number = len(self.history) + 1
        if self.journal is not None and self.journal.knows(number):
            past = yield from self.journal.step(number, self._initial)
            self.position, self._prefetched = (
                Iterate(number, past.parameters, past.entry["worst_case"], past.states),
                None,
            )
            self.history.append(past.entry)
            return self.position.worst_case
        parameters, objective, states = yield from self._improve(rule, best.parameters, size)
        assessment, self._prefetched = yield from self._assess_and_prefetch(parameters, states, next_rule)
        self.position = Iterate(number, parameters, assessment.worst_case, states)
        entry = {"objective": objective, "contrast": assessment.contrast, "worst_case": assessment.worst_case}
        if self.validation_score is not None:
            entry["validation_score"] = self.validation_score(parameters)
        self.history.append(entry)
        if self.journal is not None:
            to_save = {number: states, best.number: best.states}
            self.journal.write(number, parameters, entry, {which: each for which, each in to_save.items() if each})
        return assessment.worst_case

    def _improve(
        self, rule: SoftLabelUpdateRule, origin: Parameters, size: float
    ) -> Passes[tuple[Parameters, float, BlockStates]]:
        """Make an EM step; return its parameters, the objective before it and the soft labels at which it was made."""
        if self._prefetched is None or self._prefetched[0] != rule:
            here = self.position
            _, self._prefetched = yield from self._assess_and_prefetch(here.parameters, here.states, rule)
        assert self._prefetched is not None
        _, statistics, states = self._prefetched
        return self._moved(origin, statistics, self.position.parameters, size), statistics.objective, states

    def _moved(self, origin: Parameters, statistics: Statistics, seen_from: Parameters, size: float) -> Parameters:
        """Make an M-step from the origin, given statistics of a pass at other parameters."""
        problem = self.problem
        if seen_from is not origin:
            statistics = statistics.recentred(problem.structure, seen_from, origin)
        return damped_m_step(problem.structure, origin, statistics, problem.prior, size, problem.total_weight)

    def _assess_and_prefetch(
        self, parameters: Parameters, states: BlockStates, rule: SoftLabelUpdateRule | None
    ) -> Passes[tuple[Assessment, tuple[SoftLabelUpdateRule, Statistics, BlockStates] | None]]:
        """Assess a model at soft labels and, in the same pass, compute the statistics of a step by the rule."""
        task = CertifiedEStep(parameters, rule, self.n_passes * self.problem.rows.n_blocks)
        result, updated = yield self.problem.request(task, states)
        return result.assessment, None if rule is None else (rule, result.statistics, updated)

    def result(self, best: Iterate, converged: bool) -> Passes[SafeFit]:
        """Gather what the fit returns."""
        yield from ()  # mini-batches need one more pass here
        fallback = best.parameters is self.supervised
        return SafeFit(best.parameters, best.states, self.history, converged, fallback)


class StepwiseCertifiedEM(CertifiedEM):
    """Makes steps of stepwise EM (Cappé and Moulines 2009): one step is one pass in mini-batches.

    Statistics are averaged over mini-batches instead of soft labels over steps; the worst case after each pass is that
    of all rows. Networks that are fitted side by side draw mini-batches of their own.

    Parameters
    ----------
    batch_size : int
        Rows per mini-batch; rows in Dask are taken in whole partitions.
    generator : numpy Generator
        Draws the mini-batches.
    """

    _steps_in_batches = True

    def __init__(
        self, problem: Problem, supervised: Parameters, batch_size: int, generator: np.random.Generator, **options: Any
    ) -> None:
        super().__init__(problem, supervised, **options)
        self.batch_size, self.seed = batch_size, int(generator.integers(2**63))
        self._share_of_start = 1.0

    def step(
        self, rule: SoftLabelUpdateRule, next_rule: SoftLabelUpdateRule | None, best: Iterate, size: float = 1.0
    ) -> Passes[float]:
        """Make one pass in mini-batches by the rule; return the exact worst case of the model that it makes."""
        # Rows keep no soft labels between passes: the average over steps is that of the start and of the newest.
        self._share_of_start *= 1 - rule.rate
        self._rule = replace(rule, rate=1 - self._share_of_start)
        return (yield from super().step(rule, None, best, size))

    def _improve(
        self, rule: SoftLabelUpdateRule, origin: Parameters, size: float
    ) -> Passes[tuple[Parameters, float, BlockStates]]:
        structure, parameters = self.problem.structure, origin
        # Each pass draws its own mini-batches and begins a new average, so that it depends on its start only.
        generator = np.random.default_rng([self.seed, len(self.history)])
        average: Statistics | None = None
        objective = 0.0
        for number, rows in enumerate(self.problem.rows.batches(self.batch_size, generator)):
            batch = replace(self.problem, rows=rows)
            _, states = batch.run(InitStates(self.supervised))
            result: EStepResult = batch.run(CertifiedEStep(parameters, self._rule, self.n_passes), states)[0]
            assert result.statistics is not None
            objective += result.statistics.objective
            seen = result.statistics.scaled(self.problem.total_weight / batch.total_weight)
            rate = (number + 1) ** -FORGETTING
            average = seen if average is None else average.scaled(1 - rate) + seen.scaled(rate)
            moved = self._moved(origin, average, parameters, size)
            average = average.recentred(structure, parameters, moved)
            parameters = moved
        yield from ()  # mini-batches are rows of their own, which no other fit waits for
        return parameters, objective, self._initial

    @property
    def _needs_initial_states(self) -> bool:
        return True

    def result(self, best: Iterate, converged: bool) -> Passes[SafeFit]:
        """Gather what the fit returns; the soft labels are those updated from the best model."""
        if best.parameters is not self.supervised and self.returns_soft_labels:
            _, states = yield self.problem.request(CertifiedEStep(best.parameters, self._rule), self._initial)
            best = replace(best, states=states)
        return (yield from super().result(best, converged))

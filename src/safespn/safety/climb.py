"""Steps of the certified fit: soft labels answer the model, the model answers the soft labels.

One pass over the rows does both halves: it assesses the model that the last step made, lets the soft labels answer it,
and expects the statistics that the next step needs. What the next step will ask for is guessed; a wrong guess costs one
more pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from safespn.engine.evidence import ResponseRule
from safespn.engine.statistics import Statistics
from safespn.learning.parameters import maximise
from safespn.network.structure import Parameters
from safespn.rows.parts import Kept
from safespn.safety.checkpoint import Journal
from safespn.safety.problem import Comparison, Problem, SafeFit, ValidationScore
from safespn.safety.tasks import Ascent, Assessment, Climb, Start

FORGETTING = 0.7
"""Mini-batch t of a pass has the weight ``t ** -FORGETTING`` in the average of the statistics."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A model on the way, its exact worst case in nats, and the soft labels that it answered.

    Parameters
    ----------
    number : int
        Steps that led here.
    kept : Kept
        A :class:`safespn.safety.tasks.RowState` for each part of the rows.
    """

    number: int
    parameters: Parameters
    worst_case: float
    kept: Kept


class Climber:
    """Makes full steps: one EM step on all rows at soft labels averaged over the steps.

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
    """

    def __init__(
        self,
        problem: Problem,
        supervised: Parameters,
        *,
        n_passes: int = 75,
        validation_score: ValidationScore | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.problem, self.supervised, self.n_passes = problem, supervised, n_passes
        self.validation_score, self.journal = validation_score, journal
        self.comparison = Comparison(problem, supervised)
        self.position = Iterate(0, supervised, 0.0, self.comparison.start)
        self.history: list[dict[str, Any]] = []
        self._ahead: tuple[ResponseRule, Statistics, Kept] | None = None

    def move_to(self, parameters: Parameters) -> None:
        """Go on from other parameters, with the present soft labels."""
        if parameters is not self.position.parameters:
            self.position, self._ahead = replace(self.position, parameters=parameters), None

    def step(self, rule: ResponseRule, guess: ResponseRule | None, best: Iterate) -> float:
        """Let the soft labels answer, make an EM step, and return the exact worst case of the model that it makes.

        Parameters
        ----------
        guess : ResponseRule or None
            What the next step will probably ask for; None if there will be none.
        best : Iterate
            What must survive an interruption besides the present position.
        """
        number = len(self.history) + 1
        if self.journal is not None and self.journal.knows(number):
            past = self.journal.step(number, self.problem, self.comparison.start)
            self.position, self._ahead = Iterate(number, past.parameters, past.entry["worst_case"], past.kept), None
            self.history.append(past.entry)
            return self.position.worst_case
        parameters, objective, kept = self._improve(rule)
        assessment, self._ahead = self._look(parameters, kept, guess)
        self.position = Iterate(number, parameters, assessment.worst_case, kept)
        entry = {"objective": objective, "contrast": assessment.contrast, "worst_case": assessment.worst_case}
        if self.validation_score is not None:
            entry["validation_score"] = self.validation_score(parameters)
        self.history.append(entry)
        if self.journal is not None:
            self.journal.write(number, parameters, entry, {number: kept, best.number: best.kept}, self.problem)
        return assessment.worst_case

    def _improve(self, rule: ResponseRule) -> tuple[Parameters, float, Kept]:
        """Make an EM step; return its parameters, the objective before it and the soft labels at which it was made."""
        if self._ahead is None or self._ahead[0] != rule:
            _, self._ahead = self._look(self.position.parameters, self.position.kept, rule)
        assert self._ahead is not None
        _, statistics, kept = self._ahead
        parameters = maximise(self.problem.structure, self.position.parameters, statistics, self.problem.prior)
        return parameters, statistics.objective, kept

    def _look(
        self, parameters: Parameters, kept: Kept, rule: ResponseRule | None
    ) -> tuple[Assessment, tuple[ResponseRule, Statistics, Kept] | None]:
        """Assess a model at soft labels, and expect what a step by the rule will need."""
        task = Climb(parameters, rule, self.n_passes * self.problem.rows.n_parts)
        ascent, answered = self.problem.run(task, kept)
        return ascent.assessment, None if rule is None else (rule, ascent.statistics, answered)

    def result(self, best: Iterate, converged: bool) -> SafeFit:
        """Gather what the fit returns."""
        fallback = best.parameters is self.supervised
        return SafeFit(best.parameters, best.kept, self.history, converged, fallback)


class BatchClimber(Climber):
    """Makes steps of stepwise EM (Cappé and Moulines 2009): one step is one pass in mini-batches.

    Statistics are averaged over mini-batches instead of soft labels over steps; the worst case after each pass is that
    of all rows.

    Parameters
    ----------
    batch_size : int
        Rows per mini-batch; rows in Dask are taken in whole partitions.
    generator : numpy Generator
        Draws the mini-batches.
    """

    def __init__(
        self, problem: Problem, supervised: Parameters, batch_size: int, generator: np.random.Generator, **options: Any
    ) -> None:
        super().__init__(problem, supervised, **options)
        self.batch_size, self.seed = batch_size, int(generator.integers(2**63))

    def step(self, rule: ResponseRule, guess: ResponseRule | None, best: Iterate) -> float:
        """Make one pass in mini-batches by the rule; return the exact worst case of the model that it makes."""
        self._rule = replace(rule, rate=1.0)
        return super().step(rule, None, best)

    def _improve(self, rule: ResponseRule) -> tuple[Parameters, float, Kept]:
        structure, parameters = self.problem.structure, self.position.parameters
        # Each pass draws its own mini-batches and averages anew, so that a pass depends on where it starts only.
        generator = np.random.default_rng([self.seed, len(self.history)])
        average: Statistics | None = None
        objective = 0.0
        for number, rows in enumerate(self.problem.rows.batches(self.batch_size, generator)):
            batch = replace(self.problem, rows=rows)
            _, kept = batch.run(Start(self.supervised))
            ascent: Ascent = batch.run(Climb(parameters, self._rule, self.n_passes), kept)[0]
            assert ascent.statistics is not None
            objective += ascent.statistics.objective
            seen = ascent.statistics.scaled(self.problem.total_weight / batch.total_weight)
            rate = (number + 1) ** -FORGETTING
            average = seen if average is None else average.scaled(1 - rate) + seen.scaled(rate)
            moved = maximise(structure, parameters, average, self.problem.prior)
            average = average.restated(structure, parameters, moved)
            parameters = moved
        return parameters, objective, self.comparison.start

    def result(self, best: Iterate, converged: bool) -> SafeFit:
        """Gather what the fit returns; the soft labels are those that answer the best model."""
        if best.parameters is not self.supervised:
            _, kept = self.problem.run(Climb(best.parameters, self._rule), self.comparison.start)
            best = replace(best, kept=kept)
        return super().result(best, converged)

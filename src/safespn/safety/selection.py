"""Choices that labels decide: how the classes are regularised, and whether the unlabelled rows help to tell them apart.

Both compare log probabilities of labels that were kept out of the fit: those of validation rows where there are some,
else those of labelled rows left out in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from safespn.engine.bound import bind
from safespn.engine.passes import log_joint
from safespn.network.structure import Parameters, Structure
from safespn.safety.fitting import Method
from safespn.safety.objective import fit_supervised
from safespn.safety.preparation import ClassPrior, Preparation
from safespn.safety.soft_labels import log_posterior
from safespn.typing import FloatArray, IntArray

N_FOLDS = 5
STANDARD_ERRORS = 2.0
"""An alternative must beat the first choice by so many standard errors: with few labels choosing costs more than it
brings."""
LOWEST_LOG_PROBABILITY = -5.0
"""No single row decides a comparison."""
ROUNDING = 1e-6
"""Classes whose joint log densities differ by less are equally probable."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labels to learn from and rows whose labels were kept out.

    Parameters
    ----------
    codes : array of shape (n_rows,)
        Class of each row of the table, negative where unknown or kept out.
    rows : array of shape (n_held_out, n_columns)
    classes : array of shape (n_held_out,)
    weights : array of shape (n_held_out,)
    """

    codes: IntArray
    rows: FloatArray
    classes: IntArray
    weights: FloatArray

    def joint(self, structure: Structure, parameters: Parameters) -> FloatArray:
        """Class joint of the held-out rows, shape (n_held_out, n_classes)."""
        return log_joint(bind(structure, parameters), self.rows)

    def of_label(self, values: FloatArray) -> FloatArray:
        """Entry of each row's own class, shape (n_held_out,)."""
        return values[np.arange(len(self.classes)), self.classes]

    def log_probability(self, joint: FloatArray) -> FloatArray:
        """Log probability of each held-out label, shape (n_held_out,)."""
        return np.maximum(self.of_label(log_posterior(joint)), LOWEST_LOG_PROBABILITY)


def left_out_in_turn(preparation: Preparation, codes: IntArray) -> Iterator[HeldOut]:
    """Leave out a fifth of the distinct labelled rows of each class in turn; one of each class always stays.

    Equal rows stay together, so that a row of weight two is the same as that row twice; their order does not matter.
    """
    table, weights = preparation.table, preparation.weights
    fold = np.full(len(codes), -1)
    for code in range(int(codes.max()) + 1):
        rows = np.nonzero(codes == code)[0]
        missing = np.isnan(table[rows])
        cells = np.concatenate([np.where(missing, 0.0, table[rows]), missing], axis=1)
        distinct = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        n_distinct = int(distinct.max()) + 1
        turn = np.arange(n_distinct) % N_FOLDS
        if n_distinct < N_FOLDS:
            turn[-1] = -1
        fold[rows] = turn[distinct]
    each = np.ones(len(codes)) if weights is None else weights
    for number in range(N_FOLDS):
        out = fold == number
        if out.any():
            yield HeldOut(np.where(out, -1, codes), table[out], codes[out], each[out])


def choose_class_prior(
    preparation: Preparation,
    held_out: Sequence[HeldOut],
    choices: Sequence[ClassPrior],
    *,
    fewer_errors: bool,
) -> ClassPrior:
    """Return the first choice, unless another one clearly raises the density of held-out rows with no more errors.

    Densities tell from few rows what errors would need many for. The models compared are learned by their likelihood,
    which takes a step or two of EM.

    Parameters
    ----------
    fewer_errors : bool
        Ask for fewer errors, not only for no more.
    """
    if not preparation.has_choice or not any(len(part.classes) for part in held_out):
        return choices[0]

    def scores(class_prior: ClassPrior) -> tuple[FloatArray, float]:
        values, n_right = [], 0.0
        for part in held_out:
            problem, start = preparation.problem(part.codes, class_prior)
            joint = part.joint(problem.structure, fit_supervised(problem, start, conditional=False))
            values.append(part.of_label(joint))
            n_right += float(part.weights @ (part.of_label(joint) >= joint.max(axis=1) - ROUNDING))
        return np.concatenate(values), n_right

    weights = np.concatenate([part.weights for part in held_out])
    usual, usually_right = scores(choices[0])
    best, best_gain = choices[0], 0.0
    for choice in choices[1:]:
        values, n_right = scores(choice)
        gain = float(np.average(values - usual, weights=weights))
        variance = float(np.average((values - usual - gain) ** 2, weights=weights))
        clearly = gain > STANDARD_ERRORS * np.sqrt(variance / weights.sum())
        enough_right = n_right > usually_right if fewer_errors else n_right >= usually_right
        if clearly and enough_right and gain > best_gain:
            best, best_gain = choice, gain
    return best


def unlabelled_rows_help(
    preparation: Preparation,
    held_out: Sequence[HeldOut],
    class_prior: ClassPrior,
    method: Method,
    generator: np.random.Generator,
) -> bool:
    """Whether held-out labels are more probable with the unlabelled rows than without them."""
    gain = 0.0
    for part in held_out:
        problem, start = preparation.problem(part.codes, class_prior)
        supervised = fit_supervised(problem, start, conditional=method.conditional)
        fit = method.fit(problem, supervised, None, generator)
        with_them, without = (
            part.log_probability(part.joint(problem.structure, model)) for model in (fit.parameters, supervised)
        )
        gain += float(part.weights @ (with_them - without))
    return gain > 0

"""Cutting a learned tree: every depth is a network of its own, and one of them is chosen without learning again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from safespn.engine import passes
from safespn.spn import SPN
from safespn.structure_learning.describe import Describer
from safespn.structure_learning.plan import Plan
from safespn.typing import FloatArray

LARGEST_SAMPLE = 2000


def depths_by_score(plan: Plan, score: Callable[[int], float]) -> tuple[int, FloatArray]:
    """Score the tree cut at each depth from 0 to its own.

    Returns
    -------
    best : int
        The depth with the highest score, the smallest of equals.
    scores : array of shape (plan.depth + 1,)
    """
    scores = np.array([score(depth) for depth in range(plan.depth + 1)])
    return int(np.argmax(scores)), scores


def information_criterion(plan: Plan, describer: Describer, criterion: str) -> Callable[[int], float]:
    """Score a depth by AIC or BIC on the rows that the tree was learned from (higher is better).

    Long tables are thinned evenly for the likelihood; the price of a parameter is that of the whole table.
    """
    table = describer.table
    rows = np.unique(np.linspace(0, len(table.weights) - 1, LARGEST_SAMPLE).astype(np.intp))
    sample, weights = table.own_units()[rows], table.weights[rows]
    total = float(table.weights.sum())
    price = 1.0 if criterion == "aic" else 0.5 * float(np.log(max(total, 2.0)))

    def score(depth: int) -> float:
        spn = SPN(describer.describe(plan, depth).root)
        likelihood = passes.log_likelihood(spn._network, sample)
        return float(weights @ likelihood) / float(weights.sum()) * total - price * spn.n_parameters

    return score

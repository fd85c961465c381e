"""From a table to a network: the steps of structure learning in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from safespn.foundation.randomness import as_seed
from safespn.learning.parameters import Prior
from safespn.network.leaves.family import LeafPrior
from safespn.spn import SPN
from safespn.structure_learning.dependence import BASES
from safespn.structure_learning.describe import Describer
from safespn.structure_learning.floors import variance_floors
from safespn.structure_learning.learnspn import GrowthSettings, grow
from safespn.structure_learning.plan import Plan
from safespn.structure_learning.refine import Shrinkage, affordable_iterations, refine
from safespn.structure_learning.table import LearningTable, prepare
from safespn.structure_learning.truncation import depths_by_score, information_criterion
from safespn.structure_learning.univariate import Regularisation, whole_table
from safespn.typing import ArrayLike, FloatArray, RandomState

FEWEST_ROWS_TO_COMPARE, MOST_ROWS_TO_COMPARE = 100, 2000
STANDARD_ERRORS = 3.0
"""By which clusters must be denser on held-out rows than one block of all columns."""


def learn_spn(
    X: ArrayLike,
    *,
    leaves: str | Sequence[str] | Mapping[int, str] = "auto",
    multivariate: bool = True,
    min_rows: float = 5,
    max_depth: int | None = None,
    alpha: float = 1e-4,
    dependence: str = "cosine",
    criterion: str = "bic",
    truncate: str | None = None,
    variance_floor: str | float | FloatArray = 1e-6,
    weight_prior: float = 0.5,
    category_prior: float = 0.1,
    pseudo_rows: float = 1.0,
    covariance_strength: float = 0.2,
    refine_iterations: int | str = "auto",
    random_state: RandomState = None,
    sample_weight: ArrayLike | None = None,
) -> SPN:
    """Learn the structure and the parameters of a network from a table (LearnSPN).

    Columns are split into groups that a test finds independent; where there are none, rows are split into clusters, as
    many as the evidence supports; and so on within each part, down to leaves of one column. A few EM steps follow.

    The result does not depend on the order of the rows, and a row of weight two counts exactly like two equal rows.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers; NaN marks a missing cell, which is never filled in. Columns are standardised inside; the network is in
        the table's own units.
    leaves : str, sequence of str or mapping
        Leaf family: "gaussian", "categorical" (codes 0, 1, 2, ...), "poisson" or "auto" for all columns, per column, or
        by column number. "auto" takes small codes of at least ten rows each as categorical, counts as Poisson where
        that fits better, everything else as Gaussian.
    multivariate : bool
        Let real columns that stay dependent end in one multivariate Gaussian leaf, where the criterion prefers that to
        splitting further. A single one for all rows gives way to clusters where these are clearly denser on held-out
        rows.
    min_rows : float
        Parts with less weight than this are not split.
    max_depth : int, optional
        Largest number of splits, of columns and rows in turn, on a path; 0 gives a product of univariate leaves.
    alpha : float
        Level of the independence tests: the probability of finding a link among columns that are all independent.
    dependence : {"cosine", "rdc", "rank"}
        What the test looks at: smooth functions of the ranks, random ones (the randomised dependence coefficient), or
        monotone dependence alone. Categorical columns are tested by their states in any case.
    criterion : {"bic", "aic"}
        What a further cluster must improve.
    truncate : {None, "aic", "bic"}
        Cut the tree at the depth that this criterion prefers.
    variance_floor : float, array of shape (n_columns,), "squared distance" or "distance"
        Lower bound of the variance of a Gaussian leaf relative to its column's variance. Where values repeat, a lower
        bound always means a higher likelihood, of new rows too, so that no data can choose it; 1e-6 is what
        scikit-learn's ``GaussianMixture`` takes. The two names stand for far broader bounds, from the distances between
        neighbouring rows: smooth densities, for comparing rows or classes rather than models. "distance" is that of
        the original experiments; see :func:`safespn.structure_learning.floors.nearest_neighbour_floor`.
    weight_prior : float
        Pseudo-count of every child of a sum.
    category_prior : float
        Pseudo-count of every state of a categorical leaf.
    pseudo_rows : float
        A cluster's leaves are drawn towards those of the rows it was split from, as if by so many rows.
    covariance_strength : float
        The same for the covariance of a multivariate leaf: as if by so many rows per column.
    refine_iterations : int or "auto"
        EM steps on the finished network; "auto" takes ten, and fewer where they would take longer than the structure.
    random_state : int, generator or None
        Only "rdc" draws anything.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    SPN

    Raises
    ------
    ValueError
        If a parameter is out of range, or a column is infinite, missing in every row or unfit for its declared leaf.

    Warns
    -----
    DegenerateColumnWarning
        If a column holds the same value in every row.

    Examples
    --------
    >>> import numpy as np
    >>> from safespn import learn_spn
    >>> side = np.repeat([-3.0, 3.0], 50)
    >>> noise = np.random.default_rng(0).normal(size=(100, 2))
    >>> spn = learn_spn(side[:, None] + noise)
    >>> len(spn.root.children)
    2
    """
    _check(min_rows, max_depth, alpha, dependence, criterion, truncate)
    _check_priors(weight_prior, category_prior, pseudo_rows, refine_iterations)
    table = prepare(X, sample_weight, leaves)
    floors = variance_floors(table, variance_floor)
    regularisation = Regularisation(floors, pseudo_rows, category_prior)
    settings = GrowthSettings(
        min_rows, max_depth, alpha, dependence, criterion, as_seed(random_state), multivariate, covariance_strength
    )
    learner = _Learner(settings, regularisation, weight_prior, truncate, refine_iterations)
    plan, spn = learner.learn(table)
    if plan.block is not None and learner.clusters_are_denser(table):
        return learner.without_blocks().learn(table)[1]
    return spn


@dataclass(frozen=True)
class _Learner:
    """The steps from a checked table to a network, with the settings of :func:`learn_spn`."""

    settings: GrowthSettings
    regularisation: Regularisation
    weight_prior: float
    truncate: str | None
    refine_iterations: int | str

    def without_blocks(self) -> _Learner:
        return replace(self, settings=replace(self.settings, multivariate=False))

    def learn(self, table: LearningTable) -> tuple[Plan, SPN]:
        floors, pseudo_rows = self.regularisation.variance_floor, self.regularisation.pseudo_rows
        plan = grow(whole_table(table), self.settings, self.regularisation)
        describer = Describer(table, floors, self.weight_prior, pseudo_rows)
        depth = None
        if self.truncate is not None:
            depth, _ = depths_by_score(plan, information_criterion(plan, describer, self.truncate))
        description = describer.describe(plan, depth)
        spn = SPN(description.root)
        n_iterations = self.refine_iterations
        if n_iterations == "auto":
            n_iterations = affordable_iterations(spn.n_parameters, len(table.weights))
        if n_iterations == 0:
            return plan, spn
        prior = Prior(self.weight_prior, LeafPrior(floors * table.scale**2, self.regularisation.category_prior))
        shrinkage = Shrinkage(spn._structure, description.targets)
        rows, weights = table.own_units(), table.weights
        parameters = refine(spn._structure, spn._parameters, rows, weights, prior, shrinkage, int(n_iterations))
        return plan, SPN._from_parameters(spn._structure, parameters)

    def clusters_are_denser(self, table: LearningTable) -> bool:
        """Whether clusters of univariate leaves make held-out rows clearly more likely than one block of all rows.

        Growing scores every row in its own cluster, so that clusters which overlap, as along a curve, seem to lose
        against one Gaussian. A comparison on held-out rows sees the whole mixture.
        """
        if len(table.weights) < FEWEST_ROWS_TO_COMPARE:
            return False
        # Rows are sorted: every third one is as good as a random draw, and does not depend on their order.
        step = max(1, len(table.weights) // MOST_ROWS_TO_COMPARE)
        is_used = np.arange(len(table.weights)) % step == 0
        number = np.cumsum(is_used) - 1
        left_out = is_used & (number % 3 == 1)
        kept = table.weighted(np.where(is_used & ~left_out, table.weights, 0.0))
        rows, weights = table.own_units()[left_out], table.weights[left_out]
        gain = self.without_blocks().learn(kept)[1].log_likelihood(rows) - self.learn(kept)[1].log_likelihood(rows)
        mean = np.average(gain, weights=weights)
        error = np.sqrt(np.average((gain - mean) ** 2, weights=weights) / len(gain))
        return bool(mean > STANDARD_ERRORS * error)


def _check(
    min_rows: float, max_depth: int | None, alpha: float, dependence: str, criterion: str, truncate: str | None
) -> None:
    if not min_rows > 0:
        raise ValueError(f"min_rows must be positive, got {min_rows}")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be None or not negative, got {max_depth}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    if dependence not in BASES:
        raise ValueError(f"dependence must be one of {', '.join(map(repr, BASES))}, got {dependence!r}")
    if criterion not in ("aic", "bic"):
        raise ValueError(f"criterion must be 'aic' or 'bic', got {criterion!r}")
    if truncate not in (None, "aic", "bic"):
        raise ValueError(f"truncate must be None, 'aic' or 'bic', got {truncate!r}")


def _check_priors(weight_prior: float, category_prior: float, pseudo_rows: float, refine_iterations: int | str) -> None:
    priors = {"weight_prior": weight_prior, "category_prior": category_prior, "pseudo_rows": pseudo_rows}
    for name, value in priors.items():
        if not value >= 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    if refine_iterations != "auto" and (isinstance(refine_iterations, str) or refine_iterations < 0):
        raise ValueError(f"refine_iterations must be 'auto' or not negative, got {refine_iterations!r}")

"""Blocks: one Gaussian of all real columns per class, and a table for every column of codes.

The covariance is shared by the classes or each one's own, and is drawn towards that of all rows weakly or strongly: a
family between naive Bayes, linear and quadratic discriminants.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from safespn.class_networks.candidate import CATEGORY_PRIOR, Candidate, ClassNetwork, NetworkSettings, compile_checked
from safespn.class_networks.copies import block_root, copies, pseudo_data_prior
from safespn.class_networks.folds import N_FOLDS, Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import class_evidence
from safespn.engine.statistics import Statistics
from safespn.learning.em import fit_em
from safespn.learning.parameters import Prior, m_step
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves import MultivariateGaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, walk
from safespn.network.structure import Parameters, Structure, describe
from safespn.typing import FloatArray

MOST_COLUMNS = 150
"""More real columns than this, or than a third of the rows, get several blocks."""
COLUMNS_PER_BLOCK = 30
"""Most columns of each of several blocks: no covariance has many more columns than rows, and work stays linear."""
USUAL_TEMPERATURE = 1.0
STEPS_WITH_GAPS = 4
"""EM steps where cells are missing; without gaps a single one is exact."""
STEPS_WITH_SUMS = 30
"""EM steps where classes are networks with sums of their own."""


@dataclass(frozen=True)
class Pull:
    """How strongly the classes are held near the whole table.

    Parameters
    ----------
    name : str
    shared : bool
        The classes share one covariance.
    rows_per_column : float
        Pseudo-rows per column, for all classes together, with the covariance of all rows.
    ridge : float
        Share by which the correlations of these pseudo-rows are taken back towards zero.
    """

    name: str
    shared: bool
    rows_per_column: float
    ridge: float


PULLS = (
    Pull("shared covariance, weak pull", True, 0.1, 0.0),
    Pull("shared covariance, medium pull", True, 0.3, 0.1),
    Pull("shared covariance, strong pull", True, 1.0, 0.5),
    Pull("shared covariance, diagonal pull", True, 1.0, 1.0),
    Pull("own covariances, medium pull", False, 0.3, 0.1),
    Pull("own covariances, strong pull", False, 1.0, 0.5),
    Pull("own covariances, diagonal pull", False, 5.0, 1.0),
)
WIDE_PULLS = tuple(
    Pull(f"shared covariance of {COLUMNS_PER_BLOCK} columns each, {name} pull to the diagonal", True, rows, 1.0)
    for name, rows in (("weak", 0.2), ("medium", 1.0), ("strong", 5.0))
)
"""For several blocks. The covariance of all rows mostly tells the classes apart there, and is no target."""
LABELS_FOR_OWN_COVARIANCES = 5.0
"""Fewest labels per class. A class that loses one of two has a wider covariance than the others: a held-out row would
be recognised by that, and own covariances look better than they are."""
SHRUNKEN_CENTROIDS = (1.0, 5.0, 25.0)
"""Pseudo-rows per class for tables without a block."""


def candidates(
    table: LabelledTable, folds: Folds, settings: NetworkSettings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield blocks of every kind."""
    start = _network_of_all_rows(table, settings)
    blocks = [node for node in walk(start) if isinstance(node, MultivariateGaussian)]
    if not blocks:
        for prior_rows in SHRUNKEN_CENTROIDS:
            copied = ClassCopies.of(table, start, replace(settings, prior_rows=prior_rows), shared=False)
            yield copied.candidate("blocks", folds, f"independent columns, {prior_rows:g} pseudo-rows", Prior())
        return
    labels_per_class = table.class_weights.sum() / table.n_classes
    pulls = [
        pull
        for pull in (PULLS if len(blocks) == 1 else WIDE_PULLS)
        if pull.shared or labels_per_class >= LABELS_FOR_OWN_COVARIANCES
    ]
    for shared in (True, False):
        of_kind = [pull for pull in pulls if pull.shared == shared]
        if not of_kind:
            continue
        copied = ClassCopies.of(table, start, settings, shared)
        for pull in of_kind:
            strength = pull.rows_per_column * len(blocks[0].columns) / (1 if shared else table.n_classes)
            leaves = LeafPrior(covariance_prior=strength, covariance_target=_target(table, blocks, pull.ridge))
            yield copied.candidate("blocks", folds, pull.name, Prior(0.0, leaves))


def _target(table: LabelledTable, blocks: Sequence[MultivariateGaussian], ridge: float) -> FloatArray:
    """Covariance of all rows, with correlations taken back towards zero; its diagonal alone for several blocks."""
    if len(blocks) > 1:
        return table.variance
    (block,) = blocks
    covariance = np.diag(table.variance)
    covariance[np.ix_(block.columns, block.columns)] = block.covariance
    return np.asarray((1 - ridge) * covariance + ridge * np.diag(np.diag(covariance)))


def _network_of_all_rows(table: LabelledTable, settings: NetworkSettings) -> Node:
    n_real = len(table.real_columns)
    is_wide = n_real > min(MOST_COLUMNS, len(table.cells) / 3)
    block_size = COLUMNS_PER_BLOCK if is_wide else max(n_real, 1)
    structure, parameters = compile_checked(block_root(table.winsorised, table.n_states, block_size=block_size))
    leaves = LeafPrior(table.min_variance(settings.variance_floor), CATEGORY_PRIOR)
    if is_wide:
        leaves = replace(leaves, covariance_prior=float(block_size), covariance_target=table.variance)
    prior = Prior(0.0, leaves)
    with warnings.catch_warnings():
        # With many missing cells a few steps may not suffice, and need not: this is a starting point.
        warnings.simplefilter("ignore", ConvergenceWarning)
        source = TableSource(structure, table.winsorised, weights=table.weights, n_jobs=settings.n_jobs)
        fit = fit_em(source, parameters, prior=prior, max_iter=20)
    return describe(structure, fit.parameters)


@dataclass(frozen=True, eq=False)
class ClassCopies:
    """A network of all rows copied per class, and statistics of the labelled rows."""

    table: LabelledTable
    structure: Structure
    start: Parameters
    prior: Prior

    @classmethod
    def of(cls, table: LabelledTable, root: Node, settings: NetworkSettings, shared: bool) -> ClassCopies:
        structure, start = compile_checked(copies(root, table.n_classes, tied=shared))
        pseudo_data = pseudo_data_prior(structure, start, table.cells, settings.prior_rows, table.weights)
        leaves = LeafPrior(table.min_variance(settings.variance_floor), CATEGORY_PRIOR)
        return cls(table, structure, start, Prior(0.0, leaves, pseudo_data))

    def candidate(self, family: str, folds: Folds, size: str, pull: Prior) -> Candidate:
        """Learn from all labels but those of each fold in turn; ``pull`` says where covariances are drawn to."""
        leaves = replace(
            self.prior.leaves,
            covariance_prior=pull.leaves.covariance_prior,
            covariance_target=pull.leaves.covariance_target,
        )
        prior = replace(self.prior, leaves=leaves)
        left_out = np.zeros((len(folds.rows), self.table.n_classes))
        for fold in range(N_FOLDS):
            out = folds.number == fold
            if out.any():
                network = bind(self.structure, self._learned(folds, prior, fold))
                left_out[out] = passes.log_joint(network, self.table.cells[folds.rows[out]], n_jobs=1)

        def build() -> ClassNetwork:
            return ClassNetwork(self.structure, self._learned(folds, prior, None), prior)

        return Candidate(family, family, size, left_out[folds.left_out], USUAL_TEMPERATURE, build)

    def _learned(self, folds: Folds, prior: Prior, fold: int | None) -> Parameters:
        """Parameters from the labelled rows without a fold's."""
        statistics = reduce(add, (each for number, each in self._statistics(folds).items() if number != fold))
        parameters = m_step(self.structure, self.start, statistics, prior)
        if self._n_steps > 1:
            weights = folds.weights if fold is None else folds.kept_weights(fold)
            kept = weights > 0
            evidence = class_evidence(folds.codes[kept], int(kept.sum()), self.table.n_classes)
            cells = self.table.cells[folds.rows[kept]]
            for _ in range(self._n_steps - 1):
                statistics = passes.statistics(bind(self.structure, parameters), cells, evidence, weights[kept])
                parameters = m_step(self.structure, parameters, statistics, prior)
        return parameters

    @cached_property
    def _n_steps(self) -> int:
        if self.structure.n_sums > 1:
            return STEPS_WITH_SUMS
        return STEPS_WITH_GAPS if np.isnan(self.table.cells[self.table.labelled]).any() else 1

    def _statistics(self, folds: Folds) -> dict[int, Statistics]:
        """Statistics of the labelled rows that each fold leaves out, and of those that always stay; they add."""
        known: dict[int, Statistics] | None = self.__dict__.get("_of_folds")
        if known is None:
            known = {}
            network = bind(self.structure, self.start)
            for number in np.unique(folds.number).tolist():
                rows = folds.number == number
                evidence = class_evidence(folds.codes[rows], int(rows.sum()), self.table.n_classes)
                cells = self.table.cells[folds.rows[rows]]
                known[number] = passes.statistics(network, cells, evidence, folds.weights[rows])
            self.__dict__["_of_folds"] = known
        return known

"""Components shared by all classes: a mixture of all rows in which labels only say which class a component means.

``p(x, y) = sum_c p(c) p(x | c) p(y | c)`` (Miller and Uyar 1997). The components are learned from all rows, labelled or
not; the labels, spread over all rows, fill the tables ``p(y | c)``. As a network every class is a sum over the same
component sub-networks with weights of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import softmax
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from safespn.class_networks.candidate import CATEGORY_PRIOR, Candidate, ClassNetwork, NetworkSettings, compile_checked
from safespn.class_networks.component_tables import Responsibilities, spread_tables
from safespn.class_networks.copies import independent_columns
from safespn.class_networks.folds import N_FOLDS, Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.engine.threads import single_threaded_blas
from safespn.learning.em import fit_em
from safespn.learning.parameters import Prior, PseudoDataPrior, m_step
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, Sum
from safespn.network.structure import Parameters, Structure, describe
from safespn.typing import FloatArray, IntArray

SIZES = (8, 16, 32, 64)
ROWS_PER_COMPONENT = 8
MOST_LEAVES = 50_000
"""Components times columns: fewer components for wide tables."""
VARIANCE_FLOOR = 0.02
"""Lower bound of a component's variances relative to the column's."""
PSEUDO_ROWS = 2.0
"""Rows distributed like the whole table that each component sees besides its own."""
TABLE_PSEUDO_ROWS = 1.0
"""Pseudo-rows of each component's class table in every further update."""
USUAL_TEMPERATURE = 0.5
EM_STEPS = 25
EM_TOLERANCE = 2e-3


def candidates(
    table: LabelledTable, folds: Folds, settings: NetworkSettings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield mixtures of every size that the rows allow."""
    most = min(len(table.cells) // ROWS_PER_COMPONENT, MOST_LEAVES // table.n_columns)
    for size in [each for each in SIZES if each <= most] or [max(1, most)]:
        mixture = learn_mixture(table, size, settings, int(generator.integers(2**31)))
        of_rows = Responsibilities(table, folds, mixture.responsibilities(table.cells))
        shared = SharedComponents(of_rows, mixture.connected)
        yield shared.candidate("mixtures", f"{size} components", USUAL_TEMPERATURE)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Components under one sum, not yet connected with classes."""

    structure: Structure
    parameters: Parameters
    prior: Prior

    def responsibilities(self, cells: FloatArray) -> FloatArray:
        """Posterior probability of each component, shape (n_rows, n_components)."""
        return np.asarray(softmax(passes.log_joint(bind(self.structure, self.parameters), cells), axis=1))

    def connected(self, tables: FloatArray) -> ClassNetwork:
        """Connect the components with the classes; ``tables`` has p(y | c), shape (n_components, n_classes)."""
        root = describe(self.structure, self.parameters)
        return connect(root.children, np.exp(self.parameters.log_weights), tables, self.prior.leaves)


def connect(components: Sequence[Node], shares: FloatArray, tables: FloatArray, leaves: LeafPrior) -> ClassNetwork:
    """Make a class network of shared components.

    Parameters
    ----------
    shares : array of shape (n_components,)
        Probability of each component.
    tables : array of shape (n_components, n_classes)
        p(y | c).
    leaves : LeafPrior
        What further updates of the components respect.
    """
    structure, parameters = compile_checked(over_shared_components(components, shares[:, None] * tables))
    # The components' pseudo-data keep their share; the tables get as much as they had when they were filled.
    edge_counts = np.append((TABLE_PSEUDO_ROWS * tables.T).ravel(), np.zeros(tables.shape[1]))
    pseudo_data = PseudoDataPrior(parameters, edge_counts, tuple(np.full(len(v), 1.0) for v in parameters.leaves))
    return ClassNetwork(structure, parameters, Prior(0.0, leaves, pseudo_data))


def over_shared_components(components: Sequence[Node], joint: FloatArray) -> Node:
    """Put classes over components; ``joint`` has their joint probability, shape (components, classes)."""
    of_class = joint.sum(axis=0)
    classes = [Sum(components, each / total) for each, total in zip(joint.T, of_class, strict=True)]
    return Sum(classes, (of_class / of_class.sum()).tolist())


def learn_mixture(table: LabelledTable, size: int, settings: NetworkSettings, seed: int) -> Mixture:
    """Learn components from all rows by EM, starting from k-means."""
    root = Sum([independent_columns(table, range(table.n_columns)) for _ in range(size)], [1 / size] * size)
    structure, start = compile_checked(root)
    leaves = LeafPrior(table.min_variance(VARIANCE_FLOOR), CATEGORY_PRIOR)
    counts = tuple(np.full(len(values), PSEUDO_ROWS) for values in start.leaves)
    prior = Prior(1.0, leaves, PseudoDataPrior(start, np.zeros(structure.n_edges), counts))
    evidence = Evidence(_log_indicators(cluster(table.design.scaled, table.weights, size, seed), size), tilt=0.0)
    statistics = passes.statistics(bind(structure, start), table.cells, evidence, table.weights, n_passes=EM_STEPS)
    parameters = m_step(structure, start, statistics, prior)
    source = TableSource(structure, table.cells, weights=table.weights, n_jobs=settings.n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = fit_em(source, parameters, prior=prior, max_iter=EM_STEPS, tol=EM_TOLERANCE)
    return Mixture(structure, fit.parameters, prior)


def cluster(values: FloatArray, weights: FloatArray, size: int, seed: int) -> IntArray:
    """Number of the cluster of each row, from 0 to less than ``size``, by k-means."""
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        size = min(size, len(values))
        # One trial for each centre: among many centres, better ones are not worth the time that trials take.
        start, _ = kmeans_plusplus(values, size, sample_weight=weights, random_state=seed, n_local_trials=1)
        means = KMeans(size, init=start, n_init=1, max_iter=25, random_state=seed)
        return np.asarray(means.fit_predict(values, sample_weight=weights))


def _log_indicators(numbers: IntArray, size: int) -> FloatArray:
    return np.where(numbers[:, None] == np.arange(size), 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class SharedComponents:
    """Components that do not depend on labels: only class tables are filled again without the labels of each fold.

    Parameters
    ----------
    responsibilities : Responsibilities
        Of all rows.
    connected : callable
        Makes the class network from tables p(y | c).
    """

    responsibilities: Responsibilities
    connected: Callable[[FloatArray], ClassNetwork]

    def candidate(self, group: str, size: str, usual_temperature: float) -> Candidate:
        """Make a candidate of a group."""
        folds, tables_of = self.responsibilities.folds, partial(spread_tables, self.responsibilities)
        left_out = np.zeros((len(folds.rows), self.responsibilities.table.n_classes))
        for fold in range(N_FOLDS):
            out = folds.number == fold
            if out.any():
                posterior = self.responsibilities.of_labelled[out] @ tables_of(folds.kept_weights(fold))
                left_out[out] = np.log(np.maximum(posterior, 1e-300))

        def build() -> ClassNetwork:
            return self.connected(tables_of(folds.weights))

        return Candidate("components", group, size, left_out[folds.left_out], usual_temperature, build)

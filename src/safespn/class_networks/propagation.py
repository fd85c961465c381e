"""Propagating components: many small ones of a common shape, whose class tables spread labels through shared rows.

Their width is chosen so that rows belong to a given number of components in the mean. Their real columns are
independent or, where the table is complete, as correlated as within clusters of all rows: distances along a correlation
are then shorter than across it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax, xlogy

from safespn.class_networks.candidate import CATEGORY_PRIOR, Candidate, ClassNetwork, NetworkSettings
from safespn.class_networks.component_tables import Responsibilities
from safespn.class_networks.components import MOST_LEAVES, SharedComponents, cluster, connect
from safespn.class_networks.folds import Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.network.leaves import Categorical, Gaussian, MultivariateGaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, Product
from safespn.typing import FloatArray

SIZES = (64, 128, 256)
PERPLEXITIES = (1.5, 2.5)
"""Mean number of components that a row belongs to."""
ROWS_PER_COMPONENT = 1.2
"""Fewest. In small tables nearly every row has a component of its own, as in label propagation between rows."""
ROWS_FOR_WIDTH = 500
"""Rows that the common width is chosen with."""
USUAL_TEMPERATURE = 0.5
MOST_CORRELATED_COLUMNS, ROWS_PER_CORRELATED_COLUMN = 64, 5
CLUSTERS_FOR_COVARIANCE = 32
RIDGE, SMALLEST_SHARE = 0.1, 1e-3
"""Share by which correlations within clusters are taken back, and of a column's variance that is always left."""
WIDTH_FLOOR = 1e-3
SMALLEST_STATE = 1e-9
"""Least probability of a state in a narrow component."""


def candidates(
    table: LabelledTable, folds: Folds, settings: NetworkSettings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield propagating components of each shape, size and overlap."""
    shapes: dict[str, FloatArray | None] = {"propagating components": None}
    if _can_be_correlated(table):
        shapes["correlated propagating components"] = _covariance_within_clusters(table, generator)
    most = min(len(table.cells) / ROWS_PER_COMPONENT, MOST_LEAVES / table.n_columns)
    sizes = [size for size in SIZES if size <= most]
    for shape, covariance in shapes.items():
        # Covariances take time: the smallest size and the largest tell nearly as much as all of them.
        for size in sizes if covariance is None else sorted({*sizes[:1], *sizes[-1:]}):
            cells = _Cells(table, size, int(generator.integers(2**31)), covariance)
            for perplexity in PERPLEXITIES:
                width = cells.width_for(perplexity)
                of_rows = Responsibilities(table, folds, softmax(cells.log_density(table.cells, width), axis=1))
                shared = SharedComponents(of_rows, partial(cells.connected, width, settings))
                name = f"{size} {shape}, {perplexity:g} to a row"
                yield shared.candidate("propagation", name, USUAL_TEMPERATURE)


def _can_be_correlated(table: LabelledTable) -> bool:
    n_real = len(table.real_columns)
    is_small = 2 <= n_real <= min(MOST_CORRELATED_COLUMNS, len(table.cells) // ROWS_PER_CORRELATED_COLUMN)
    return is_small and not len(table.code_columns) and not np.isnan(table.cells).any()


def _covariance_within_clusters(table: LabelledTable, generator: np.random.Generator) -> FloatArray:
    """Covariance of the rows about the centres of their clusters, all columns real and complete."""
    size = max(1, min(CLUSTERS_FOR_COVARIANCE, len(table.cells) // 8))
    numbers = cluster(table.design.scaled, table.weights, size, int(generator.integers(2**31)))
    indicators = (numbers[:, None] == np.arange(size)) * table.weights[:, None]
    z = table.design.values
    centres = indicators.T @ z / np.maximum(indicators.sum(axis=0), 1e-9)[:, None]
    residuals = z - centres[numbers]
    within = (residuals * table.weights[:, None]).T @ residuals / table.weights.sum()
    within = (1 - RIDGE) * within + np.diag(RIDGE * np.diag(within) + SMALLEST_SHARE)
    spread = np.sqrt(table.variance)
    return np.asarray(within * np.outer(spread, spread))


class _Cells:
    """Clusters of all rows as components of a common shape and width.

    At width s a component's log density is that at width one divided by s, up to its normaliser: Gaussians whose
    covariance is s times the common one, and tables of states raised to the power 1/s.

    Parameters
    ----------
    covariance : array of shape (n_columns, n_columns) or None
        Of tables whose columns are all real and complete. None for independent columns with their own variances.
    """

    def __init__(self, table: LabelledTable, size: int, seed: int, covariance: FloatArray | None = None) -> None:
        self.table, self.covariance = table, covariance
        values = table.design.scaled
        if covariance is not None:
            whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
            values = (table.winsorised - table.mean) @ whitening
            self.whitening = whitening
        else:
            self.whitening = np.diag(1 / np.sqrt(table.variance[table.real_columns]))
        numbers = cluster(values, table.weights, size, seed)
        self.indicators = (numbers[:, None] == np.arange(size)) * table.weights[:, None]
        self.means = self._means()
        self.tables = {column: self._states(column) for column in table.code_columns.tolist()}

    def _means(self) -> FloatArray:
        cells = self.table.winsorised[:, self.table.real_columns]
        observed = ~np.isnan(cells)
        centre = self.table.mean[self.table.real_columns]
        totals = self.indicators.T @ np.where(observed, cells - centre, 0.0)
        return np.asarray(centre + totals / np.maximum(self.indicators.T @ observed, 1e-9))

    def _states(self, column: int) -> FloatArray:
        states = self.table.cells[:, column, None] == np.arange(self.table.n_states[column])
        whole = self.table.weights @ states + CATEGORY_PRIOR
        counts = self.indicators.T @ states + whole / whole.sum()
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def log_density(self, cells: FloatArray, width: float) -> FloatArray:
        """Log density of the components up to a constant per row, shape (n_rows, n_components)."""
        return self._log_density_of_numbers(cells) / width + self._log_density_of_codes(cells, width)

    def _log_density_of_numbers(self, cells: FloatArray) -> FloatArray:
        """Of the real columns at width one."""
        real = self.table.real_columns
        middle = self.table.mean[real]
        # A missing cell counts for nothing where columns are independent; where they are not, none is missing.
        z, observed = np.nan_to_num(cells[:, real] - middle) @ self.whitening, ~np.isnan(cells[:, real])
        centre = (self.means - middle) @ self.whitening
        return np.asarray(z @ centre.T - 0.5 * observed @ (centre**2).T)

    def _log_density_of_codes(self, cells: FloatArray, width: float) -> FloatArray | float:
        """Of the columns of codes; zero if there are none."""
        value: FloatArray | float = 0.0
        for column, table in self._tables_at(width).items():
            # A missing code reads the last row.
            of_state = np.append(np.log(table.T), np.zeros((1, len(table))), axis=0)
            value = value + of_state[np.where(np.isnan(cells[:, column]), -1, cells[:, column]).astype(np.intp)]
        return value

    def _tables_at(self, width: float) -> dict[int, FloatArray]:
        """Tables of states at a width; no state is impossible, as its prior probability would be zero."""
        powers = {column: softmax(np.log(table) / width, axis=1) for column, table in self.tables.items()}
        floored = {column: np.maximum(table, SMALLEST_STATE) for column, table in powers.items()}
        return {column: table / table.sum(axis=1, keepdims=True) for column, table in floored.items()}

    def width_for(self, perplexity: float) -> float:
        """Width at which rows belong to so many components in the mean."""
        step = max(1, round(len(self.table.cells) / ROWS_FOR_WIDTH))
        cells = self.table.cells[::step]
        of_numbers = self._log_density_of_numbers(cells)

        def excess(log_width: float) -> float:
            width = np.exp(log_width)
            share = softmax(of_numbers / width + self._log_density_of_codes(cells, width), axis=1)
            return float(np.exp(-xlogy(share, share).sum(axis=1)).mean()) - perplexity

        low, high = np.log(WIDTH_FLOOR), np.log(1e4)
        if excess(low) >= 0:
            return float(np.exp(low))
        return float(np.exp(brentq(excess, low, high, xtol=0.05))) if excess(high) > 0 else float(np.exp(high))

    def connected(self, width: float, settings: NetworkSettings, tables: FloatArray) -> ClassNetwork:
        """Make a class network; ``tables`` has p(y | c), shape (n_components, n_classes)."""
        components = self.components(width)
        floors = self.table.min_variance(settings.variance_floor)
        shares = np.full(len(components), 1 / len(components))
        network = connect(components, shares, tables, LeafPrior(floors, CATEGORY_PRIOR))
        # Their width suits the spreading of labels, and hundreds of components would take most of the time of a fit.
        return replace(network, for_density=False)

    def components(self, width: float) -> list[Node]:
        """Describe the components as sub-networks."""
        real = self.table.real_columns.tolist()
        if self.covariance is not None:
            return [MultivariateGaussian(real, means, width * self.covariance, tie=0) for means in self.means]
        variance = width * self.table.variance[real]
        states = self._tables_at(width)
        components: list[Node] = []
        for number, means in enumerate(self.means):
            leaves: list[Node] = [Gaussian(column, *each) for column, *each in zip(real, means, variance, strict=True)]
            leaves += [Categorical(column, table[number]) for column, table in states.items()]
            components.append(leaves[0] if len(leaves) == 1 else Product(leaves))
        return components

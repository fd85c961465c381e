"""Propagating components: many small ones of a common width, whose class tables spread labels through shared rows.

The width is chosen so that rows belong to a given number of components in the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax, xlogy

from safespn.class_networks.candidate import CATEGORY_PRIOR, Candidate, ClassNetwork, Settings
from safespn.class_networks.component_tables import tables_by_spreading
from safespn.class_networks.components import MOST_LEAVES, SharedComponents, cluster, connect
from safespn.class_networks.folds import Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.network.leaves import Categorical, Gaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, Product
from safespn.typing import FloatArray, IntArray

SIZES = (64, 128, 256)
PERPLEXITIES = (1.5, 2.5)
"""Mean number of components that a row belongs to."""
ROWS_PER_COMPONENT = 3
ROWS_FOR_WIDTH = 500
"""Rows that the common width is chosen with."""
USUAL_TEMPERATURE = 0.5
WIDTH_FLOOR = 1e-3
SMALLEST_STATE = 1e-9
"""Least probability of a state in a narrow component."""


def candidates(
    table: LabelledTable, folds: Folds, settings: Settings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield propagating components of each size and overlap."""
    for size in SIZES:
        seed = int(generator.integers(2**31))
        if size * ROWS_PER_COMPONENT > len(table.cells) or size * table.n_columns > MOST_LEAVES:
            continue
        cells = _Cells(table, cluster(table, size, seed)[0], size)
        for perplexity in PERPLEXITIES:
            width = cells.width_for(perplexity)
            everywhere = softmax(cells.log_density(table.cells, width), axis=1)
            shared = SharedComponents(table, folds, everywhere, partial(cells.connected, width, settings))
            name = f"{size} propagating components, {perplexity:g} to a row"
            yield shared.candidate("propagation", name, tables_by_spreading, USUAL_TEMPERATURE)


class _Cells:
    """Clusters of all rows as components with a common width.

    At width s a component's log density is that at width one divided by s, up to its normaliser: Gaussians of variance
    s in units of the column's, and tables of states raised to the power 1/s.
    """

    def __init__(self, table: LabelledTable, numbers: IntArray, size: int) -> None:
        self.table = table
        self.indicators = (numbers[:, None] == np.arange(size)) * table.weights[:, None]
        self.means = self._means()
        self.tables = {column: self._states(column) for column in table.code_columns.tolist()}

    def _means(self) -> FloatArray:
        cells = self.table.cells[:, self.table.real_columns]
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
        real = self.table.real_columns
        scale = np.sqrt(self.table.variance[real])
        z, observed = np.nan_to_num(cells[:, real] / scale), ~np.isnan(cells[:, real])
        centre = self.means / scale
        value = (z @ centre.T - 0.5 * observed @ (centre**2).T) / width
        for column, table in self._tables_at(width).items():
            value += (cells[:, column, None] == np.arange(table.shape[1])) @ np.log(table).T
        return np.asarray(value)

    def _tables_at(self, width: float) -> dict[int, FloatArray]:
        """Tables of states at a width; no state is impossible, as its prior probability would be zero."""
        powers = {column: softmax(np.log(table) / width, axis=1) for column, table in self.tables.items()}
        floored = {column: np.maximum(table, SMALLEST_STATE) for column, table in powers.items()}
        return {column: table / table.sum(axis=1, keepdims=True) for column, table in floored.items()}

    def width_for(self, perplexity: float) -> float:
        """Width at which rows belong to so many components in the mean."""
        step = max(1, len(self.table.cells) // ROWS_FOR_WIDTH)
        cells = self.table.cells[::step]

        def excess(log_width: float) -> float:
            share = softmax(self.log_density(cells, np.exp(log_width)), axis=1)
            return float(np.exp(-xlogy(share, share).sum(axis=1)).mean()) - perplexity

        low, high = np.log(WIDTH_FLOOR), np.log(1e4)
        if excess(low) >= 0:
            return float(np.exp(low))
        return float(np.exp(brentq(excess, low, high, xtol=0.05))) if excess(high) > 0 else float(np.exp(high))

    def connected(self, width: float, settings: Settings, tables: FloatArray) -> ClassNetwork:
        """Make a class network; ``tables`` has p(y | c), shape (n_components, n_classes)."""
        components = self.components(width)
        floors = self.table.variance_floor(settings.relative_floor)
        shares = np.full(len(components), 1 / len(components))
        return connect(components, shares, tables, LeafPrior(floors, CATEGORY_PRIOR))

    def components(self, width: float) -> list[Node]:
        """Describe the components as sub-networks."""
        variance = width * self.table.variance[self.table.real_columns]
        states = self._tables_at(width)
        components: list[Node] = []
        for number, means in enumerate(self.means):
            leaves: list[Node] = [
                Gaussian(column, *each)
                for column, *each in zip(self.table.real_columns.tolist(), means, variance, strict=True)
            ]
            leaves += [Categorical(column, table[number]) for column, table in states.items()]
            components.append(leaves[0] if len(leaves) == 1 else Product(leaves))
        return components

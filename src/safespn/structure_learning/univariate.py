"""Products of univariate leaves as arrays: statistics, parameters and log densities of K of them at once.

A slice of the table is three matrices (real columns, counts, one-hot codes). Every univariate family here is linear in
its sufficient statistics, so the statistics of K weighted groups of rows, and the log densities of all rows under K
products, are a few matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from safespn.network.leaves.poisson import SMALLEST_RATE
from safespn.structure_learning.leaf_choice import LeafChoice
from safespn.structure_learning.table import LearningTable
from safespn.typing import BoolArray, FloatArray, IntArray

ROWS_OF_AN_ATOM = 3.0
"""So many rows with the same real value are no coincidence."""
SMALLEST_WEIGHT = 1e-300
LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Regularisation:
    """What keeps univariate leaves away from degenerate parameters.

    Parameters
    ----------
    variance_floor : array of shape (n_columns,)
        Lower bound of each column's variance, in units of z-scores.
    pseudo_rows : float
        Leaves of part of the rows are drawn towards those of all rows of the slice, as if by so many rows.
    category_prior : float
        Pseudo-count of every state of a categorical leaf.
    """

    variance_floor: FloatArray
    pseudo_rows: float
    category_prior: float


@dataclass(frozen=True, eq=False)
class UnivariateLeaves:
    """Univariate leaves of K products; arrays have shape (K, number of columns or states)."""

    mean: FloatArray
    variance: FloatArray
    rate: FloatArray
    log_probability: FloatArray

    def of(self, product: int) -> UnivariateLeaves:
        """Return one of the products, as K = 1."""
        return UnivariateLeaves(*(values[product : product + 1] for values in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Slice:
    """Some rows and some columns of a table, missing cells as zeros.

    Parameters
    ----------
    real : array of shape (n_rows, n_real)
    counts : array of shape (n_rows, n_counts)
    codes : array of shape (n_rows, total number of states)
        One-hot, all zeros where missing.
    real_observed, counts_observed : arrays or None
        One where a cell is observed; None if no cell is missing.
    rows, real_columns, count_columns, code_columns : arrays
        Numbers of the rows and columns in the table.
    state_start : array of shape (n_code_columns + 1,)
    repetitive : array of shape (n_real,)
        Whether a value occurs repeatedly in a real column of the table.
    """

    real: FloatArray
    counts: FloatArray
    codes: FloatArray
    real_observed: FloatArray | None
    counts_observed: FloatArray | None
    weights: FloatArray
    rows: IntArray
    real_columns: IntArray
    count_columns: IntArray
    code_columns: IntArray
    state_start: IntArray
    repetitive: BoolArray

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.real_columns) + len(self.count_columns) + len(self.code_columns)

    @property
    def columns(self) -> IntArray:
        """Numbers of the columns in the table: real ones, counts, codes."""
        return np.concatenate([self.real_columns, self.count_columns, self.code_columns])

    @cached_property
    def moments(self) -> FloatArray:
        """Real columns, then their squares, shape (n_rows, 2 * n_real)."""
        return np.concatenate([self.real, self.real * self.real], axis=1)

    @property
    def n_leaf_parameters(self) -> int:
        """Number of free parameters of one product of leaves."""
        n_states = self.state_start[-1] - len(self.code_columns)
        return int(2 * len(self.real_columns) + len(self.count_columns) + n_states)

    def take(self, rows: IntArray) -> Slice:
        """Keep the given rows, numbered within the slice."""
        return replace(
            self,
            real=self.real[rows],
            counts=self.counts[rows],
            codes=self.codes[rows],
            real_observed=None if self.real_observed is None else self.real_observed[rows],
            counts_observed=None if self.counts_observed is None else self.counts_observed[rows],
            weights=self.weights[rows],
            rows=self.rows[rows],
        )

    def part(self, columns: IntArray) -> Slice:
        """Keep the given columns, numbered as in the table."""
        real, counts = among(self.real_columns, columns), among(self.count_columns, columns)
        codes = among(self.code_columns, columns)
        states = np.repeat(codes, np.diff(self.state_start))
        return replace(
            self,
            real=self.real[:, real],
            counts=self.counts[:, counts],
            codes=self.codes[:, states],
            real_observed=None if self.real_observed is None else self.real_observed[:, real],
            counts_observed=None if self.counts_observed is None else self.counts_observed[:, counts],
            real_columns=self.real_columns[real],
            repetitive=self.repetitive[real],
            count_columns=self.count_columns[counts],
            code_columns=self.code_columns[codes],
            state_start=np.concatenate([[0], np.cumsum(np.diff(self.state_start)[codes])]),
        )

    def part_of(self, leaves: UnivariateLeaves, columns: IntArray) -> UnivariateLeaves:
        """Keep the leaves of the given columns, numbered as in the table."""
        real, counts = among(self.real_columns, columns), among(self.count_columns, columns)
        states = np.repeat(among(self.code_columns, columns), np.diff(self.state_start))
        return UnivariateLeaves(
            leaves.mean[:, real], leaves.variance[:, real], leaves.rate[:, counts], leaves.log_probability[:, states]
        )

    def fit(
        self, shares: FloatArray, regularisation: Regularisation, towards: UnivariateLeaves | None = None
    ) -> UnivariateLeaves:
        """Fit K products to the rows.

        Parameters
        ----------
        shares : array of shape (n_rows, K)
            Weight of each row in each product, row weights included.
        towards : UnivariateLeaves of one product, optional
            What ``regularisation.pseudo_rows`` rows are added of; also what a column without any observed cell gets.
        """
        mean, variance = self._fit_real(shares, regularisation, towards)
        rate = self._fit_counts(shares, regularisation, towards)
        frequency = np.empty((shares.shape[1], 0))
        if len(self.code_columns):
            frequency = shares.T @ self.codes + regularisation.category_prior
            if towards is not None:
                frequency += regularisation.pseudo_rows * np.exp(towards.log_probability)
        return UnivariateLeaves(mean, variance, rate, self._log_normalised(frequency))

    def _fit_real(
        self, shares: FloatArray, regularisation: Regularisation, towards: UnivariateLeaves | None
    ) -> tuple[FloatArray, FloatArray]:
        sums = shares.T @ self.moments
        first, second = sums[:, : len(self.real_columns)], sums[:, len(self.real_columns) :]
        seen = shares.sum(axis=0)[:, None] if self.real_observed is None else shares.T @ self.real_observed
        divisor = np.maximum(seen, SMALLEST_WEIGHT)
        mean = first / divisor
        variance = np.maximum(second / divisor - mean**2, 0.0)
        prior_mean: FloatArray | float = 0.0
        prior_variance: FloatArray | float = 1.0
        if towards is not None:
            prior_mean, prior_variance, pseudo = towards.mean, towards.variance, regularisation.pseudo_rows
            variance = (seen * variance + pseudo * prior_variance) / np.maximum(seen + pseudo, SMALLEST_WEIGHT)
        if not seen.all():
            mean, variance = np.where(seen > 0, mean, prior_mean), np.where(seen > 0, variance, prior_variance)
        return mean, np.maximum(variance, regularisation.variance_floor[self.real_columns])

    def _fit_counts(
        self, shares: FloatArray, regularisation: Regularisation, towards: UnivariateLeaves | None
    ) -> FloatArray:
        if not len(self.count_columns):
            return np.empty((shares.shape[1], 0))
        observed = self.counts_observed
        seen = shares.sum(axis=0)[:, None] if observed is None else shares.T @ observed
        total = shares.T @ self.counts
        if towards is not None:
            seen, total = seen + regularisation.pseudo_rows, total + regularisation.pseudo_rows * towards.rate
        unseen = 1.0 if towards is None else towards.rate
        rate = np.where(seen > 0, total / np.maximum(seen, SMALLEST_WEIGHT), unseen)
        return np.maximum(rate, SMALLEST_RATE)

    def _log_normalised(self, frequency: FloatArray) -> FloatArray:
        if not len(self.code_columns):
            return frequency
        totals = np.repeat(np.add.reduceat(frequency, self.state_start[:-1], axis=1), np.diff(self.state_start), axis=1)
        n_states = np.repeat(np.diff(self.state_start), np.diff(self.state_start))
        probability = np.where(totals > 0, frequency / np.where(totals > 0, totals, 1.0), 1.0 / n_states)
        with np.errstate(divide="ignore"):
            return np.log(probability)

    def log_density(self, leaves: UnivariateLeaves) -> FloatArray:
        """Log density of every row under each product, shape (n_rows, K), less the Poisson leaves' log factorials."""
        precision = 1 / leaves.variance
        constant = -0.5 * (LOG_TWO_PI + np.log(leaves.variance) + leaves.mean**2 * precision)
        value: FloatArray = self.moments @ np.concatenate([leaves.mean * precision, -0.5 * precision], axis=1).T
        value += constant.sum(axis=1) if self.real_observed is None else self.real_observed @ constant.T
        if len(self.count_columns):
            value += self.counts @ np.log(leaves.rate).T
            observed = self.counts_observed
            value -= leaves.rate.sum(axis=1) if observed is None else observed @ leaves.rate.T
        if len(self.code_columns):
            value += self.codes @ np.maximum(leaves.log_probability, -1e3).T
        return value

    def residuals(self, leaves: UnivariateLeaves) -> FloatArray:
        """Standardised deviations of all cells from one product of leaves, shape (n_rows, n_terms); missing: zero."""
        real = (self.real - leaves.mean) / np.sqrt(leaves.variance)
        if self.real_observed is not None:
            real *= self.real_observed
        counts = (self.counts - leaves.rate) / np.sqrt(leaves.rate)
        if self.counts_observed is not None:
            counts *= self.counts_observed
        probability = np.exp(leaves.log_probability)
        codes = (self.codes - probability) / np.sqrt(np.maximum(probability, 1e-12))
        for start, stop in zip(self.state_start[:-1], self.state_start[1:], strict=True):
            codes[self.codes[:, start:stop].sum(axis=1) == 0, start:stop] = 0.0
        return np.concatenate([real, counts, codes], axis=1)


def among(columns: IntArray, chosen: IntArray) -> BoolArray:
    """Say which columns are among the chosen ones: ``np.isin`` without its preparations, for short arrays."""
    return np.asarray((columns[:, None] == chosen).any(axis=1))


def whole_table(table: LearningTable) -> Slice:
    """Return the slice of all rows and columns."""
    real_columns, count_columns = table.columns_of(LeafChoice.GAUSSIAN), table.columns_of(LeafChoice.POISSON)
    code_columns = table.columns_of(LeafChoice.CATEGORICAL)
    real, real_observed = _without_missing(table.values[:, real_columns])
    counts, counts_observed = _without_missing(table.values[:, count_columns])
    mass = np.broadcast_to(table.weights[:, None], real.shape)
    if real_observed is not None:
        mass = mass * real_observed
    one_hot = [table.values[:, column, None] == np.arange(table.n_states[column]) for column in code_columns]
    return Slice(
        real=real,
        counts=counts,
        codes=np.concatenate([np.empty((len(real), 0)), *one_hot], axis=1),
        real_observed=real_observed,
        counts_observed=counts_observed,
        weights=table.weights,
        rows=np.arange(len(real)),
        real_columns=real_columns,
        count_columns=count_columns,
        code_columns=code_columns,
        state_start=np.concatenate([[0], np.cumsum(table.n_states[code_columns])]).astype(np.intp),
        repetitive=np.array([repeats(*column) for column in zip(real.T, mass.T, strict=True)], dtype=bool),
    )


def repeats(values: FloatArray, weights: FloatArray) -> bool:
    """Say whether some value has the weight of an atom."""
    _, inverse = np.unique(values, return_inverse=True)
    return bool(np.bincount(inverse, weights).max() >= ROWS_OF_AN_ATOM)


def _without_missing(values: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    missing = np.isnan(values)
    if not missing.any():
        return values, None
    return np.where(missing, 0.0, values), np.asarray(~missing, dtype=np.float64)

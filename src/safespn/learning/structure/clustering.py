"""Two clusters of rows: the best two-component mixture of products, from starts that the data alone determine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from safespn.learning.structure.univariate import ROWS_OF_AN_ATOM, SMALLEST_WEIGHT, Leaves, Regularisation, Slice
from safespn.typing import BoolArray, FloatArray, IntArray

FIRST_ITERATIONS = 6
MORE_ITERATIONS = 20
TOLERANCE = 1e-4
PLAIN_SHAPE = 6.0
SMALLEST_VARIANCE = 1e-24
LARGEST_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of two products fitted to a slice.

    Parameters
    ----------
    leaves : Leaves
    log_weights : array of shape (2,)
    log_likelihood : float
        Of all rows, weighted.
    """

    leaves: Leaves
    log_weights: FloatArray
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Clusters:
    """Two clusters of the rows of a slice.

    Parameters
    ----------
    second : array of shape (n_rows,)
        Whether a row belongs to the second cluster.
    gain : float
        By how much the log-likelihood of all rows is higher with the mixture than with one product.
    """

    second: BoolArray
    gain: float

    @property
    def members(self) -> tuple[IntArray, IntArray]:
        """Row numbers of both clusters, within the slice."""
        return np.nonzero(~self.second)[0], np.nonzero(self.second)[0]


def find_two_clusters(part: Slice, single: Leaves, regularisation: Regularisation) -> Clusters | None:
    """Fit a mixture of two products to the rows by EM, from the most promising of a few starts.

    The starts are: the two sides of the first principal component, the inner and the outer half, and for real columns
    with a frequent value the rows with and without it. Long tables are thinned evenly for the fit.

    Returns
    -------
    Clusters or None
        None if no start separates the rows.
    """
    sample = part
    if len(part.weights) > LARGEST_SAMPLE:
        sample = part.take(np.linspace(0, len(part.weights) - 1, LARGEST_SAMPLE).astype(np.intp))
    best: tuple[Mixture, BoolArray] | None = None
    for side in _starts(sample, single, regularisation):
        if not side.any() or side.all():
            continue
        shares = np.column_stack([~side, side]).astype(np.float64)
        mixture = _em(sample, shares, single, regularisation, FIRST_ITERATIONS)
        if best is None or mixture.log_likelihood > best[0].log_likelihood:
            best = mixture, side
    if best is None:
        return None
    mixture = _em(sample, _shares(sample, best[0])[0], single, regularisation, MORE_ITERATIONS)
    gain = mixture.log_likelihood - float(sample.weights @ sample.log_density(single)[:, 0])
    second = _shares(part, mixture)[0][:, 1] > 0.5
    if sample is part and (second.all() or not second.any()):
        # A narrow cluster inside a broad one can claim every row; the start kept them apart.
        second = best[1]
    return Clusters(second, gain * part.total / sample.total)


def looks_gaussian(part: Slice) -> bool:
    """Say whether a single real column without frequent values has the skewness and kurtosis of a normal one.

    A cheap test (Jarque and Bera) that spares most fits of two clusters to columns that one leaf describes.
    """
    if len(part.real_columns) != 1 or part.repetitive[0]:
        return False
    weights = part.weights if part.real_observed is None else part.weights * part.real_observed[:, 0]
    total = max(float(weights.sum()), SMALLEST_WEIGHT)
    centred = part.real[:, 0] - weights @ part.real[:, 0] / total
    squared = centred * centred
    variance = float(weights @ squared) / total
    if variance < SMALLEST_VARIANCE:
        return True
    skewness = float(weights @ (squared * centred)) / total / variance**1.5
    excess = float(weights @ (squared * squared)) / total / variance**2 - 3.0
    return bool(total * (skewness**2 / 6 + excess**2 / 24) < PLAIN_SHAPE)


def _em(part: Slice, shares: FloatArray, single: Leaves, regularisation: Regularisation, n_iterations: int) -> Mixture:
    weights = part.weights[:, None]
    total = part.total
    previous = -np.inf
    for _ in range(n_iterations):
        weighted = shares * weights
        leaves = part.fit(weighted, regularisation, single)
        log_weights = np.log((weighted.sum(axis=0) + 0.5) / (total + 1.0))
        mixture = Mixture(leaves, log_weights, previous)
        shares, log_likelihood = _shares(part, mixture)
        if log_likelihood - previous < TOLERANCE * total:
            return Mixture(leaves, log_weights, max(previous, log_likelihood))
        previous = log_likelihood
    return Mixture(leaves, log_weights, previous)


def _shares(part: Slice, mixture: Mixture) -> tuple[FloatArray, float]:
    joint = part.log_density(mixture.leaves) + mixture.log_weights
    second = expit(joint[:, 1] - joint[:, 0])
    value = part.weights @ np.logaddexp(joint[:, 0], joint[:, 1])
    return np.column_stack([1.0 - second, second]), float(value)


def _starts(part: Slice, single: Leaves, regularisation: Regularisation) -> list[BoolArray]:
    residuals = part.residuals(single)
    if residuals.shape[1] > 1:
        covariance = residuals.T @ (residuals * part.weights[:, None])
        projection = residuals @ np.linalg.eigh(covariance)[1][:, -1]
    else:
        projection = residuals[:, 0]
    radius = np.einsum("nt,nt->n", residuals, residuals)
    starts = [projection > 0, radius > np.average(radius, weights=part.weights)]
    atom = _atom(part, single, regularisation)
    return starts if atom is None else [*starts, atom]


def _atom(part: Slice, single: Leaves, regularisation: Regularisation) -> BoolArray | None:
    """Rows that hold the value, among the most frequent ones of real columns, whose own leaf would gain most."""
    best, chosen = 0.0, None
    for position in np.nonzero(part.repetitive)[0]:
        values = part.real[:, position]
        observed = np.ones(len(values)) if part.real_observed is None else part.real_observed[:, position]
        _, inverse = np.unique(values, return_inverse=True)
        mass = np.bincount(inverse, part.weights * observed)
        value = int(np.argmax(mass))
        if mass[value] < ROWS_OF_AN_ATOM:
            continue
        spread = single.variance[0, position] / regularisation.variance_floor[part.real_columns[position]]
        gain = mass[value] * np.log(max(spread, 1.0)) if mass[value] < part.total else 0.0
        if gain > best:
            best, chosen = gain, (inverse == value) & (observed > 0)
    return chosen

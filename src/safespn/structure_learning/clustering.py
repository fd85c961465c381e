"""Two clusters of rows: the best two-component mixture of products, from starts that the data alone determine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from safespn.structure_learning.univariate import (
    ROWS_OF_AN_ATOM,
    SMALLEST_WEIGHT,
    Regularisation,
    Slice,
    UnivariateLeaves,
    repeats,
)
from safespn.typing import BoolArray, FloatArray, IntArray

FIRST_ITERATIONS = 6
MORE_ITERATIONS = 20
TOLERANCE = 1e-4
PLAIN_SHAPE = 6.0
SMALLEST_VARIANCE = 1e-24
LARGEST_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Mixtures of two products each, fitted to the rows of one slice side by side.

    Parameters
    ----------
    leaves : UnivariateLeaves
        The first product of every mixture, then the second of every mixture.
    log_weights : array of shape (2 * n_mixtures,)
    second : array of shape (n_rows, n_mixtures)
        Posterior probability of the second product.
    log_likelihood : array of shape (n_mixtures,)
        Of all rows, weighted.
    """

    leaves: UnivariateLeaves
    log_weights: FloatArray
    second: FloatArray
    log_likelihood: FloatArray


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


def find_two_clusters(part: Slice, single: UnivariateLeaves, regularisation: Regularisation) -> Clusters | None:
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
    starts = _starts(sample, single, regularisation)
    starts = starts[:, starts.any(axis=0) & ~starts.all(axis=0)]
    if not starts.shape[1]:
        return None
    candidates = _em(sample, starts.astype(np.float64), single, regularisation, FIRST_ITERATIONS)
    best = int(np.argmax(candidates.log_likelihood))
    mixture = _em(sample, candidates.second[:, best : best + 1], single, regularisation, MORE_ITERATIONS)
    gain = float(mixture.log_likelihood[0] - sample.weights @ sample.log_density(single)[:, 0])
    if sample is not part:
        return Clusters(
            _posterior(part, mixture.leaves, mixture.log_weights)[0][:, 0] > 0.5, gain * part.total / sample.total
        )
    second = mixture.second[:, 0] > 0.5
    if second.all() or not second.any():
        # A narrow cluster inside a broad one can claim every row; the start kept them apart.
        second = starts[:, best]
    return Clusters(second, gain)


def looks_gaussian(part: Slice) -> bool:
    """Say whether a single real column without frequent values has the skewness and kurtosis of a normal one.

    A cheap test (Jarque and Bera) that spares most fits of two clusters to columns that one leaf describes.
    """
    if len(part.real_columns) != 1:
        return False
    weights = part.weights if part.real_observed is None else part.weights * part.real_observed[:, 0]
    if part.repetitive[0] and repeats(part.real[:, 0], weights):
        return False
    total = max(float(weights.sum()), SMALLEST_WEIGHT)
    centred = part.real[:, 0] - weights @ part.real[:, 0] / total
    squared = centred * centred
    variance = float(weights @ squared) / total
    if variance < SMALLEST_VARIANCE:
        return True
    skewness = float(weights @ (squared * centred)) / total / variance**1.5
    excess = float(weights @ (squared * squared)) / total / variance**2 - 3.0
    return bool(total * (skewness**2 / 6 + excess**2 / 24) < PLAIN_SHAPE)


def _em(
    part: Slice, second: FloatArray, single: UnivariateLeaves, regularisation: Regularisation, n_iterations: int
) -> Mixtures:
    """Fit one mixture per column of ``second``, its start; all stop when none gains any more."""
    weights, total = part.weights[:, None], part.total
    previous = np.full(second.shape[1], -np.inf)
    for _ in range(n_iterations):
        shares = np.concatenate([1.0 - second, second], axis=1) * weights
        leaves = part.fit(shares, regularisation, single)
        log_weights = np.log((shares.sum(axis=0) + 0.5) / (total + 1.0))
        second, log_likelihood = _posterior(part, leaves, log_weights)
        gained = log_likelihood - previous
        previous = np.maximum(log_likelihood, previous)
        if (gained < TOLERANCE * total).all():
            break
    return Mixtures(leaves, log_weights, second, previous)


def _posterior(part: Slice, leaves: UnivariateLeaves, log_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior of the second product of each mixture, shape (n_rows, n_mixtures), and their log-likelihoods."""
    joint = part.log_density(leaves) + log_weights
    n_mixtures = joint.shape[1] // 2
    first, second = joint[:, :n_mixtures], joint[:, n_mixtures:]
    return expit(second - first), part.weights @ np.logaddexp(first, second)


def _starts(part: Slice, single: UnivariateLeaves, regularisation: Regularisation) -> BoolArray:
    """Two sides of the rows, one pair per column of the result."""
    residuals = part.residuals(single)
    if residuals.shape[1] > 1:
        covariance = residuals.T @ (residuals * part.weights[:, None])
        projection = residuals @ np.linalg.eigh(covariance)[1][:, -1]
    else:
        projection = residuals[:, 0]
    radius = np.einsum("nt,nt->n", residuals, residuals)
    starts = [projection > 0, radius > part.weights @ radius / part.total]
    atom = _atom(part, single, regularisation)
    return np.array(starts if atom is None else [*starts, atom]).T


def _atom(part: Slice, single: UnivariateLeaves, regularisation: Regularisation) -> BoolArray | None:
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

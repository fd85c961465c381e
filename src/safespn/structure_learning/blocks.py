"""Multivariate Gaussian blocks: a product of leaves whose real columns stay together, with a shrunk covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.network.leaves import MultivariateGaussian
from safespn.network.leaves import family as leaf_family
from safespn.structure_learning.univariate import SMALLEST_WEIGHT, Slice, UnivariateLeaves
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GaussianBlock:
    """A multivariate Gaussian over the real columns of a slice, in units of z-scores.

    Parameters
    ----------
    mean : array of shape (n_real,)
    covariance : array of shape (n_real, n_real)
    broader : array of shape (n_real, n_real)
        Covariance that it was drawn towards.
    pseudo_rows : float
        How strongly.
    """

    mean: FloatArray
    covariance: FloatArray
    broader: FloatArray
    pseudo_rows: float

    @property
    def n_extra_parameters(self) -> int:
        """Number of parameters beyond those of univariate leaves."""
        return len(self.mean) * (len(self.mean) - 1) // 2


def fit_block(part: Slice, broader: FloatArray | None, variance_floor: FloatArray, strength: float) -> GaussianBlock:
    """Fit one Gaussian to the rows of a slice.

    Parameters
    ----------
    broader : array of shape (n_real, n_real), optional
        Covariance of the rows that these were chosen from: what the covariance is drawn towards. None for the rows' own
        variances without any correlation.
    strength : float
        The pull is as strong as so many rows per column.
    """
    weights, observed = part.weights, part.real_observed
    seen_once = part.total if observed is None else np.maximum(weights @ observed, SMALLEST_WEIGHT)
    mean = weights @ part.real / seen_once
    centred = part.real - mean if observed is None else (part.real - mean) * observed
    seen = part.total if observed is None else np.maximum((observed * weights[:, None]).T @ observed, SMALLEST_WEIGHT)
    covariance = (centred * weights[:, None]).T @ centred / seen
    if broader is None:
        broader = np.diag(np.diag(covariance))
    pseudo_rows = strength * len(mean)
    drawn = (part.total * covariance + pseudo_rows * broader) / (part.total + pseudo_rows)
    return GaussianBlock(mean, floored_covariance(drawn, part.real_columns, variance_floor), broader, pseudo_rows)


def floored_covariance(covariance: FloatArray, columns: IntArray, variance_floor: FloatArray) -> FloatArray:
    """Raise eigenvalues that are below the variance floor."""
    d = len(covariance)
    if d == 0:
        return covariance
    parameters = np.concatenate([np.zeros(d), covariance.ravel()])[None]
    leaves = leaf_family.Leaves(columns[None], np.zeros(1, dtype=np.intp))
    prior = leaf_family.LeafPrior(variance_floor)
    constrained = MultivariateGaussian.family.constrain(parameters, leaves, prior)
    return np.asarray(constrained[0, d:].reshape(d, d))


def block_log_likelihood(part: Slice, leaves: UnivariateLeaves, block: GaussianBlock) -> float:
    """Log-likelihood of a slice if its real columns are modelled by the block and the others by univariate leaves."""
    parameters = np.concatenate([block.mean, block.covariance.ravel()])[None]
    cells = part.real if part.real_observed is None else np.where(part.real_observed > 0, part.real, np.nan)
    (term,) = MultivariateGaussian.family.terms(parameters)
    assert isinstance(term, leaf_family.Block)
    others = part.part(np.concatenate([part.count_columns, part.code_columns]))
    of_others = part.part_of(leaves, others.columns)
    value = term.log_density(cells[None], False)[0]
    if others.n_columns:
        value = value + others.log_density(of_others)[:, 0]
    return float(part.weights @ value)

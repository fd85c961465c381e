"""Log densities of multivariate Gaussian leaves given many subsets of the cells of each row.

In a chain of subsets, each within the next, columns become known one after the other. With the Cholesky factor of the
covariance in that order, the first z of ``z = inverse(factor) (x - mean)`` belong to the first columns: one factor and
one product give the densities of all subsets of the chain.
"""

from __future__ import annotations

import math

import numpy as np

from safespn.foundation.distinct import distinct_rows
from safespn.network.leaves.multivariate_gaussian import MultivariateGaussianFamily
from safespn.network.structure import Parameters, Structure
from safespn.typing import BoolArray, FloatArray, IntArray

LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
MOST_PATTERNS = 8
"""Patterns of missing cells among the rows; more of them are left to a pass."""


def has_gaussians_alone(structure: Structure) -> bool:
    """Whether all leaves of several columns are Gaussian, each group of them over the same columns."""
    groups = [group for group in structure.groups if group.leaves.columns.shape[1] > 1]
    return bool(groups) and all(
        isinstance(group.family, MultivariateGaussianFamily) and (group.leaves.columns == group.leaves.columns[0]).all()
        for group in groups
    )


def gaussian_densities(
    structure: Structure, parameters: Parameters, cells: FloatArray, subsets: BoolArray
) -> list[FloatArray] | None:
    """Log densities of the leaves of each group of Gaussians, shapes (n_subsets * n_rows, n_leaves).

    None where rows miss cells in too many different ways.
    """
    result = []
    for group, values in zip(structure.groups, parameters.leaves, strict=True):
        columns = group.leaves.columns[0]
        d = len(columns)
        if d == 1:
            continue
        patterns, number = distinct_rows(np.isnan(cells[:, columns]))
        if len(patterns) > MOST_PATTERNS:
            return None
        mean, covariance = values[:, :d], values[:, d:].reshape(-1, d, d)
        of_group = np.empty((len(subsets), len(cells), len(values)))
        for at, missing in enumerate(patterns):
            rows = np.flatnonzero(number == at)
            deviation = np.nan_to_num(cells[np.ix_(rows, columns)])[None] - mean[:, None]
            of_group[:, rows] = _of_rows(deviation, covariance, subsets[:, columns] & ~missing)
        result.append(of_group.reshape(-1, len(values)))
    return result


def _of_rows(deviation: FloatArray, covariance: FloatArray, subsets: BoolArray) -> FloatArray:
    """Log densities, shape (n_subsets, n_rows, n_leaves); ``deviation`` has shape (n_leaves, n_rows, n_columns)."""
    size = subsets.sum(axis=1)
    result = np.empty((len(subsets), deviation.shape[1], len(deviation)))
    for chain in chains(subsets):
        # Columns in the order in which they become known; those that never do come last and are left out.
        order = np.argsort((~subsets[chain]).sum(axis=0), kind="stable")[: size[chain[-1]]]
        if not len(order):
            result[chain] = 0.0
            continue
        factor = np.linalg.cholesky(covariance[:, order[:, None], order])
        # Rounding above the diagonal would let a huge cell reach into the columns before it.
        z = deviation[:, :, order] @ np.tril(np.linalg.inv(factor)).mT
        with np.errstate(over="ignore"):
            terms = -0.5 * z * z
        terms -= np.log(np.diagonal(factor, axis1=1, axis2=2))[:, None] + LOG_ROOT_TWO_PI
        sums = np.concatenate([np.zeros((*terms.shape[:2], 1)), terms.cumsum(axis=2)], axis=2)
        result[chain] = sums[:, :, size[chain]].transpose(2, 1, 0)
    return result


def chains(subsets: BoolArray) -> list[IntArray]:
    """Cut a list of subsets where one is not within the next."""
    is_cut = (subsets[:-1] & ~subsets[1:]).any(axis=1)
    return np.split(np.arange(len(subsets)), np.flatnonzero(is_cut) + 1)

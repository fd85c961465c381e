"""Log densities of multivariate Gaussian leaves while their columns become known one after the other.

With the Cholesky factor of the covariance in that order, the first z of ``z = inverse(factor) (x - mean)`` belong to
the first columns: one factor and one product give the densities of all subsets of a chain, each within the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safespn.network.leaves.gaussian import LOG_ROOT_TWO_PI
from safespn.network.leaves.multivariate_gaussian import MultivariateGaussianFamily
from safespn.network.structure import Parameters, Structure
from safespn.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Leaves over the same columns.

    Parameters
    ----------
    columns : array of shape (n_columns,)
    mean : array of shape (n_leaves, n_columns)
    covariance : array of shape (n_leaves, n_columns, n_columns)
    """

    columns: IntArray
    mean: FloatArray
    covariance: FloatArray

    @cached_property
    def is_tied(self) -> bool:
        """Whether all leaves have the same covariance."""
        return bool((self.covariance == self.covariance[0]).all())

    def whitened(self, cells: FloatArray, orders: IntArray) -> tuple[FloatArray, FloatArray]:
        """Rows and means of tied leaves in coordinates of which the first belong to the first columns of an order.

        Shapes (n_orders, n_rows, n_known) and (n_orders, n_known, n_leaves): half the squared distances, added up from
        the first coordinate on, are log densities but for what all leaves have in common.

        Parameters
        ----------
        cells : array of shape (n_rows, n_columns)
        orders : array of shape (n_orders, n_known)
            Places in ``columns``.
        """
        whitening = _whitening(self._factor(orders)).mT
        middle = self.mean.mean(axis=0)
        z, centres = ((values - middle)[:, orders].swapaxes(0, 1) @ whitening for values in (cells, self.mean))
        return z, np.ascontiguousarray(centres.mT)

    def conditional_densities(self, cells: FloatArray, orders: IntArray) -> FloatArray:
        """Log density of each column given those before it in each order, (n_orders, n_rows, n_known, n_leaves)."""
        factor = self._factor(orders)
        scale = np.log(np.diagonal(factor, axis1=-2, axis2=-1)) + LOG_ROOT_TWO_PI
        if self.is_tied:
            z, centres = self.whitened(cells, orders)
            z, scale = z[..., None] - centres[:, None], scale[:, None, :, None]
        else:
            deviation = (cells - self.mean[:, None])[:, :, orders].transpose(2, 0, 1, 3)
            z, scale = (deviation @ _whitening(factor).mT).transpose(0, 2, 3, 1), scale.swapaxes(1, 2)[:, None]
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * z * z - scale)

    def _factor(self, orders: IntArray) -> FloatArray:
        """Cholesky factors, shape (n_orders, n_known, n_known); (n_orders, n_leaves, ...) if leaves are not tied."""
        covariance = self.covariance[0] if self.is_tied else self.covariance
        ordered = covariance[..., orders[:, :, None], orders[:, None, :]]
        return np.linalg.cholesky(ordered if self.is_tied else ordered.swapaxes(0, 1))


def _whitening(factor: FloatArray) -> FloatArray:
    # Rounding above the diagonal would let a huge cell reach into the columns before it.
    return np.asarray(np.tril(np.linalg.inv(factor)))


def gaussians_of(structure: Structure, parameters: Parameters) -> dict[int, Gaussians] | None:
    """Find the Gaussian leaves of several columns by the number of their group; None if there are other such leaves."""
    found = {}
    for number, (group, values) in enumerate(zip(structure.groups, parameters.leaves, strict=True)):
        columns = group.leaves.columns
        d = columns.shape[1]
        if d == 1:
            continue
        if not isinstance(group.family, MultivariateGaussianFamily) or (columns != columns[0]).any():
            return None
        found[number] = Gaussians(columns[0], values[:, :d], values[:, d:].reshape(-1, d, d))
    return found


def chains(subsets: BoolArray) -> list[IntArray]:
    """Cut a list of subsets where one is not within the next."""
    if not len(subsets):
        return []
    is_cut = (subsets[:-1] & ~subsets[1:]).any(axis=1)
    return np.split(np.arange(len(subsets)), np.flatnonzero(is_cut) + 1)

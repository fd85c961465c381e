"""Gaussian blocks of complete rows, compiled: log densities and statistics of leaves of several columns.

In numpy a block takes a handful of calls for every two thousand rows, and threads would wait for each other between
them. As in :mod:`safespn.engine.kernels`, rows are in the inner loops, by vectors of ``LENGTH``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from safespn.engine.backends import KERNEL_BLOCK
from safespn.engine.compilation import compiled
from safespn.engine.kernel_upward import load_block
from safespn.engine.kernel_vectors import LANES, LENGTH, Vector, add_up, empty_aligned, fill, item, load, store
from safespn.engine.kernels import SOURCES, writeable
from safespn.network.leaves.family import Gaussians
from safespn.typing import FloatArray, IntArray


def log_density(gaussians: Gaussians, columns: IntArray, features: FloatArray) -> FloatArray | None:
    """Log density of each row under each leaf, shape (n_leaves, n_rows); None if a cell is missing.

    Parameters
    ----------
    columns : array of shape (n_leaves, n_columns)
        Columns of each leaf.
    features : array of shape (n_rows, n_features)
        The rows' cells, perhaps among others.
    """
    result = np.empty((len(columns), len(features)))
    is_complete = _log_density(writeable(features), columns, *gaussians, result)
    return result if is_complete else None


def statistics(gaussians: Gaussians, columns: IntArray, features: FloatArray, flow: FloatArray) -> FloatArray | None:
    """Flow, flow times z and flow times z z' of each leaf, for the whitened cells z; None if a cell is missing.

    Parameters
    ----------
    flow : array of shape (n_leaves, n_rows)
    """
    n_leaves, d = columns.shape
    result = np.empty((n_leaves, 1 + d + d * d))
    is_complete = _statistics(writeable(features), columns, *gaussians, flow, result)
    return result if is_complete else None


@compiled
def _log_density(
    features: FloatArray,
    columns: IntArray,
    mean: FloatArray,
    whitening: FloatArray,
    constant: FloatArray,
    result: FloatArray,
    sources: int = SOURCES,
) -> bool:
    cells = empty_aligned(features.shape[1], KERNEL_BLOCK)
    deviation, squares = empty_aligned(columns.shape[1], KERNEL_BLOCK), empty_aligned(1, KERNEL_BLOCK)
    for begin in range(0, len(features), KERNEL_BLOCK):
        n = min(KERNEL_BLOCK, len(features) - begin)
        padded = -(-n // LENGTH) * LENGTH
        if load_block(cells, features, begin, n, padded):
            return False
        for leaf in range(len(columns)):
            _deviate(deviation, cells, columns[leaf], mean[leaf], padded)
            for r in range(0, padded, LENGTH):
                total = fill(0.0)
                for i in range(columns.shape[1]):
                    z = _whitened(deviation, whitening[leaf, i], i, r)
                    total = total + z * z
                store(squares, 0, r, total)
            for r in range(n):
                result[leaf, begin + r] = constant[leaf] - 0.5 * squares[0, r]
    return True


@compiled
def _statistics(
    features: FloatArray,
    columns: IntArray,
    mean: FloatArray,
    whitening: FloatArray,
    constant: FloatArray,
    flow: FloatArray,
    result: FloatArray,
    sources: int = SOURCES,
) -> bool:
    n_leaves, d = columns.shape
    # Of each leaf: flow, flow times z, and the lower triangle of flow times z z'.
    sums = np.zeros((n_leaves * (1 + d) * (2 + d) // 2, LANES))
    cells, deviation = empty_aligned(features.shape[1], KERNEL_BLOCK), empty_aligned(d, KERNEL_BLOCK)
    # Whitened cells, after a first row of ones, and all of them times the flow.
    z, weighted = empty_aligned(1 + d, KERNEL_BLOCK), empty_aligned(1 + d, KERNEL_BLOCK)
    z[0] = 1.0
    for begin in range(0, len(features), KERNEL_BLOCK):
        n = min(KERNEL_BLOCK, len(features) - begin)
        padded = -(-n // LENGTH) * LENGTH
        if load_block(cells, features, begin, n, padded):
            return False
        place = 0
        for leaf in range(n_leaves):
            _deviate(deviation, cells, columns[leaf], mean[leaf], padded)
            for r in range(padded):
                weighted[0, r] = flow[leaf, begin + r] if r < n else 0.0
            for i in range(d):
                for r in range(0, padded, LENGTH):
                    of_rows = _whitened(deviation, whitening[leaf, i], i, r)
                    store(z, 1 + i, r, of_rows)
                    store(weighted, 1 + i, r, of_rows * load(weighted, 0, r))
            # Products with the ones come first: they are the sums of flow and of flow times z.
            for i in range(1 + d):
                _add_products(sums, place, weighted, i, z, 0, padded)
                place += 1
            for i in range(1, 1 + d):
                for j in range(1, i + 1):
                    _add_products(sums, place, weighted, i, z, j, padded)
                    place += 1
    place = 0
    for leaf in range(n_leaves):
        for i in range(1 + d):
            result[leaf, i] = sums[place].sum()
            place += 1
        for i in range(d):
            for j in range(i + 1):
                result[leaf, 1 + d + i * d + j] = result[leaf, 1 + d + j * d + i] = sums[place].sum()
                place += 1
    return True


@njit(nogil=True, error_model="numpy", forceinline=True)
def _deviate(deviation: FloatArray, cells: FloatArray, columns: IntArray, mean: FloatArray, padded: int) -> None:
    for i in range(len(columns)):
        for r in range(0, padded, LENGTH):
            store(deviation, i, r, load(cells, item(columns, i), r) - item(mean, i))


@njit(nogil=True, error_model="numpy", forceinline=True)
def _whitened(deviation: FloatArray, whitening: FloatArray, i: int, r: int) -> Vector:
    """Column ``i`` of the whitened cells: the whitening matrix, of which this is one row, is a lower triangle."""
    total = fill(0.0)
    for j in range(i + 1):
        total = total + item(whitening, j) * load(deviation, j, r)
    return total


@njit(nogil=True, error_model="numpy", forceinline=True)
def _add_products(
    sums: FloatArray, place: int, first: FloatArray, i: int, second: FloatArray, j: int, padded: int
) -> None:
    total = fill(0.0)
    for r in range(0, padded, LENGTH):
        total = total + load(first, i, r) * load(second, j, r)
    add_up(sums, place, 0, total)

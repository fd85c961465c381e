"""The sums over components of :mod:`safespn.answers.mixtures`, compiled: ``LENGTH`` components at a time."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.engine.compilation import compiled
from safespn.engine.kernel_arithmetic import CONSTANTS, SMALLEST_PART, exp_of_negative
from safespn.engine.kernel_vectors import LENGTH, fill, larger, load, store, total, where_at_least
from safespn.engine.kernels import SOURCES
from safespn.typing import FloatArray, IntArray

__all__ = ["CONSTANTS", "LENGTH", "add_chains"]

SMALLEST_TOTAL = 1e-200
"""Sums below this have lost digits to the smallest numbers; they become NaN."""


@compiled
def add_chains(
    densities: FloatArray,
    sources: IntArray,
    z: FloatArray,
    centres: FloatArray,
    sizes: IntArray,
    log_share: FloatArray,
    tables: FloatArray,
    constants: FloatArray,
    log_joint: FloatArray,
    kernel_sources: int = SOURCES,
) -> None:
    """Write the log probability of each class with the cells of each subset of some chains.

    Parameters
    ----------
    densities : array of shape (n_rows * n_columns, n_components)
        Log density of each cell in each component; their number is a multiple of ``LENGTH``.
    sources : array of shape (n_chains, n_known)
        Columns in the order in which they become known; -1 - i for the i-th coordinate of the Gaussians.
    z : array of shape (n_chains, n_rows, n_coordinates)
        Rows in coordinates of the Gaussians.
    centres : array of shape (n_chains * n_coordinates, n_components)
        Their means.
    sizes : array of shape (n_subsets,)
        How many columns each subset of a chain knows; they do not fall.
    log_share : array of shape (1, n_components)
    tables : array of shape (n_classes, n_components)
        Class probabilities of each component.
    log_joint : array of shape (n_chains, n_subsets, n_rows, n_classes)
        The result; NaN where sums are too small.
    kernel_sources : int
        ``sources`` of :func:`safespn.engine.kernels.run`: leave it at its default.
    """
    n_rows, n_components, n_coordinates = log_joint.shape[2], log_share.shape[1], z.shape[2]
    n_columns = len(densities) // n_rows
    value, part, lanes = np.empty((1, n_components)), np.empty((1, n_components)), np.empty((1, LENGTH))
    for chain in range(len(sources)):
        for row in range(n_rows):
            value[:] = log_share
            n_known = 0
            for subset in range(len(sizes)):
                while n_known < sizes[subset]:
                    column = sources[chain, n_known]
                    if column >= 0:
                        for c in range(0, n_components, LENGTH):
                            store(value, 0, c, load(value, 0, c) + load(densities, row * n_columns + column, c))
                    else:
                        coordinate = fill(z[chain, row, -1 - column])
                        for c in range(0, n_components, LENGTH):
                            distance = coordinate - load(centres, chain * n_coordinates - 1 - column, c)
                            store(value, 0, c, load(value, 0, c) - 0.5 * distance * distance)
                    n_known += 1
                _sum_over_components(value, part, lanes, tables, constants, log_joint[chain, subset, row])


@njit(nogil=True, error_model="numpy")
def _sum_over_components(
    value: FloatArray,
    part: FloatArray,
    lanes: FloatArray,
    tables: FloatArray,
    constants: FloatArray,
    log_joint: FloatArray,
) -> None:
    """Average the class tables with weights ``exp(value)``; logs, but for what all classes have in common."""
    n_components = value.shape[1]
    largest = fill(-np.inf)
    for c in range(0, n_components, LENGTH):
        largest = larger(load(value, 0, c), largest)
    store(lanes, 0, 0, largest)
    top = fill(lanes.max())
    for c in range(0, n_components, LENGTH):
        share = exp_of_negative(load(value, 0, c) - top, constants)
        store(part, 0, c, where_at_least(share, fill(SMALLEST_PART), share, fill(0.0)))
    for k in range(len(tables)):
        mass = fill(0.0)
        for c in range(0, n_components, LENGTH):
            mass = mass + load(part, 0, c) * load(tables, k, c)
        of_class = total(mass)
        log_joint[k] = math.log(of_class) if of_class >= SMALLEST_TOTAL else np.nan

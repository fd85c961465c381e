"""Which columns depend on each other: one test for all pairs at once, for real values, counts and codes together.

Every column gets a small basis of functions: of its ranks for numbers (so that the shape of a column's own distribution
does not matter), the indicators of its states for codes. Two columns depend on each other if the canonical correlations
between their bases are larger than chance (Bartlett's chi-square test). With random sine functions as the basis this is
the randomised dependence coefficient (Lopez-Paz et al. 2013), with the ranks themselves it is Spearman's test, and
between two columns of codes it is, to first order, the chi-square test of their contingency table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.special import chdtrc

from safespn.structure_learning.univariate import Slice
from safespn.typing import BoolArray, FloatArray, IntArray

N_SINES = 6
N_COSINES = 2
SINE_SCALE = 6.0
SMALLEST_EIGENVALUE = 1e-3
LARGEST_SAMPLE = 2000


def independent_groups(part: Slice, alpha: float, method: str, generator_seed: int) -> list[IntArray]:
    """Split the columns of a slice into groups that do not depend on each other.

    Parameters
    ----------
    alpha : float
        Probability of linking any two columns of a slice whose columns are all independent (Bonferroni's bound).
    method : {"rdc", "cosine", "rank"}
    generator_seed : int
        Seeds the random functions of "rdc".

    Returns
    -------
    list of arrays
        Column numbers as in the table, each group in ascending order.
    """
    columns = part.columns
    p_values = pairwise_p_values(part, method, generator_seed)
    n_pairs = len(columns) * (len(columns) - 1) / 2
    first_linked = _first_linked(p_values < alpha / max(n_pairs, 1))
    return [np.sort(columns[first_linked == first]) for first in np.unique(first_linked)]


def _first_linked(linked: BoolArray) -> IntArray:
    """Smallest number of a column that each column is linked to, itself included, directly or through others.

    Squaring the links doubles the length of paths. For a few dozen columns scipy's ``connected_components`` takes
    longer over its checks than the whole test of dependence does.
    """
    reach = (linked | np.eye(len(linked), dtype=bool)).astype(np.float32)
    n_links = -1.0
    while n_links < reach.sum():
        n_links = float(reach.sum())
        reach = (reach @ reach > 0).astype(np.float32)
    return np.asarray(reach.argmax(axis=1))


def pairwise_p_values(part: Slice, method: str, generator_seed: int) -> FloatArray:
    """P-value of the independence of every pair of columns, in the order of ``part.columns``."""
    if len(part.weights) > LARGEST_SAMPLE:
        part = part.take(np.linspace(0, len(part.weights) - 1, LARGEST_SAMPLE).astype(np.intp))
    blocks, observed = _bases(part, BASES[method], generator_seed)
    n_columns, width = blocks.shape[1], blocks.shape[2]
    weights = part.weights
    seen = observed.T @ (observed * weights[:, None])
    white, rank = _whiten(blocks, observed, weights)
    flat = white.reshape(len(white), n_columns * width)
    cross = (flat.T @ (flat * weights[:, None])).reshape(n_columns, width, n_columns, width)
    first, second = np.triu_indices(n_columns, k=1)
    seen = seen[first, second]
    cross = cross[first, :, second, :] / np.maximum(seen, 1e-300)[:, None, None]
    freedom = rank[first] * rank[second]
    # Bartlett's approximation, with the number of rows that observe both columns; the sum of log(1 - correlation ** 2)
    # is a log determinant.
    effective = np.maximum(seen - 1 - (rank[first] + rank[second] + 1) / 2, 0.0)
    remaining = np.eye(width) - (1 - 1e-9) * cross @ cross.transpose(0, 2, 1)
    statistic = -effective * np.log(np.clip(np.linalg.det(remaining), 1e-100, 1.0))
    p_values = np.ones((n_columns, n_columns))
    p_values[first, second] = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)
    return np.minimum(p_values, p_values.T)


def _bases(part: Slice, functions: Basis, seed: int) -> tuple[FloatArray, FloatArray]:
    """Functions of every column, shape (n_rows, n_columns, width), zero-padded; and the mask of observed cells."""
    n_rows = len(part.weights)
    numbers = np.concatenate([part.real, part.counts], axis=1)
    observed = np.ones((n_rows, part.n_columns))
    n_real, n_numbers = part.real.shape[1], numbers.shape[1]
    if part.real_observed is not None:
        observed[:, :n_real] = part.real_observed
    if part.counts_observed is not None:
        observed[:, n_real:n_numbers] = part.counts_observed
    of_numbers = functions(_ranks(numbers, part.weights[:, None] * observed[:, :n_numbers]), seed)
    width = max(of_numbers.shape[2] if n_numbers else 0, np.diff(part.state_start).max(initial=0))
    blocks = np.zeros((n_rows, part.n_columns, width))
    if n_numbers:
        blocks[:, :n_numbers, : of_numbers.shape[2]] = of_numbers
    for position, (start, stop) in enumerate(zip(part.state_start[:-1], part.state_start[1:], strict=True)):
        blocks[:, n_numbers + position, : stop - start] = part.codes[:, start:stop]
        observed[:, n_numbers + position] = part.codes[:, start:stop].sum(axis=1)
    return blocks, observed


def _ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mid-ranks of each column scaled to (0, 1): the share of weight below a value plus half that at it."""
    order = np.argsort(values, axis=0)
    ordered, mass = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    upto = np.cumsum(mass, axis=0)
    share = (upto - mass / 2) / np.maximum(upto[-1:], 1e-300)
    tied = np.zeros(ordered.shape, dtype=bool)
    tied[1:] = ordered[1:] == ordered[:-1]
    for column in np.nonzero(tied.any(axis=0))[0]:
        starts = np.nonzero(~tied[:, column])[0]
        before = np.concatenate([[0.0], upto[starts[1:] - 1, column]])
        middle = (before + np.append(before[1:], upto[-1, column])) / 2 / max(upto[-1, column], 1e-300)
        share[:, column] = np.repeat(middle, np.diff(np.append(starts, len(values))))
    ranks = np.empty_like(share)
    np.put_along_axis(ranks, order, share, axis=0)
    return ranks


def _sines(ranks: FloatArray, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    slope, phase = generator.normal(0.0, SINE_SCALE, N_SINES), generator.uniform(0.0, 2 * np.pi, N_SINES)
    return np.asarray(np.sin(ranks[:, :, None] * slope + phase))


def _cosines(ranks: FloatArray, seed: int) -> FloatArray:
    cosine = np.empty((*ranks.shape, N_COSINES))
    cosine[:, :, 0] = np.cos(np.pi * ranks)
    previous: FloatArray | float = 1.0
    for order in range(1, N_COSINES):  # cos((k + 1) t) = 2 cos(t) cos(k t) - cos((k - 1) t)
        cosine[:, :, order] = 2 * cosine[:, :, 0] * cosine[:, :, order - 1] - previous
        previous = cosine[:, :, order - 1]
    return cosine


def _identity(ranks: FloatArray, seed: int) -> FloatArray:
    return ranks[:, :, None]


Basis: TypeAlias = Callable[[FloatArray, int], FloatArray]
BASES: dict[str, Basis] = {"rdc": _sines, "cosine": _cosines, "rank": _identity}


def _whiten(blocks: FloatArray, observed: FloatArray, weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Centre each column's functions and make them uncorrelated with variance one, over the rows that observe it."""
    mass = observed * weights[:, None]
    total = np.maximum(mass.sum(axis=0), 1e-300)
    mean = np.einsum("nc,nck->ck", mass, blocks) / total[:, None]
    centred = (blocks - mean) * observed[:, :, None]
    by_column = centred.transpose(1, 2, 0)
    covariance = by_column @ (by_column * weights).transpose(0, 2, 1) / total[:, None, None]
    eigenvalue, vector = np.linalg.eigh(covariance)
    largest = np.maximum(eigenvalue[:, -1:], 1e-12)
    kept = eigenvalue > SMALLEST_EIGENVALUE * largest
    root = np.where(kept, 1 / np.sqrt(np.where(kept, eigenvalue, 1.0)), 0.0)
    white = (by_column.transpose(0, 2, 1) @ (vector * root[:, None, :])).transpose(1, 0, 2)
    return white, kept.sum(axis=1)

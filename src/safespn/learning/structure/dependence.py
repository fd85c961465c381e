"""Which columns depend on each other: one test for all pairs at once, for real values, counts and codes together.

Every column gets a small basis of functions: of its ranks for numbers (so that the shape of a column's own distribution
does not matter), the indicators of its states for codes. Two columns depend on each other if the canonical correlations
between their bases are larger than chance (Bartlett's chi-square test). With random sine functions as the basis this is
the randomised dependence coefficient (Lopez-Paz et al. 2013), with the ranks themselves it is Spearman's test, and
between two columns of codes it is, to first order, the chi-square test of their contingency table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.sparse.csgraph import connected_components

from safespn.learning.structure.univariate import Slice
from safespn.typing import FloatArray, IntArray

N_FUNCTIONS = 6
SINE_SCALE = 6.0
SMALLEST_EIGENVALUE = 1e-3
LARGEST_SAMPLE = 5000


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
    _, label = connected_components((p_values < alpha / max(n_pairs, 1)).astype(np.int8), directed=False)
    return [np.sort(columns[label == group]) for group in range(label.max() + 1)]


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
    cross = (flat.T @ (flat * weights[:, None])).reshape(n_columns, width, n_columns, width).transpose(0, 2, 1, 3)
    cross = cross / np.maximum(seen, 1e-300)[:, :, None, None]
    singular = np.minimum(np.linalg.svd(cross, compute_uv=False), 1 - 1e-12)
    # Bartlett's approximation, with the number of rows that observe both columns.
    effective = np.maximum(seen - 1 - (rank[:, None] + rank[None, :] + 1) / 2, 0.0)
    statistic = -effective * np.log1p(-(singular**2)).sum(axis=2)
    freedom = rank[:, None] * rank[None, :]
    p_value = stats.chi2.sf(statistic, np.maximum(freedom, 1))
    return np.where(freedom > 0, p_value, 1.0)


def _bases(part: Slice, functions: Callable[[FloatArray, int], FloatArray], seed: int) -> tuple[FloatArray, FloatArray]:
    """Functions of every column, shape (n_rows, n_columns, width), zero-padded; and the mask of observed cells."""
    n_rows = len(part.weights)
    blocks: list[FloatArray] = []
    masks: list[FloatArray] = []
    for values, observed in ((part.real, part.real_observed), (part.counts, part.counts_observed)):
        for column in range(values.shape[1]):
            mask = np.ones(n_rows) if observed is None else observed[:, column]
            blocks.append(functions(_ranks(values[:, column], part.weights * mask), seed))
            masks.append(mask)
    for start, stop in zip(part.state_start[:-1], part.state_start[1:], strict=True):
        blocks.append(part.codes[:, start:stop])
        masks.append(part.codes[:, start:stop].sum(axis=1))
    width = max(block.shape[1] for block in blocks)
    padded = np.zeros((n_rows, len(blocks), width))
    for column, block in enumerate(blocks):
        padded[:, column, : block.shape[1]] = block
    return padded, np.stack(masks, axis=1)


def _ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mid-ranks scaled to (0, 1): the share of weight below a value plus half the share at it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    mass = np.add.reduceat(weights[order], np.nonzero(first)[0])
    below = np.cumsum(mass) - mass
    rank = np.empty(len(values))
    rank[order] = ((below + mass / 2) / max(mass.sum(), 1e-300))[np.cumsum(first) - 1]
    return rank


def _sines(ranks: FloatArray, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    slope, phase = generator.normal(0.0, SINE_SCALE, N_FUNCTIONS), generator.uniform(0.0, 2 * np.pi, N_FUNCTIONS)
    return np.asarray(np.sin(ranks[:, None] * slope + phase))


def _cosines(ranks: FloatArray, seed: int) -> FloatArray:
    return np.asarray(np.cos(np.pi * ranks[:, None] * np.arange(1, 5)))


def _identity(ranks: FloatArray, seed: int) -> FloatArray:
    return ranks[:, None]


BASES: dict[str, Callable[[FloatArray, int], FloatArray]] = {"rdc": _sines, "cosine": _cosines, "rank": _identity}


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

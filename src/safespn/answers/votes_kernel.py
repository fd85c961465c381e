"""The sums over boxes of :mod:`safespn.answers.votes`, compiled: bit masks instead of arrays of truth values."""

from __future__ import annotations

import numpy as np
from numba import njit

from safespn.engine.compilation import compiled
from safespn.typing import AnyArray, FloatArray, IntArray

SMALLEST_TOTAL = 1e-200
"""Sums below this have lost digits to the smallest numbers; they become NaN."""
# Multiplied by a power of two, the top six bits of this number tell which one it was.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.argsort([(0x03F79D71B4CB0A89 << place & (1 << 64) - 1) >> 58 for place in range(64)]).astype(np.intp)


@compiled
def add_votes(
    words: AnyArray,
    possible: AnyArray,
    members: AnyArray,
    weights: FloatArray,
    pattern: IntArray,
    which: IntArray,
    total: FloatArray,
) -> None:
    """Add one tree's class posteriors of rows given each of some subsets of their cells.

    Parameters
    ----------
    words : array of shape (n_rows, n_tested, n_words)
        Boxes that each cell allows, as bits.
    possible : array of shape (n_words,)
        Boxes that may have a probability.
    members : array of shape (n_distinct, n_tested)
        Which cells are known in each distinct subset.
    weights : array of shape (n_distinct, n_boxes, n_classes)
        Probability of each box, with its class, times the density of known cells in it.
    pattern : array of shape (n_rows,)
        Number of the pattern of missing cells of each row.
    which : array of shape (n_patterns, n_subsets)
        Distinct subset that each subset is for rows of a pattern.
    total : array of shape (n_rows, n_subsets, n_classes)
        What posteriors are added to.
    """
    n_distinct, n_classes = len(members), weights.shape[2]
    posterior = np.empty((n_distinct, n_classes))
    is_needed = np.zeros((len(which), n_distinct), dtype=np.bool_)
    for number in range(len(which)):
        for subset in range(which.shape[1]):
            is_needed[number, which[number, subset]] = True
    for row in range(len(words)):
        for subset in range(n_distinct):
            if is_needed[pattern[row], subset]:
                _posterior(words[row], possible, members[subset], weights[subset], posterior[subset])
        of_row = which[pattern[row]]
        for subset in range(which.shape[1]):
            for k in range(n_classes):
                total[row, subset, k] += posterior[of_row[subset], k]


@njit(nogil=True, error_model="numpy")
def _posterior(
    words: AnyArray, possible: AnyArray, known: AnyArray, weights: FloatArray, posterior: FloatArray
) -> None:
    """Class posterior from the boxes that all known cells allow; zero if there is none, NaN if it underflows."""
    posterior[:] = 0.0
    has_box = False
    for number in range(len(possible)):
        boxes = possible[number]
        for column in range(len(known)):
            if known[column]:
                boxes &= words[column, number]
        has_box |= boxes != 0
        while boxes:
            others = boxes & (boxes - np.uint64(1))
            box = 64 * number + _PLACES[((boxes ^ others) * _DE_BRUIJN) >> np.uint64(58)]
            for k in range(len(posterior)):
                posterior[k] += weights[box, k]
            boxes = others
    mass = posterior.sum()
    if mass >= SMALLEST_TOTAL:
        posterior /= mass
    elif has_box:
        posterior[:] = np.nan

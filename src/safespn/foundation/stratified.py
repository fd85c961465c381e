"""Draws that keep the proportions of the classes."""

from __future__ import annotations

import numpy as np

from safespn.typing import IntArray

TEST_SHARE = 0.2
"""Share of the labelled rows that a trial sets aside for testing."""


def draw_stratified(classes: IntArray, n: int, generator: np.random.Generator, *, least: int = 1) -> IntArray:
    """Draw ``n`` rows whose class proportions are those of all rows, rounded.

    Parameters
    ----------
    classes : array of shape (n_rows,)
        Codes from 0.
    least : int
        Rows of each class at least, as far as it has so many and ``n`` allows.

    Returns
    -------
    array of shape (n,)
        Row numbers in ascending order.
    """
    available = np.bincount(classes)
    if not 0 < n <= len(classes):
        raise ValueError(f"cannot draw {n} of {len(classes)} rows")
    wanted = n * available / len(classes)
    lowest = np.minimum(least, available) if n >= least * len(available) else np.zeros_like(available)
    counts = np.maximum(np.floor(wanted).astype(int), lowest)
    while counts.sum() != n:
        step = 1 if counts.sum() < n else -1
        open_to_it = counts < available if step > 0 else counts > lowest
        counts[np.where(open_to_it, step * (wanted - counts), -np.inf).argmax()] += step
    rows = [generator.permutation(np.nonzero(classes == code)[0])[:count] for code, count in enumerate(counts)]
    return np.sort(np.concatenate(rows))


def share_places(counts: IntArray, size: int) -> IntArray:
    """Share the places of a sample among the classes and the unlabelled rows (last); all rows if they are no more."""
    if counts.sum() <= size:
        return counts
    n_labelled, n_unlabelled = int(counts[:-1].sum()), int(counts[-1])
    of_labelled = min(n_labelled, max(size // 2, size - n_unlabelled))
    shares = np.maximum(np.floor(counts[:-1] * (of_labelled / n_labelled)), np.minimum(counts[:-1], 1))
    return np.append(shares, min(n_unlabelled, size - of_labelled)).astype(np.intp)

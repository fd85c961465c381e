"""Some of the rows: those that count, those to check with, and a sample that fits in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safespn.foundation.stratified import share_places
from safespn.rows.blocks import PartitionedRows, RowBlock
from safespn.typing import FloatArray, IntArray


def draw_sample(rows: PartitionedRows, size: int, generator: np.random.Generator) -> RowBlock:
    """Draw ``size`` rows, stratified by class, with weights that give the strata their shares of all rows.

    Weights are one on average: structure learning takes them as numbers of rows, and no more were seen. Labelled rows
    get at most half of the places, unless there are too few others. What is drawn depends on the order of the rows, not
    on how they are divided into blocks. Where there are no more rows than ``size``, all are returned.
    """
    counts = rows.counts
    n_drawn = share_places(counts, size)
    drawn = [
        np.arange(count) if count == places else np.sort(generator.choice(count, places, replace=False))
        for count, places in zip(counts.tolist(), n_drawn.tolist(), strict=True)
    ]
    sample = rows.fetch(drawn)
    if (n_drawn == counts).all():
        return sample
    each = np.ones(len(sample.codes)) if sample.weights is None else sample.weights
    share = counts / counts.sum() / np.maximum(n_drawn / n_drawn.sum(), 1e-300)
    # The code -1 of unlabelled rows picks the last entry, which is theirs.
    return replace(sample, weights=each * share[sample.codes])


def drop_weightless(block: RowBlock) -> RowBlock:
    """Drop rows of weight zero, so that they act as if they were not there."""
    if block.weights is None:
        return block
    kept = block.take(block.weights > 0)
    gone = sorted(set(block.codes[block.codes >= 0].tolist()) - set(kept.codes[kept.codes >= 0].tolist()))
    if gone:
        raise ValueError(f"all labelled rows of class number {gone[0]} have weight zero")
    return kept


def split_validation(
    block: RowBlock, share: float, generator: np.random.Generator
) -> tuple[RowBlock, tuple[FloatArray, IntArray]]:
    """Set a share of the labelled rows of each class aside, but leave at least one row of each class.

    Returns
    -------
    block : RowBlock
        The other rows.
    table, codes : arrays
        Those set aside, and their classes.
    """
    counts = np.bincount(block.codes[block.codes >= 0])
    chosen = block.rows_at([*draw_validation(counts, share, generator), np.arange(0)])
    kept = np.setdiff1d(np.arange(len(block.codes)), chosen)
    return block.take(kept), (block.table[chosen], block.codes[chosen])


def draw_validation(counts: IntArray, share: float, generator: np.random.Generator) -> list[IntArray]:
    """Draw a share of the rows of each class, but not all: for each class, sorted numbers among the rows of it."""
    return [np.sort(generator.permutation(count)[: min(round(share * count), count - 1)]) for count in counts.tolist()]

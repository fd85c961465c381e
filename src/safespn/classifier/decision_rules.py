"""Which gains a classifier decides by: those of its rule on rows that it has seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.class_networks.committee import Committee
from safespn.decisions import gains_of
from safespn.rows.blocks import PartitionedRows
from safespn.typing import FloatArray

FEWEST_ROWS = 50
"""With fewer unlabelled rows than this, labelled ones say too which classes are to be expected."""
MOST_ROWS = 5_000


def learn_gains(decision: Any, committee: Committee, rows: PartitionedRows, n_jobs: int | None) -> FloatArray:
    """Gains of a decision rule, shape (n_classes, n_classes), by the posteriors of the rows of a fit.

    Unlabelled rows are what is to be decided on, and posteriors of labelled ones are too sure.
    """
    n_classes = len(rows.counts) - 1
    if not isinstance(decision, str) or decision == "probable":
        return gains_of(decision, np.full((1, n_classes), 1 / n_classes))
    counts = rows.counts.copy()
    if counts[-1] >= FEWEST_ROWS:
        counts[:-1] = 0
    every = max(1, int(np.ceil(counts.sum() / MOST_ROWS)))
    table = rows.fetch([np.arange(0, count, every) for count in counts.tolist()]).table
    return gains_of(decision, np.exp(committee.evaluate(table, n_jobs)[1]))


def checked_gains(gains: Any, n_classes: int) -> FloatArray:
    """Gains as a file has them; without any, the most probable class is predicted."""
    if gains is None:
        return np.eye(n_classes)
    matrix = np.array(gains, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(f"its decision rule has gains of shape {matrix.shape} for {n_classes} classes")
    return matrix

"""Tables for tests of rows in parts."""

from __future__ import annotations

import numpy as np


def blobs(n_rows, seed=0, share=0.05, n_columns=3):
    """Two overlapping blobs, their classes, and those of a share of the rows with -1 elsewhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    X = rng.normal(size=(n_rows, n_columns)) + 1.5 * y[:, None] * (np.arange(n_columns) % 2 == 0)
    labelled = rng.random(n_rows) < share
    labelled[:20] = True
    return X, y, np.where(labelled, y, -1)

"""Lazy predictions for Dask collections: one call of the classifier's own method for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from safespn.rows.dask_input import partitions_of_table

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier


def predict_lazily(classifier: SafeSPNClassifier, method: str, X: Any, n_columns: int | None, dtype: Any) -> Any:
    """Promise what a method of a fitted classifier returns for each row of a Dask collection.

    Parameters
    ----------
    n_columns : int or None
        Columns of the result; None if it has one entry per row.

    Returns
    -------
    Dask array of shape (n_rows,) or (n_rows, n_columns)
    """
    shared = delayed(classifier, traverse=False)
    blocks = partitions_of_table(X)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
    arrays = [
        da.from_delayed(
            delayed(_call)(shared, method, block),
            shape=(length,) if n_columns is None else (length, n_columns),
            dtype=dtype,
        )
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _call(classifier: SafeSPNClassifier, method: str, block: Any) -> Any:
    if len(block) == 0:
        one_row = getattr(classifier, method)(np.full((1, classifier.n_features_in_), np.nan))
        return one_row[:0]
    return getattr(classifier, method)(block)

"""Lazy predictions for Dask collections: one call of the classifier's own method for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask import compute
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


def some_rows(X: Any, most: int) -> tuple[Any, Any]:
    """Compute at most so many rows of a Dask collection, evenly spaced, and tell their numbers.

    Returns
    -------
    table : array or data frame of shape (n_chosen, n_columns)
    rows : array of shape (n_chosen,)
    """
    blocks = partitions_of_table(X)
    lengths = compute(*(delayed(len)(block) for block in blocks))
    ends = np.cumsum(lengths)
    rows = np.unique(np.linspace(0, ends[-1] - 1, min(int(ends[-1]), most)).astype(np.intp))
    places = np.split(rows, np.searchsorted(rows, ends[:-1]))
    chosen = [
        delayed(_take)(block, of_block - (end - length))
        for block, of_block, end, length in zip(blocks, places, ends, lengths, strict=True)
        if len(of_block)
    ]
    return delayed(_stack)(chosen).compute(), rows


def _take(block: Any, places: Any) -> Any:
    return block.iloc[places] if hasattr(block, "iloc") else np.asarray(block)[places]


def _stack(blocks: list[Any]) -> Any:
    if not hasattr(blocks[0], "iloc"):
        return np.concatenate(blocks)
    import pandas as pd

    return pd.concat(blocks)

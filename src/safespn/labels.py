"""Labels with gaps: which rows have one, and which classes there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from safespn.typing import AnyArray, BoolArray, IntArray


def is_unlabelled(y: AnyArray, unlabeled: Any) -> BoolArray:
    """Say for each entry of ``y`` whether it is the marker of an unlabelled row; None means that all are labelled."""
    if unlabeled is None:
        return np.zeros(len(y), dtype=np.bool_)
    if isinstance(unlabeled, float) and np.isnan(unlabeled):
        return np.array(
            [isinstance(entry, (float, np.floating)) and bool(np.isnan(entry)) for entry in y], dtype=np.bool_
        )
    if y.dtype.kind in "US" and not isinstance(unlabeled, str):
        # In an array of strings, numpy has turned the marker into a string as well.
        unlabeled = str(unlabeled)
    return np.array([_equal(entry, unlabeled) for entry in y.tolist()], dtype=np.bool_)


def _equal(entry: Any, unlabeled: Any) -> bool:
    return type(entry) is not bool and isinstance(entry, str) == isinstance(unlabeled, str) and bool(entry == unlabeled)


def encode_labels(y: AnyArray, unlabeled: Any) -> tuple[AnyArray, IntArray]:
    """Number the classes.

    Returns
    -------
    classes : array of shape (n_classes,)
        Sorted, without the marker.
    codes : array of shape (n_rows,)
        Number of each row's class, -1 for an unlabelled row.
    """
    unlabelled = is_unlabelled(y, unlabeled)
    if unlabelled.all():
        raise ValueError(
            f"y has no labelled row: all {len(y)} entries are the marker {unlabeled!r}; "
            "at least one row of each of two classes is needed"
        )
    known = y[~unlabelled]
    if known.dtype.kind == "f" and np.isnan(known).any():
        row = int(np.nonzero(~unlabelled)[0][np.argmax(np.isnan(known))])
        raise ValueError(
            f"Input y contains NaN, first in row {row}; mark unlabelled rows with {unlabeled!r}, or set "
            "unlabeled=float('nan')"
        )
    check_classification_targets(known)
    if known.dtype.kind == "O" and len({isinstance(entry, str) for entry in known.tolist()}) > 1:
        raise ValueError(
            f"y mixes strings and numbers as labels; only the marker {unlabeled!r} may differ from the others"
        )
    if known.dtype.kind == "O":
        known = np.array(known.tolist())
    classes, of_known = np.unique(known, return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[~unlabelled] = of_known
    return classes, codes

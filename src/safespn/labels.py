"""Labels with gaps: which rows have one, and which classes there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from safespn.typing import AnyArray, ArrayLike, BoolArray, IntArray


class SemiSupervisedMixin(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose labels may have gaps, marked by its parameter ``unlabeled``."""

    unlabeled: Any

    def _check_labels(self, y: ArrayLike | None, n_rows: int) -> AnyArray:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None: "
                f"give one label per row, {self.unlabeled!r} for unlabelled rows"
            )
        labels = column_or_1d(y, warn=True)
        check_consistent_length(np.empty(n_rows), labels)
        return np.asarray(labels)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the labelled rows; unlabelled rows are ignored."""
        labels = np.asarray(y)
        known = ~is_unlabelled(labels, self.unlabeled)
        if not known.any():
            raise ValueError(f"every entry of y is the marker {self.unlabeled!r}: there is no labelled row to score")
        right = self.predict(X)[known].astype(object) == labels[known].astype(object)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[known]
        return float(np.average(right, weights=weights))


def is_unlabelled(y: AnyArray, unlabeled: Any) -> BoolArray:
    """Say for each entry of ``y`` whether it is the marker of an unlabelled row; None means that all are labelled."""
    if unlabeled is None:
        return np.zeros(len(y), dtype=np.bool_)
    if y.dtype.kind in "iuf" and isinstance(unlabeled, (int, float)) and not _is_gap(unlabeled):
        return np.asarray(y == unlabeled)
    if _is_gap(unlabeled):
        return np.array([_is_gap(entry) for entry in y.tolist()], dtype=np.bool_)
    if y.dtype.kind == "U":
        # In an array of strings, numpy has turned the marker into a string as well.
        return np.asarray(y == str(unlabeled))
    return np.array([_equal(entry, unlabeled) for entry in y.tolist()], dtype=np.bool_)


def _is_gap(entry: Any) -> bool:
    """Whether an entry is None, NaN, or pandas' NA, which is neither equal nor unequal to itself."""
    return (
        entry is None or type(entry).__name__ in ("NAType", "NaTType") or (isinstance(entry, float) and entry != entry)
    )


def _equal(entry: Any, unlabeled: Any) -> bool:
    if _is_gap(entry) or isinstance(entry, bool) or isinstance(entry, str) != isinstance(unlabeled, str):
        return False
    return bool(entry == unlabeled)


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
    gaps = [_is_gap(entry) for entry in known.tolist()]
    if any(gaps):
        row = int(np.nonzero(~unlabelled)[0][int(np.argmax(gaps))])
        raise ValueError(
            f"Input y contains NaN or None, first in row {row}; mark unlabelled rows with {unlabeled!r}, or set "
            "unlabeled=float('nan')"
        )
    if known.dtype.kind == "O" and len({isinstance(entry, str) for entry in known.tolist()}) > 1:
        raise ValueError(
            f"y mixes strings and numbers as labels; only the marker {unlabeled!r} may differ from the others"
        )
    known = np.array(known.tolist()) if known.dtype.kind == "O" else known
    check_classification_targets(known)
    classes, of_known = np.unique(known, return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[~unlabelled] = of_known
    return classes, codes

"""Labels with gaps: which rows have one, and which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
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
                f"give one label per row, {_markers(self.unlabeled)} for unlabelled rows"
            )
        labels = column_or_1d(as_labels(y), warn=True)
        check_consistent_length(np.empty(n_rows), labels)
        return np.asarray(labels)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the labelled rows; unlabelled rows are ignored."""
        labels = as_labels(y)
        known = ~is_unlabelled(labels, self.unlabeled)
        if not known.any():
            raise ValueError(f"every entry of y is {_markers(self.unlabeled)}: there is no labelled row to score")
        right = self.predict(X)[known].astype(object) == labels[known].astype(object)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[known]
        return float(np.average(right, weights=weights))


def as_labels(y: Any) -> AnyArray:
    """Turn labels of any kind of column into an array; where there is none, it holds None or NaN.

    Columns of pandas, polars and pyarrow keep their gaps: their own conversions make floats of integers, and texts of
    what is missing.
    """
    if isinstance(y, np.ma.MaskedArray):
        gaps, values = np.ma.getmaskarray(y), y.data.tolist()
    elif hasattr(y, "null_count"):  # polars and pyarrow
        gaps, values = None, y.to_list() if hasattr(y, "to_list") else y.to_pylist()
    elif hasattr(y, "isna") and getattr(y, "ndim", 1) == 1 and y.dtype.kind not in "iuf":  # pandas
        gaps, values = np.asarray(y.isna()), list(y)
    elif isinstance(y, (list, tuple)) and any(isinstance(entry, str) for entry in y):
        gaps, values = None, list(y)
    else:
        return np.asarray(y)
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    if gaps is not None:
        labels[gaps] = None
    return labels


def is_unlabelled(y: AnyArray, unlabeled: Any) -> BoolArray:
    """Say for each entry of ``y`` whether its row is unlabelled: it is the marker, missing, or an empty text.

    If ``unlabeled`` is None, all rows are labelled.
    """
    if unlabeled is None:
        return np.zeros(len(y), dtype=np.bool_)
    if y.dtype.kind in "iuf":
        is_marker = np.asarray(y == unlabeled) if isinstance(unlabeled, Real) else np.zeros(len(y), np.bool_)
        return is_marker | np.isnan(y) if y.dtype.kind == "f" else is_marker
    if y.dtype.kind == "U":
        # In an array of strings, numpy has turned the marker into a string as well.
        return np.asarray((y == str(unlabeled)) | (np.char.strip(y) == ""))
    return np.array([_is_empty(entry) or _equal(entry, unlabeled) for entry in y.tolist()], dtype=np.bool_)


def _markers(unlabeled: Any) -> str:
    """Name what marks a missing label."""
    if unlabeled is None or _is_empty(unlabeled):
        return "missing"
    return f"the marker {unlabeled!r} or missing"


def _is_empty(entry: Any) -> bool:
    return _is_gap(entry) or (isinstance(entry, str) and not entry.strip())


def _is_gap(entry: Any) -> bool:
    """Whether an entry is None, NaN, or pandas' NA, which is neither equal nor unequal to itself."""
    return (
        entry is None or type(entry).__name__ in ("NAType", "NaTType") or (isinstance(entry, float) and entry != entry)
    )


def _equal(entry: Any, unlabeled: Any) -> bool:
    if isinstance(entry, bool) or isinstance(entry, str) != isinstance(unlabeled, str):
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
            f"y has no labelled row: all {len(y)} entries are {_markers(unlabeled)}; "
            "at least one row of each of two classes is needed"
        )
    known = y[~unlabelled]
    gaps = [_is_gap(entry) for entry in known.tolist()]
    if any(gaps):
        raise ValueError(
            f"Input y contains NaN or None, first in row {int(np.argmax(gaps))}, but unlabeled=None says that all rows "
            "have labels; leave unlabeled as it is by default, or remove such rows"
        )
    if known.dtype.kind == "O" and len({isinstance(entry, str) for entry in known.tolist()}) > 1:
        raise ValueError(
            f"y mixes strings and numbers as labels; only the marker {unlabeled!r} may differ from the others"
        )
    known = np.array(known.tolist()) if known.dtype.kind == "O" else known
    if known.dtype.kind == "f" and np.isinf(known).any():
        row = int(np.argmax(np.isinf(known)))
        raise ValueError(
            f"Input y contains infinity, first in labelled row {row}; expected the name or number of a class"
        )
    check_classification_targets(known)
    classes, of_known = np.unique(known, return_inverse=True)
    check_several_classes(classes.tolist(), unlabeled, int(unlabelled.sum()))
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[~unlabelled] = of_known
    return classes, codes


def codes_of(labels: AnyArray, classes: AnyArray, rows: IntArray | None = None) -> IntArray:
    """Number of each label's class, shape (n_rows,).

    Parameters
    ----------
    rows : array of shape (n_rows,), optional
        Numbers of the rows, for messages; counted from 0 if not given.

    Raises
    ------
    ValueError
        If a label is missing or none of the classes.
    """
    number = {name: code for code, name in enumerate(classes.tolist())}
    codes = np.empty(len(labels), dtype=np.intp)
    for at, label in enumerate(labels.tolist()):
        if _is_gap(label) or label not in number:
            row = at if rows is None else rows[at]
            raise ValueError(f"row {row} has the label {label!r}; expected one of {', '.join(map(repr, number))}")
        codes[at] = number[label]
    return codes


def check_several_classes(classes: Sequence[Any], unlabeled: Any, n_unlabelled: int) -> None:
    """Refuse a single class: labels -1 and 1 would otherwise make a model of one class that is never wrong."""
    if len(classes) != 1:
        return
    message = (
        f"the labelled rows of y hold only one class, {classes[0]!r}; a classifier needs at least one labelled row of "
        "each of two classes"
    )
    if n_unlabelled and not _is_empty(unlabeled):
        message += (
            f". {n_unlabelled} rows are {_markers(unlabeled)}, and taken as unlabelled; if {unlabeled!r} is a class, "
            "set unlabeled=None or give the class another name"
        )
    raise ValueError(message)

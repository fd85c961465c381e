"""What users hand over with a classifier: rows, labels with gaps, columns by number or name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safespn.typing import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier


def encoded_rows(classifier: SafeSPNClassifier, X: ArrayLike) -> FloatArray:
    """Rows as the classifier's network takes them, shape (n_rows, n_features)."""
    return classifier._check_table(X, reset=False)[0]


def class_codes(classifier: SafeSPNClassifier, y: ArrayLike | None, n_rows: int) -> IntArray:
    """Number of each row's class, -1 for an unlabelled row; all are unlabelled if ``y`` is None.

    Raises
    ------
    ValueError
        If there is not one label per row, or a label is none of the classifier's classes.
    """
    # Not at the top: scikit-learn comes with it, which pictures of networks do without.
    from safespn.foundation.labels import as_labels, codes_of, is_unlabelled

    codes = np.full(n_rows, -1, dtype=np.intp)
    if y is None:
        return codes
    labels = as_labels(y)
    if labels.shape != (n_rows,):
        raise ValueError(f"expected one label for each of {n_rows} rows, got y of shape {labels.shape}")
    known = np.flatnonzero(~is_unlabelled(labels, classifier.unlabeled))
    codes[known] = codes_of(labels[known], classifier.classes_, known)
    return codes


def class_names(classifier: SafeSPNClassifier) -> list[str]:
    """Names of the classes in the order of their numbers."""
    return [str(name) for name in classifier.classes_.tolist()]


def column_names(classifier: SafeSPNClassifier) -> list[str]:
    """Names of the columns, or "column 0", "column 1", ... if they came without."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    return [f"column {column}" for column in range(classifier.n_features_in_)]


def column_number(classifier: SafeSPNClassifier, column: int | str) -> int:
    """Number of a column given by its number or name.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    names = column_names(classifier)
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"there is no column {column!r}; there are {', '.join(map(repr, names))}")
        return names.index(column)
    if not 0 <= column < len(names):
        raise ValueError(f"there is no column {column}; there are columns 0 to {len(names) - 1}")
    return column

"""Reports on classifiers that were fitted in Python, from the features and labels that they were fitted to."""

from __future__ import annotations

from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from safespn.classifier import SafeSPNClassifier
from safespn.exceptions import TableError
from safespn.foundation.atomic_files import atomic_write
from safespn.foundation.labels import as_labels, codes_of, is_unlabelled
from safespn.foundation.lazy_frames import is_frame, is_lazy
from safespn.report.contents import collect_report
from safespn.report.render import render_report
from safespn.tables import UNLABELLED, ColumnType, TrainingTable
from safespn.typing import ArrayLike


def write_report(
    classifier: SafeSPNClassifier,
    X: ArrayLike,
    y: ArrayLike,
    path: str | PathLike[str],
    *,
    source: str = "a table",
    target: str | None = None,
    seed: int = 0,
) -> None:
    """Write the report on a fitted classifier as one HTML page that loads nothing.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted to ``X`` and ``y``; it is fitted again several times, each time without some of the labels.
    X : array-like or data frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels with gaps, as for the fit.
    path : path
        Where to write the page.
    source, target : str
        Names of the table and of what is predicted, as the page shows them.
    seed : int
        Of the folds.
    """
    named, table = as_training_table(classifier, X, y, source, target)
    atomic_write(Path(path), render_report(collect_report(named, table, seed)).encode())


def as_training_table(
    classifier: SafeSPNClassifier, X: ArrayLike, y: ArrayLike, source: str, target: str | None
) -> tuple[SafeSPNClassifier, TrainingTable]:
    """Features and labels as a table with names, and the classifier as one that knows these names."""
    if is_lazy(X):
        raise TableError("reports are made from rows in memory; pass a sample of the rows")
    labels, name = as_labels(y), target or str(getattr(y, "name", None) or "the class")
    unlabelled = is_unlabelled(labels, classifier.unlabeled)
    codes_of(labels[~unlabelled], classifier.classes_, np.nonzero(~unlabelled)[0])  # complains about other labels
    texts = np.array(
        [UNLABELLED if gap else str(each) for gap, each in zip(unlabelled, labels, strict=True)], dtype=object
    )
    frame: Any = X
    if not is_frame(X):
        frame = pd.DataFrame(np.asarray(X), columns=[f"column {at}" for at in range(np.shape(X)[1])])
    frame = frame.reset_index(drop=True)
    if len(frame) != len(texts):
        raise ValueError(f"expected one label for each of {len(frame)} rows, got {len(texts)}")
    frame.columns = [str(column) for column in frame.columns]
    types = [
        ColumnType(column, kind, str(len(categories or ())) if kind == "categorical" else "")
        for column, kind, categories in zip(
            frame.columns, classifier.column_types_, classifier._encoder.categories, strict=True
        )
    ]
    named = _with_names(classifier, frame)
    named.supervised_ = _with_names(classifier.supervised_, frame)
    return named, TrainingTable(source, name, frame, texts, types)


def _with_names(classifier: SafeSPNClassifier, frame: pd.DataFrame) -> SafeSPNClassifier:
    other = copy(classifier)
    other.feature_names_in_ = np.array(frame.columns, dtype=object)
    return other

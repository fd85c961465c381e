"""Reports on classifiers that were fitted in Python, from the features and labels that they were fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from safespn.classifier import SafeSPNClassifier
from safespn.classifier.input_validation import ColumnTypes
from safespn.exceptions import TableError
from safespn.foundation.atomic_files import atomic_write
from safespn.foundation.labels import as_labels, codes_of, is_unlabelled
from safespn.foundation.lazy_frames import is_frame, is_lazy
from safespn.foundation.other_frames import as_table
from safespn.foundation.table_encoder import TableEncoder
from safespn.report.contents import collect_report
from safespn.report.evaluation import Evaluation
from safespn.report.learning_curve import N_TRIALS, default_sizes, evaluate_table
from safespn.report.render import render_report
from safespn.tables import UNLABELLED, ColumnType, TrainingTable
from safespn.typing import AnyArray, ArrayLike


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


def evaluate_classifier(
    classifier: SafeSPNClassifier,
    X: ArrayLike,
    y: ArrayLike,
    *,
    labelled: Sequence[int] | None = None,
    trials: int = N_TRIALS,
    seed: int = 0,
    column_types: ColumnTypes = None,
    source: str = "a table",
    target: str | None = None,
) -> Evaluation:
    """Hide labels on purpose and see whether the unlabelled rows help: what the command ``evaluate`` does.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted or not; copies of it with the same settings are fitted.
    X : array-like or data frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels with gaps.
    labelled : sequence of int, optional
        Numbers of labels to keep; up to all that there are by default.
    trials : int
        How often to hide labels, for each number.
    seed : int
        Of the trials.
    column_types : mapping, optional
        As of :meth:`safespn.SafeSPNClassifier.fit`; by default those of the fit, if the classifier is fitted.
    source, target : str
        Names of the table and of what is predicted.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials!r}")
    table = as_table_to_evaluate(classifier, X, y, source, target, column_types)
    sizes = default_sizes(table) if labelled is None else sorted({int(size) for size in labelled})
    again = clone(classifier).set_params(unlabeled=UNLABELLED, checkpoint=None, validation_fraction=None)
    if isinstance(classifier.class_weight, dict):
        again.set_params(class_weight={str(name): weight for name, weight in classifier.class_weight.items()})
    return evaluate_table(again, table, sizes, trials, seed, lambda share: None)


def as_table_to_evaluate(
    classifier: SafeSPNClassifier,
    X: ArrayLike,
    y: ArrayLike,
    source: str,
    target: str | None,
    column_types: ColumnTypes = None,
) -> TrainingTable:
    """Features and labels as a table with names; the classifier need not be fitted."""
    frame, labels, texts = _named_rows(classifier, X, y)
    if not (~is_unlabelled(labels, classifier.unlabeled)).any():
        raise TableError("y has no labelled row: there are no labels to hide")
    is_fitted = column_types is None and hasattr(classifier, "classes_")
    if is_fitted and classifier.n_features_in_ == frame.shape[1]:
        encoder = classifier._encoder
    else:
        names = [str(column) for column in frame.columns]
        declared = None if column_types is None else {_name(key, names): kind for key, kind in column_types.items()}
        encoder = TableEncoder.fit(frame, declared)
    return TrainingTable(source, _target(target, y), frame, texts, _types(frame, encoder), ids=_ids(X))


def as_training_table(
    classifier: SafeSPNClassifier, X: ArrayLike, y: ArrayLike, source: str, target: str | None
) -> tuple[SafeSPNClassifier, TrainingTable]:
    """Features and labels as a table with names, and the classifier as one that knows these names."""
    frame, labels, texts = _named_rows(classifier, X, y)
    known = ~is_unlabelled(labels, classifier.unlabeled)
    codes_of(labels[known], classifier.classes_, np.nonzero(known)[0])  # complains about other labels
    named = _with_names(classifier, frame)
    named.supervised_ = _with_names(classifier.supervised_, frame)
    types = _types(frame, classifier._encoder)
    return named, TrainingTable(source, _target(target, y), frame, texts, types, ids=_ids(X))


def _named_rows(classifier: SafeSPNClassifier, X: Any, y: Any) -> tuple[pd.DataFrame, AnyArray, AnyArray]:
    """Features with names, labels as they are, and labels as texts, ``UNLABELLED`` where there is none."""
    if is_lazy(X):
        raise TableError("this needs rows in memory; pass a sample of the rows")
    labels = as_labels(y)
    unlabelled = is_unlabelled(labels, classifier.unlabeled)
    texts = np.array(
        [UNLABELLED if gap else str(each) for gap, each in zip(unlabelled, labels, strict=True)], dtype=object
    )
    frame = as_table(X)
    if not is_frame(frame):
        frame = pd.DataFrame(np.asarray(frame), columns=[f"column {at}" for at in range(np.shape(frame)[1])])
    if len(frame) != len(texts):
        raise ValueError(f"expected one label for each of {len(frame)} rows, got {len(texts)}")
    frame = frame.reset_index(drop=True)
    frame.columns = [str(column) for column in frame.columns]
    return frame, labels, texts


def _target(target: str | None, y: Any) -> str:
    return target or str(getattr(y, "name", None) or "the class")


def _name(key: Any, names: list[str]) -> str:
    """Name of a column that is given by its name or number."""
    return names[key] if isinstance(key, int) and 0 <= key < len(names) and str(key) not in names else str(key)


def _types(frame: pd.DataFrame, encoder: TableEncoder) -> list[ColumnType]:
    return [
        ColumnType(column, kind, str(len(categories or ())) if kind == "categorical" else "")
        for column, kind, categories in zip(frame.columns, encoder.types, encoder.categories, strict=True)
    ]


def _ids(X: Any) -> AnyArray | None:
    """Names of rows, if a data frame has an index of its own."""
    if not is_frame(X) or isinstance(X.index, pd.RangeIndex):
        return None
    return np.array([str(name) for name in X.index], dtype=object)


def _with_names(classifier: SafeSPNClassifier, frame: pd.DataFrame) -> SafeSPNClassifier:
    other = copy(classifier)
    other.feature_names_in_ = np.array(frame.columns, dtype=object)
    return other

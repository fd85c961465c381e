"""Cross-validation that means something when most labels are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from safespn.foundation.labels import as_labels, is_unlabelled
from safespn.foundation.lazy_frames import is_frame
from safespn.typing import AnyArray, ArrayLike, FloatArray, IntArray


class SemiSupervisedSplit:
    """A splitter that keeps unlabelled rows in every training fold and out of every test fold.

    scikit-learn's own splitters put unlabelled rows into test folds and score their marker as if it were a class.

    Parameters
    ----------
    cv : int, splitter or iterable
        How to split the labelled rows, as in scikit-learn; an int gives that many stratified folds.
    unlabeled : object
        What marks an unlabelled row.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.zeros((6, 1)), np.array([0, 1, 0, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2).split(X, y):
    ...     print(train.tolist(), test.tolist())
    [2, 3, 4, 5] [0, 1]
    [0, 1, 4, 5] [2, 3]
    """

    def __init__(self, cv: Any = 5, unlabeled: Any = -1) -> None:
        self.cv = cv
        self.unlabeled = unlabeled

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the numbers of the training and test rows of each fold."""
        if y is None:
            raise ValueError("SemiSupervisedSplit needs y, to distinguish labelled from unlabelled rows")
        labels = as_labels(y)
        unlabelled = is_unlabelled(labels, self.unlabeled)
        known, unknown = np.nonzero(~unlabelled)[0], np.nonzero(unlabelled)[0]
        if len(known) == 0:
            raise ValueError("y has no labelled row, so there is nothing to test on")
        of_known = labels[known]
        of_groups = None if groups is None else np.asarray(groups)[known]
        for train, test in check_cv(self.cv, of_known, classifier=True).split(known, of_known, of_groups):
            yield np.sort(np.concatenate([known[train], unknown])), known[test]

    def get_n_splits(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds."""
        return int(check_cv(self.cv, None if y is None else np.asarray(y), classifier=True).get_n_splits(X, y, groups))


class WithUnlabeledRows(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of labelled rows that learns from the same unlabelled rows at every fit.

    scikit-learn's meta-estimators (``TunedThresholdClassifierCV``, ``CalibratedClassifierCV``, ``StackingClassifier``
    and others) take the marker of unlabelled rows as a class. They are given this instead, and the labelled rows alone.

    Parameters
    ----------
    estimator : classifier
        Such as :class:`safespn.SafeSPNClassifier`.
    unlabeled_rows : array-like or data frame of shape (n_unlabelled, n_features)
        With the columns of the labelled rows.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to labelled and unlabelled rows.
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from safespn import SafeSPNClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(3 * (np.arange(240) % 2)[:, None], size=(240, 2))
    >>> clf = WithUnlabeledRows(SafeSPNClassifier(network="blocks"), X[40:]).fit(X[:40], y)
    >>> clf.estimator_.safety_.n_unlabelled
    200
    """

    def __init__(self, estimator: Any, unlabeled_rows: ArrayLike) -> None:
        self.estimator = estimator
        self.unlabeled_rows = unlabeled_rows

    def fit(self, X: ArrayLike, y: ArrayLike, **parameters: Any) -> WithUnlabeledRows:
        """Fit the estimator to these labelled rows and the unlabelled ones; parameters are those of its fit."""
        known = as_labels(y)
        labels = np.empty(len(known) + np.shape(self.unlabeled_rows)[0], dtype=object)
        labels[: len(known)] = known.tolist()
        rows: Any
        if is_frame(X):
            import pandas as pd

            rows = pd.concat([X, self.unlabeled_rows], ignore_index=True)  # type: ignore[list-item]
        else:
            rows = np.concatenate([np.asarray(X), np.asarray(self.unlabeled_rows)])
        if parameters.get("sample_weight") is not None:
            others = np.ones(len(labels) - len(known))
            parameters["sample_weight"] = np.concatenate([parameters["sample_weight"], others])
        self.estimator_ = clone(self.estimator).fit(rows, labels, **parameters)
        self.classes_: AnyArray = self.estimator_.classes_
        return self

    def predict(self, X: ArrayLike) -> AnyArray:
        """Class of each row."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each class given each row, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

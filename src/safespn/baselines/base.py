"""What the comparators share: checks, labels with gaps, and predictions from a decision function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from safespn.foundation.labels import SemiSupervisedMixin, encode_labels
from safespn.foundation.masked_arrays import unmask
from safespn.typing import AnyArray, ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from typing_extensions import Self


class SemiSupervisedClassifier(SemiSupervisedMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that learns from labelled and unlabelled rows without missing cells.

    A subclass fits itself to the checked arrays in ``_fit`` and says in ``_decision`` how far it leans to each class.
    """

    classes_: AnyArray

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels; the marker ``unlabeled`` for unlabelled rows.

        Returns
        -------
        object
            Itself.
        """
        self._validate_params()
        table = validate_data(self, unmask(X), dtype=np.float64)
        classes, codes = encode_labels(self._check_labels(y, len(table)), self.unlabeled)
        self.classes_ = classes
        self._fit(table[codes >= 0], codes[codes >= 0], table[codes < 0])
        return self

    @abstractmethod
    def _fit(self, labelled: FloatArray, codes: IntArray, unlabelled: FloatArray) -> None:
        """Learn from checked rows; ``codes`` are the numbers of the labelled rows' classes."""

    @abstractmethod
    def _decision(self, table: FloatArray) -> FloatArray:
        """Compute the decision function of checked rows."""

    def _check_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, unmask(X), dtype=np.float64, reset=False))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """How far each row leans to each class.

        Returns
        -------
        array of shape (n_rows,) for two classes, (n_rows, n_classes) for more
            For two classes, positive for the second.
        """
        return self._decision(self._check_rows(X))

    def predict(self, X: ArrayLike) -> AnyArray:
        """Class of each row, shape (n_rows,)."""
        decision = self.decision_function(X)
        best = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[best])


def one_hot(codes: IntArray, n_classes: int) -> FloatArray:
    """Class codes as rows of zeros with a single one, shape (n_rows, n_classes)."""
    return np.eye(n_classes)[codes]


def linear_decision(table: FloatArray, coefficients: FloatArray, intercepts: FloatArray) -> FloatArray:
    """Linear scores, one column per row of ``coefficients``; a single column becomes a vector."""
    scores = np.asarray(table @ coefficients.T + intercepts)
    return scores[:, 0] if scores.shape[1] == 1 else scores

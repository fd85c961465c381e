"""Predictions and densities of a fitted classifier, for tables in memory and for Dask collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from safespn.classifier.input_validation import InputValidationMixin
from safespn.decisions import decide
from safespn.foundation.lazy_frames import is_lazy, meta_of
from safespn.foundation.randomness import as_generator
from safespn.typing import AnyArray, ArrayLike, FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from safespn.class_networks.committee import Committee
    from safespn.spn import SPN


class PredictionsMixin(InputValidationMixin):
    """What a fitted classifier says about rows."""

    classes_: AnyArray
    decision: str | ArrayLike
    random_state: RandomState
    _committee: Committee
    _gains: FloatArray

    @property
    def spn_(self) -> SPN:
        """The density as one network."""
        raise NotImplementedError

    def _with_committee(self, committee: Committee) -> PredictionsMixin:
        """Make a fitted classifier of the same kind from other networks of the same table."""
        raise NotImplementedError

    def joint_log_likelihood(self, X: ArrayLike) -> FloatArray:
        """Log density of each row together with each class, ``log p(x, y=k)``, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        if is_lazy(X):
            return self._lazily("joint_log_likelihood", X, len(self.classes_))
        table, _ = self._check_table(X, reset=False)
        return self._committee.joint(table, self.n_jobs)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log density of each row, ``log p(x)``, shape (n_rows,)."""
        if is_lazy(X):
            return self._lazily("score_samples", X)
        return self._evaluate(X)[0]

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Log probability of each class given each row, shape (n_rows, n_classes).

        A row of zero density under every class gets the class proportions.
        """
        if is_lazy(X):
            return self._lazily("predict_log_proba", X, len(self.classes_))
        return self._evaluate(X)[1]

    def _evaluate(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Log density, shape (n_rows,), and log class posteriors, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        table, _ = self._check_table(X, reset=False)
        return self._committee.evaluate(table, self.n_jobs)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each class given each row, shape (n_rows, n_classes)."""
        if is_lazy(X):
            return self._lazily("predict_proba", X, len(self.classes_))
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> AnyArray:
        """Class of each row by the rule of ``decision``; the most probable one by default."""
        check_is_fitted(self)
        if is_lazy(X):
            return self._lazily("predict", X, dtype=self.classes_.dtype)
        return np.asarray(self.classes_[self._decide(self.predict_log_proba(X))])

    def _decide(self, log_posterior: FloatArray) -> IntArray:
        """Numbers of the classes that the rule predicts."""
        if isinstance(self.decision, str) and self.decision == "probable":
            return np.asarray(log_posterior.argmax(axis=1))
        return decide(np.exp(log_posterior), self._gains)

    def _lazily(self, method: str, X: Any, n_columns: int | None = None, dtype: Any = np.float64) -> AnyArray:
        """Promise what a method returns for the rows of a Dask collection, as a Dask array."""
        check_is_fitted(self)
        from safespn.classifier.dask_predictions import predict_lazily

        validate_data(self, meta_of(X), reset=False, skip_check_array=True)
        # What goes to the workers carries no soft labels.
        promise: AnyArray = predict_lazily(self._with_committee(self._committee), method, X, n_columns, dtype)
        return promise

    def sample(self, n: int = 1, random_state: RandomState = None) -> tuple[FloatArray, AnyArray]:
        """Draw ``n`` rows with their classes.

        Categories that are numbers come as such, others as codes; ignored columns as what they always held, or NaN.
        Without a ``random_state`` of its own it takes the classifier's.
        """
        check_is_fitted(self)
        generator = as_generator(self.random_state if random_state is None else random_state)
        cells = self.spn_.sample(n, random_state=generator)
        cumulative = np.cumsum(np.exp(self._committee.evaluate(cells)[1]), axis=1)
        codes = (generator.random((n, 1)) * cumulative[:, -1:] > cumulative).sum(axis=1)
        return self._encoder.decode(cells), self.classes_[codes]

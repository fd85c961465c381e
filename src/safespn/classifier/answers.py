"""Answers of a fitted classifier: why, what to measure next, what to label next, and whether unlabelled rows helped."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from safespn.answers.audit import Audit, audit_predictions, draw_disagreeing
from safespn.answers.coalitions import CommitteePosteriors
from safespn.answers.explanation import Explanation, explain_rows
from safespn.answers.measurement import expected_entropy_drop
from safespn.answers.suggestion import N_DRAWS, as_geometry, find_outliers, suggest_rows
from safespn.classifier.predictions import PredictionsMixin
from safespn.foundation.labels import as_labels, codes_of
from safespn.foundation.randomness import as_generator
from safespn.network.columns import Domain
from safespn.typing import ArrayLike, FloatArray, IntArray, RandomState


class AnswersMixin(PredictionsMixin):
    """Questions to a fitted classifier; their mathematics is in :mod:`safespn.answers`."""

    n_features_in_: int
    supervised_: Any

    def explain(
        self,
        X: ArrayLike,
        label: Any = None,
        random_state: RandomState = 0,
        *,
        tolerance: float = 0.02,
        max_permutations: int = 10_000,
    ) -> Explanation:
        """Compute what each cell contributes to a prediction: conditional Shapley values of the log odds of a class.

        What a set of cells is worth is the log odds of the class against the rest given these cells, the others
        marginalised exactly. A missing cell contributes nothing. Rows of up to 10 known cells are computed exactly,
        longer ones from random orders of their columns.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        label : object, optional
            The class to explain; by default the predicted one of each row.
        random_state : int, RandomState instance or None
        tolerance : float
            Orders are drawn for a row until its standard errors are at most this.
        max_permutations : int
            Most orders per row.

        Returns
        -------
        Explanation
            With ``values`` (n_rows, n_features), ``base`` and ``total`` (n_rows,), ``standard_error``. See
            :func:`safespn.plotting.plot_explanation` for a picture.
        """
        cells = self._cells(X)
        if label is None:
            codes = self._log_posteriors(cells).argmax(axis=1)
        else:
            if label not in self.classes_.tolist():
                known = ", ".join(map(repr, self.classes_.tolist()))
                raise ValueError(f"there is no class {label!r} to explain; expected one of {known}")
            codes = np.repeat(self.classes_.tolist().index(label), len(cells))
        found = explain_rows(
            CommitteePosteriors(self._committee, self.n_jobs),
            cells,
            codes,
            as_generator(random_state),
            tolerance,
            max_permutations,
        )
        names = getattr(self, "feature_names_in_", [f"column {column}" for column in range(self.n_features_in_)])
        return Explanation(
            found.values,
            found.base,
            found.total,
            found.standard_error,
            self.classes_[codes],
            cells,
            [str(name) for name in names],
        )

    def next_measurement(
        self, X: ArrayLike, cost: ArrayLike | None = None, random_state: RandomState = 0
    ) -> FloatArray:
        """Compute the expected drop of the class entropy from measuring each missing cell.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            NaN marks a missing cell.
        cost : array-like of shape (n_features,), optional
            What measuring each column costs; the result is then per unit of cost.
        random_state : int, RandomState instance or None
            Seed of the draws that place the nodes of the quadrature for columns of numbers.

        Returns
        -------
        array of shape (n_rows, n_features)
            In nats; 0 where the cell is known. ``argmax(axis=1)`` is the column to measure next.
        """
        cells = self._cells(X)
        prices = np.ones(cells.shape[1]) if cost is None else np.asarray(cost, dtype=np.float64)
        if prices.shape != (cells.shape[1],):
            raise ValueError(f"expected one cost for each of {cells.shape[1]} columns, got shape {prices.shape}")
        if not (np.isfinite(prices) & (prices > 0)).all():
            column = int(np.argmin(np.isfinite(prices) & (prices > 0)))
            raise ValueError(f"the cost of column {column} is {prices[column]:g}; expected a positive number")
        generator = as_generator(random_state)
        drop = expected_entropy_drop(
            lambda filled: self._committee.evaluate(filled, self.n_jobs),
            lambda gaps: self.spn_.conditional_sample(gaps, random_state=generator),
            cells,
            self._domains,
        )
        return drop / prices

    def suggest_labels(
        self, X: ArrayLike, n: int, *, outliers: bool = False, random_state: RandomState = 0
    ) -> IntArray:
        """Suggest rows to label next: uncertain ones that represent many others and differ from each other.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows without labels.
        n : int
            Number of rows.
        outliers : bool
            Suggest rows that are too unlikely under the model too. By default they only come after all others.
        random_state : int, RandomState instance or None

        Returns
        -------
        array of shape (n,)
            Row numbers, the most useful first.
        """
        cells = self._cells(X)
        if not 1 <= n <= len(cells):
            raise ValueError(f"expected a number of rows from 1 to {len(cells)}, got n = {n}")
        generator = as_generator(random_state)
        density, posterior = self._committee.evaluate(cells, self.n_jobs)
        possible = np.isfinite(density)
        completed = np.nan_to_num(cells)
        if possible.any():
            # Rows with and without gaps are compared after a draw of what is missing.
            completed[possible] = self.spn_.conditional_sample(cells[possible], random_state=generator)
            completed = np.nan_to_num(completed)  # columns that the model ignores
        is_outlier = ~possible
        if not outliers:
            drawn = self.spn_.log_likelihood(self.spn_.sample(N_DRAWS, random_state=generator), n_jobs=self.n_jobs)
            is_outlier |= find_outliers(self.spn_.log_likelihood(completed, n_jobs=self.n_jobs), drawn)
        return suggest_rows(posterior, as_geometry(completed, self._domains), is_outlier, density, n)

    def audit_rows(self, X: ArrayLike, n: int, random_state: RandomState = 0, *, reference: Any = None) -> IntArray:
        """Draw rows whose labels show whether the unlabelled rows helped.

        The classifier and the reference can differ in accuracy only where their predictions do: the rows are drawn
        from these, without replacement.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_rows, n_features)
        n : int
            Number of rows. The same seed and a larger number add rows to those drawn before.
        random_state : int, RandomState instance or None
        reference : fitted classifier, optional
            What to compare with; by default :attr:`supervised_`. A classifier fitted to the labelled rows alone
            shows the whole effect of the unlabelled rows.

        Returns
        -------
        array of shape (n,)
            Row numbers in the order in which they were drawn; fewer, with a warning, if the models disagree on fewer.

        Warns
        -----
        AuditWarning
        """
        ours, theirs = self._predictions_of_both(X, reference)
        return draw_disagreeing(ours, theirs, n, as_generator(random_state))

    def audit(
        self,
        X: ArrayLike,
        rows: ArrayLike,
        labels: ArrayLike,
        confidence: float = 0.95,
        *,
        look: int | None = None,
        reference: Any = None,
    ) -> Audit:
        """Estimate from labels of rows drawn by :meth:`audit_rows` how much more accurate the classifier is on X.

        The interval is exact for the finite table: it covers the true difference with at least its confidence,
        whatever the rows, the number of classes and of labels; it has no width when all rows that the models
        disagree on are labelled. The number of labels must be decided beforehand, or ``look`` be used.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_rows, n_features)
            The same table as for :meth:`audit_rows`.
        rows : array-like of shape (n,)
            All rows that were drawn.
        labels : array-like of shape (n,)
            Their true classes.
        confidence : float
        look : int, optional
            If labels come in batches and an interval is computed after each: the number of this interval, 1, 2, ....
            All of them together then keep the confidence.
        reference : fitted classifier, optional
            As for :meth:`audit_rows`.

        Returns
        -------
        Audit
            With ``difference``, ``interval``, ``n_disagreeing``; printed, it is one sentence.
        """
        ours, theirs = self._predictions_of_both(X, reference)
        drawn = np.asarray(rows)
        if drawn.ndim != 1 or (len(drawn) and drawn.dtype.kind not in "iu"):
            raise ValueError(f"rows must be a list of row numbers, got {drawn.dtype} of shape {drawn.shape}")
        given = as_labels(labels)
        if given.shape != drawn.shape:
            raise ValueError(f"expected one label for each of {len(drawn)} rows, got shape {given.shape}")
        codes = codes_of(given, self.classes_, drawn)
        return audit_predictions(ours, theirs, drawn.astype(np.intp), codes, len(self.classes_), confidence, look)

    def _predictions_of_both(self, X: ArrayLike, reference: Any) -> tuple[IntArray, IntArray]:
        """Codes of the classes that this classifier and the reference predict."""
        check_is_fitted(self)
        other = self.supervised_ if reference is None else reference
        predicted = self.predict(X), other.predict(X)
        ours, theirs = (codes_of(np.asarray(each), self.classes_) for each in predicted)
        return ours, theirs

    @property
    def _domains(self) -> tuple[Domain | None, ...]:
        return self.spn_._structure.domains

    def _cells(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self._check_table(X, reset=False)[0]

    def _log_posteriors(self, cells: FloatArray) -> FloatArray:
        return self._committee.evaluate(cells, self.n_jobs)[1]

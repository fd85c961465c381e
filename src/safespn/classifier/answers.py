"""Answers of a fitted classifier: why, what to measure next, what to label next, and whether unlabelled rows helped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from safespn.answers.audit import Audit, audit_predictions, draw_disagreeing
from safespn.answers.coalitions import CommitteePosteriors
from safespn.answers.explanation import WORTH, Explanation, explain_rows
from safespn.answers.measurement import entropy, expected_cost, expected_drop
from safespn.answers.reasons import CoalitionGame, SufficientReason, find_reasons
from safespn.answers.stopping import ENOUGH, expected_gain
from safespn.answers.suggestion import MOST_ROWS, N_DRAWS, Suggestions, as_geometry, find_outliers, suggest_rows
from safespn.classifier.predictions import PredictionsMixin
from safespn.exceptions import EnoughLabelsWarning
from safespn.foundation.labels import as_labels, codes_of
from safespn.foundation.lazy_frames import is_lazy
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
        of: str = "log odds",
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
        of : {"log odds", "probability"}
            Split the log odds of the class, or its probability.

        Returns
        -------
        Explanation
            With ``values`` (n_rows, n_features), ``base`` and ``total`` (n_rows,), ``standard_error``. See
            :func:`safespn.plotting.plot_explanation` for a picture.
        """
        if of not in WORTH:
            raise ValueError(f"of: expected one of {', '.join(map(repr, WORTH))}, got {of!r}")
        cells = self._cells(X)
        codes = self._codes_to_explain(cells, label)
        found = explain_rows(
            CommitteePosteriors(self._committee, self.n_jobs),
            cells,
            codes,
            as_generator(random_state),
            tolerance,
            max_permutations,
            of,
        )
        return Explanation(
            found.values,
            found.base,
            found.total,
            found.standard_error,
            self.classes_[codes],
            cells,
            self._column_names,
            of,
        )

    def sufficient_reason(self, X: ArrayLike, probability: float = 0.9, label: Any = None) -> list[SufficientReason]:
        """Find the fewest cells of each row that alone keep a class as probable as asked for.

        All other cells are marginalised exactly, as if they had not been measured. Up to 10 known cells all sets are
        looked at; longer rows are searched greedily, and the result says so.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        probability : float
            Least probability of the class given these cells alone.
        label : object, optional
            The class; by default the most probable one of each row.

        Returns
        -------
        list of SufficientReason
            With ``columns``, ``probability``, ``is_smallest``; printed, each is one sentence.
        """
        cells = self._cells(X)
        codes = self._codes_to_explain(cells, label)
        posteriors = CommitteePosteriors(self._committee, self.n_jobs)
        return find_reasons(posteriors, cells, codes, probability, self.classes_, self._column_names)

    def game(self, x: ArrayLike, label: Any = None) -> CoalitionGame:
        """Return the game that :meth:`explain` solves for one row, for other solution concepts.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One row, or a table of one row.
        label : object, optional
            The class; by default the predicted one.

        Returns
        -------
        CoalitionGame
            A callable from truth values, shape (n_coalitions, n_players), to log odds, shape (n_coalitions,), as
            libraries such as shapiq expect it; the players are the known cells.
        """
        table: Any = x
        if np.ndim(table) == 1:
            # A row of a data frame has the names of the columns as its index.
            table = table.to_frame().T.infer_objects() if hasattr(x, "to_frame") else np.asarray(x)[None]
        cells = self._cells(table)
        if len(cells) != 1:
            raise ValueError(f"a game is that of a single row, got {len(cells)} rows")
        code = int(self._codes_to_explain(cells, label)[0])
        return CoalitionGame(CommitteePosteriors(self._committee, self.n_jobs), cells[0], code, self._column_names)

    def next_measurement(
        self,
        X: ArrayLike,
        cost: ArrayLike | None = None,
        random_state: RandomState = 0,
        *,
        drop_of: str = "entropy",
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
        drop_of : {"entropy", "cost"}
            What is to fall: the entropy of the class in nats, or the expected cost of what ``decision`` decides. With
            the default rule the latter is the probability of a wrong prediction.

        Returns
        -------
        array of shape (n_rows, n_features)
            0 where the cell is known. ``argmax(axis=1)`` is the column to measure next; rows compare too, so that the
            largest entries of the table say where a measurement tells most.
        """
        cells = self._cells(X)
        if drop_of not in ("entropy", "cost"):
            raise ValueError(f"drop_of: expected 'entropy' or 'cost', got {drop_of!r}")
        prices = np.ones(cells.shape[1]) if cost is None else np.asarray(cost, dtype=np.float64)
        if prices.shape != (cells.shape[1],):
            raise ValueError(f"expected one cost for each of {cells.shape[1]} columns, got shape {prices.shape}")
        if not (np.isfinite(prices) & (prices > 0)).all():
            column = int(np.argmin(np.isfinite(prices) & (prices > 0)))
            raise ValueError(f"the cost of column {column} is {prices[column]:g}; expected a positive number")
        generator = as_generator(random_state)
        drop = expected_drop(
            lambda filled: self._committee.evaluate(filled, self.n_jobs),
            lambda gaps: self.spn_.conditional_sample(gaps, random_state=generator),
            cells,
            self._domains,
            entropy if drop_of == "entropy" else expected_cost(self._gains),
        )
        return drop / prices

    def suggest_labels(
        self,
        X: ArrayLike,
        n: int,
        *,
        outliers: bool = False,
        curve: Mapping[int, float] | None = None,
        random_state: RandomState = 0,
    ) -> IntArray:
        """Suggest rows to label next: uncertain ones that represent many others and differ from each other.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_rows, n_features)
            Rows without labels. Of a Dask collection at most 20,000 rows, evenly spaced, are looked at: suggestions
            compare rows with each other.
        n : int
            Number of rows.
        outliers : bool
            Suggest rows that are too unlikely under the model too. By default they only come after all others.
        curve : mapping of int to float, optional
            Numbers of labels and the accuracy reached with each, as of ``safespn evaluate``. If ``n`` more labels are
            expected to bring less than a point, none are suggested, with a warning.
        random_state : int, RandomState instance or None

        Returns
        -------
        array of shape (n,)
            Row numbers, the most useful first.

        Warns
        -----
        EnoughLabelsWarning
        """
        return self.suggestions(X, n, outliers=outliers, curve=curve, random_state=random_state).rows

    def suggestions(
        self,
        X: ArrayLike,
        n: int,
        *,
        outliers: bool = False,
        curve: Mapping[int, float] | None = None,
        random_state: RandomState = 0,
    ) -> Suggestions:
        """Suggest rows to label next, as :meth:`suggest_labels` does, with a reason for each.

        Parameters as there.

        Returns
        -------
        Suggestions
            With ``rows``, ``reasons`` and what they consist of.

        Warns
        -----
        EnoughLabelsWarning
        """
        numbers = None
        if is_lazy(X):
            from safespn.classifier.dask_predictions import some_rows

            X, numbers = some_rows(X, MOST_ROWS)
        cells = self._cells(X)
        if not 1 <= n <= len(cells):
            raise ValueError(f"expected a number of rows from 1 to {len(cells)}, got n = {n}")
        if curve is not None and (gain := expected_gain(curve, n)) < ENOUGH:
            message = (
                f"{n} more labels are expected to change the accuracy by {100 * gain:+.1f} points, less than one: "
                "none are suggested"
            )
            warnings.warn(EnoughLabelsWarning(message), stacklevel=3)
            n = 0
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
        geometry = as_geometry(completed, self._domains)
        rows, stands_for = suggest_rows(posterior, geometry, is_outlier, density, n)
        best, second = np.argsort(-posterior[rows], axis=1, kind="stable")[:, :2].T
        return Suggestions(
            rows if numbers is None else numbers[rows],
            self.classes_[best],
            self.classes_[second],
            np.exp(posterior[rows, best]),
            stands_for,
            is_outlier[rows],
        )

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

    def _codes_to_explain(self, cells: FloatArray, label: Any) -> IntArray:
        """Number of the given class, or of the most probable one, for each row."""
        if label is None:
            return np.asarray(self._log_posteriors(cells).argmax(axis=1))
        if label not in self.classes_.tolist():
            known = ", ".join(map(repr, self.classes_.tolist()))
            raise ValueError(f"there is no class {label!r} to explain; expected one of {known}")
        return np.repeat(self.classes_.tolist().index(label), len(cells))

    @property
    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"column {column}" for column in range(self.n_features_in_)])
        return [str(name) for name in names]

    @property
    def _domains(self) -> tuple[Domain | None, ...]:
        return self.spn_._structure.domains

    def _cells(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self._check_table(X, reset=False)[0]

    def _log_posteriors(self, cells: FloatArray) -> FloatArray:
        return self._committee.evaluate(cells, self.n_jobs)[1]

"""From what users hand to a classifier (arrays, data frames, Dask collections) to rows to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from safespn.labels import SemiSupervisedMixin, encode_labels, is_unlabelled
from safespn.rows.memory import MemoryRows
from safespn.rows.parts import Part, Rows
from safespn.rows.sampling import drop_weightless, split_validation
from safespn.safety.learn import Validation
from safespn.table_encoder import TableEncoder, is_frame, is_lazy, meta_of
from safespn.typing import AnyArray, ArrayLike, FloatArray

Intake = tuple[Rows, TableEncoder, AnyArray, Validation | None]
"""Rows, how their columns were encoded, the classes, and rows to check with, if any."""


class IntakeMixin(SemiSupervisedMixin):
    """Checks of tables and labels, for an estimator with the parameters used here."""

    objective: str
    validation_fraction: float | None
    n_jobs: int | None
    persist: str
    _encoder: TableEncoder

    def _take_in(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: tuple[ArrayLike, ArrayLike] | None,
        generator: np.random.Generator,
    ) -> Intake:
        """Check a table, its labels and weights, in memory or in Dask."""
        if is_lazy(X):
            return self._take_in_lazily(X, y, sample_weight, validation)
        table, encoder = self._check_table(X, reset=True)
        labels = self._check_labels(y, len(table))
        classes, codes = encode_labels(labels, self.unlabeled)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        part = drop_weightless(Part(table, codes, weights))
        held_out = self._validation_rows(validation, encoder, classes)
        if held_out is None and self.validation_fraction is not None:
            part, held_out = split_validation(part, self.validation_fraction, generator)
        rows = MemoryRows(part.table, part.codes, len(classes), part.weights, self.n_jobs)
        return rows, encoder, classes, held_out

    def _take_in_lazily(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: tuple[ArrayLike, ArrayLike] | None,
    ) -> Intake:
        """Look through a Dask collection and its labels."""
        from safespn.rows.dask_intake import take_in

        if self.objective == "discriminative":
            raise ValueError(
                'objective="discriminative" needs all rows in memory, as its certificate ties them together; '
                'fit Dask collections with objective="generative", or pass a numpy array'
            )
        if self.validation_fraction is not None:
            raise ValueError("validation_fraction is not available for Dask collections; pass validation=(X, y)")
        if y is None:
            self._check_labels(y, 0)
        validate_data(self, meta_of(X), reset=True, skip_check_array=True)
        intake = take_in(X, y, sample_weight, self.unlabeled, self.persist)
        held_out = self._validation_rows(validation, intake.encoder, intake.classes)
        return intake.rows, intake.encoder, intake.classes, held_out

    def _check_table(
        self, X: Any, *, reset: bool, encoder: TableEncoder | None = None
    ) -> tuple[FloatArray, TableEncoder]:
        """Return the features as a float64 table; checks names and number of columns."""
        if not reset:
            encoder = encoder or self._encoder
        elif is_frame(X):
            encoder = TableEncoder.fit(X)
        if encoder is not None and encoder.has_categories and is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            X = encoder.encode(X)
            checked = np.asarray(X, dtype=np.float64)
            if np.isinf(checked).any():
                row, column = np.argwhere(np.isinf(checked))[0]
                raise ValueError(
                    f"row {row}, column {column} is infinite; expected finite numbers, or NaN where missing"
                )
        else:
            checked = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return checked, encoder or TableEncoder((None,) * checked.shape[1])

    def _validation_rows(
        self, validation: tuple[ArrayLike, ArrayLike] | None, encoder: TableEncoder, classes: AnyArray
    ) -> Validation | None:
        if validation is None:
            return None
        X, y = validation
        table, _ = self._check_table(X, reset=False, encoder=encoder)
        labels = np.asarray(y)
        known = ~is_unlabelled(labels, self.unlabeled)
        unseen = sorted(set(labels[known].tolist()) - set(classes.tolist()))
        if unseen:
            raise ValueError(f"validation rows hold class {unseen[0]!r}, which has no labelled row in y")
        if table.ndim != 2 or len(table) != len(labels):
            raise ValueError(f"validation must be (X, y) with one label per row, got {table.shape} and {labels.shape}")
        return table[known], np.searchsorted(classes, labels[known])

"""From what users hand to a classifier (arrays, data frames, Dask collections) to rows to learn from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from safespn.exceptions import LabelWarning, SentinelWarning
from safespn.foundation.class_weights import ClassWeight, class_factors, times_factors
from safespn.foundation.label_doubts import label_doubts
from safespn.foundation.labels import SemiSupervisedMixin, as_labels, encode_labels, is_unlabelled
from safespn.foundation.lazy_frames import is_frame, is_lazy, meta_of
from safespn.foundation.other_frames import as_table
from safespn.foundation.sentinels import find_sentinels
from safespn.foundation.table_encoder import TableEncoder
from safespn.network.columns import check_scale, column_names
from safespn.rows.blocks import PartitionedRows, RowBlock, Validation
from safespn.rows.memory import MemoryRows
from safespn.rows.sampling import draw_validation, drop_weightless, split_validation
from safespn.typing import AnyArray, ArrayLike, FloatArray

CheckedInput = tuple[PartitionedRows, TableEncoder, AnyArray, Validation | None]
"""Rows, how their columns were encoded, the classes, and rows to check with, if any."""
ColumnTypes = Mapping[Any, str] | None
"""Types that callers declare, by name or number of the column."""
OF_THE_INPUT = ("n_features_in_", "feature_names_in_")
"""Attributes that scikit-learn sets when it checks a table."""


class InputValidationMixin(SemiSupervisedMixin):
    """Checks of tables and labels, for an estimator with the parameters used here."""

    objective: str
    class_weight: ClassWeight
    validation_fraction: float | None
    n_jobs: int | None
    persist: str
    scratch: str | PathLike[str] | None
    _encoder: TableEncoder

    @contextmanager
    def _attributes_of_input_restored(self) -> Iterator[None]:
        """Leave the estimator as it was if a fit fails: what checking the table has noted belongs to no model."""
        before = {name: value for name, value in vars(self).items() if name in OF_THE_INPUT}
        try:
            yield
        except BaseException:
            for name in OF_THE_INPUT:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _validate_input(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: tuple[ArrayLike, ArrayLike] | None,
        column_types: ColumnTypes,
        generator: np.random.Generator,
    ) -> CheckedInput:
        """Check a table, its labels and weights, in memory or in Dask."""
        if is_lazy(X):
            return self._validate_lazy_input(X, y, sample_weight, validation, column_types, generator)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        table, encoder = self._check_new_table(X, column_types, weights)
        labels = self._check_labels(y, len(table))
        classes, codes = encode_labels(labels, self.unlabeled)
        for doubt in label_doubts(classes, np.bincount(codes[codes >= 0]), len(codes)):
            warnings.warn(doubt, LabelWarning, stacklevel=3)
        factors = class_factors(self.class_weight, classes, np.bincount(codes[codes >= 0]))
        block = drop_weightless(RowBlock(table, codes, times_factors(weights, codes, factors)))
        held_out = self._validation_rows(validation, encoder, classes)
        if held_out is None and self.validation_fraction is not None:
            block, held_out = split_validation(block, self.validation_fraction, generator)
        rows = MemoryRows(block.table, block.codes, len(classes), block.weights, self.n_jobs)
        return rows, encoder, classes, held_out

    def _validate_lazy_input(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: tuple[ArrayLike, ArrayLike] | None,
        column_types: ColumnTypes,
        generator: np.random.Generator,
    ) -> CheckedInput:
        """Look through a Dask collection and its labels."""
        from safespn.rows.dask_input import read_collections

        if self.objective == "discriminative":
            raise ValueError(
                'objective="discriminative" needs all rows in memory, as its certificate ties them together; '
                'fit Dask collections with objective="generative", or pass a numpy array'
            )
        if y is None:
            self._check_labels(y, 0)
        validate_data(self, meta_of(X), reset=True, skip_check_array=True)
        draw = None
        if self.validation_fraction is not None and validation is None:
            draw = partial(draw_validation, share=self.validation_fraction, generator=generator)
        read = read_collections(
            X,
            y,
            sample_weight,
            unlabeled=self.unlabeled,
            persist=self.persist,
            column_types=column_types,
            class_weight=self.class_weight,
            scratch=None if self.scratch is None else Path(self.scratch),
            draw_validation=draw,
        )
        held_out = self._validation_rows(validation, read.encoder, read.classes) or read.validation
        return read.rows, read.encoder, read.classes, held_out

    def _check_new_table(
        self, X: Any, column_types: ColumnTypes, weights: FloatArray | None
    ) -> tuple[FloatArray, TableEncoder]:
        """Check a table to learn from, and decide the types of its columns by the rows that count."""
        X = as_table(X)
        plain = X if is_frame(X) else self._as_numbers(X, reset=True)
        used = slice(None) if weights is None or not weights.any() else weights > 0
        encoder = TableEncoder.fit(plain[used], column_types)
        checked = self._encode_frame(X, encoder, reset=True) if is_frame(X) else plain
        names = column_names(X, checked.shape[1])
        check_scale(checked, names)
        for column, kind in enumerate(encoder.types):
            for code, n_cells in find_sentinels(checked[:, column]) if kind == "continuous" else ():
                warnings.warn(
                    f"{names[column]} holds {code:g} in {n_cells} rows, far outside the rest; if it marks "
                    "missing cells, put NaN there",
                    SentinelWarning,
                    stacklevel=5,
                )
        return checked if is_frame(X) else np.asarray(encoder.encode(plain)), encoder

    def _check_table(
        self, X: Any, *, reset: bool = False, encoder: TableEncoder | None = None
    ) -> tuple[FloatArray, TableEncoder]:
        """Return features as the float64 table that networks take; checks names and number of columns."""
        encoder, X = encoder or self._encoder, as_table(X)
        if is_frame(X):
            if hasattr(self, "feature_names_in_"):
                X = encoder.with_ignored(X, self.feature_names_in_)
            return self._encode_frame(X, encoder, reset=reset), encoder
        return np.asarray(encoder.encode(self._as_numbers(X, reset=reset))), encoder

    def _as_numbers(self, X: Any, *, reset: bool) -> FloatArray:
        checked: FloatArray = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return checked

    def _encode_frame(self, X: Any, encoder: TableEncoder, *, reset: bool) -> FloatArray:
        if not len(X):
            return self._as_numbers(X, reset=reset)
        if not encoder.has_codes:
            _refuse_infinite(X, X.to_numpy(dtype=np.float64, na_value=np.nan))
            return self._as_numbers(X, reset=reset)
        validate_data(self, X, reset=reset, skip_check_array=True)
        checked = np.asarray(encoder.encode(X), dtype=np.float64)
        _refuse_infinite(X, checked)
        return checked

    def _validation_rows(
        self, validation: tuple[ArrayLike, ArrayLike] | None, encoder: TableEncoder, classes: AnyArray
    ) -> Validation | None:
        if validation is None:
            return None
        X, y = validation
        table, _ = self._check_table(X, reset=False, encoder=encoder)
        labels = as_labels(y)
        known = ~is_unlabelled(labels, self.unlabeled)
        unseen = sorted(set(labels[known].tolist()) - set(classes.tolist()))
        if unseen:
            raise ValueError(f"validation rows hold class {unseen[0]!r}, which has no labelled row in y")
        if table.ndim != 2 or len(table) != len(labels):
            raise ValueError(f"validation must be (X, y) with one label per row, got {table.shape} and {labels.shape}")
        return table[known], np.searchsorted(classes, labels[known])


def _refuse_infinite(X: Any, cells: FloatArray) -> None:
    if np.isinf(cells).any():
        row, column = np.argwhere(np.isinf(cells))[0]
        raise ValueError(
            f"row {row} of column {X.columns[column]!r} is infinite; expected finite numbers, or NaN where missing"
        )

"""From what users bring (arrays, pandas frames with categories and strings) to a table of numbers, and back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from safespn.exceptions import IgnoredColumnWarning, UnseenCategoryWarning
from safespn.foundation.column_types import (
    ColumnSummary,
    complex_error,
    decide_type,
    declared_types,
    names_of,
    summarise_columns,
)
from safespn.foundation.lazy_frames import is_frame
from safespn.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Codes categorical columns as integers, and ignored ones as a single state that says nothing.

    Parameters
    ----------
    types : tuple of str
        Type of each column.
    categories : tuple
        For each column its categories in the order of their codes, or None for a column of numbers. Of an ignored
        column the number that it always holds, or nothing.
    """

    types: tuple[str, ...]
    categories: tuple[list[Any] | None, ...]

    @classmethod
    def fit(cls, X: Any, column_types: Mapping[Any, str] | None = None) -> TableEncoder:
        """Look at the columns of an array of numbers or of a data frame, and decide their types."""
        names = names_of(X)
        declared = declared_types(column_types, names)
        return cls.decide(names, summarise_columns(X, declared), declared)

    @classmethod
    def decide(
        cls, names: Sequence[Any], columns: Sequence[ColumnSummary], declared: Sequence[str | None]
    ) -> TableEncoder:
        """Decide the types of columns by what they hold; warn of those that are ignored and may matter."""
        types: list[str] = []
        categories: list[list[Any] | None] = []
        for name, column, own in zip(names, columns, declared, strict=True):
            decided = decide_type(name, column, own)
            if own is None and decided.kind == "ignored" and (decided.alternative or decided.reason == "dates"):
                warnings.warn(IgnoredColumnWarning(name, decided.reason, decided.alternative), stacklevel=2)
            types.append(decided.kind)
            if decided.kind == "ignored":
                categories.append(column.categories if column.holds == "numbers" and len(column.values) == 1 else [])
            else:
                categories.append(column.categories if decided.kind == "categorical" else None)
        return cls(tuple(types), tuple(categories))

    @property
    def n_states(self) -> list[int]:
        """Number of states of each column of codes, 0 for a column of numbers."""
        return [0 if categories is None else max(1, len(categories)) for categories in self.categories]

    @property
    def has_codes(self) -> bool:
        """Whether any column is not a column of numbers."""
        return any(categories is not None for categories in self.categories)

    def encode(self, X: Any) -> AnyArray:
        """Return the table as numbers: codes for categories, NaN for missing cells and for unseen categories.

        Arrays hold the values of categories that are numbers, and the codes of others.
        """
        if not self.has_codes:
            return np.asarray(X)
        if is_frame(X):
            return np.column_stack([self._of_frame(X, column) for column in range(X.shape[1])])
        table = np.array(X, dtype=np.float64)
        for column, (kind, categories) in enumerate(zip(self.types, self.categories, strict=True)):
            if kind == "ignored":
                table[:, column] = 0.0
            elif kind == "categorical" and _are_numbers(categories):
                table[:, column] = _codes_of_numbers(table[:, column], column, categories)
        return table

    def with_ignored(self, X: Any, names: Sequence[Any]) -> Any:
        """Add to a data frame the ignored columns that it lacks, empty; ``names`` are those of all columns."""
        ignored = [name for name, kind in zip(names, self.types, strict=True) if kind == "ignored"]
        lacking = [name for name in ignored if name not in X.columns]
        if not lacking or len(lacking) + X.shape[1] != len(names):
            return X
        return X.reindex(columns=[name for name in names if name in lacking or name in X.columns])

    def decode(self, table: FloatArray) -> FloatArray:
        """Put values in the place of codes where categories are numbers, as arrays of users have them."""
        table = table.copy()
        for column, (kind, categories) in enumerate(zip(self.types, self.categories, strict=True)):
            if kind == "ignored" and not categories:
                table[:, column] = np.nan
            elif categories is not None and _are_numbers(categories):
                table[:, column] = np.array(categories, dtype=np.float64)[table[:, column].astype(int)]
        return table

    def _of_frame(self, X: Any, column: int) -> FloatArray:
        cells, name, categories = X.iloc[:, column], X.columns[column], self.categories[column]
        if self.types[column] == "ignored":
            return np.zeros(len(cells))
        if categories is None:
            return _numbers(cells, name)
        if cells.dtype.kind in "iuf" and _are_numbers(categories):
            return _codes_of_numbers(_numbers(cells, name), name, categories)
        return _codes(cells, name, categories)


def _are_numbers(categories: list[Any] | None) -> bool:
    return bool(categories) and all(isinstance(category, (int, float)) for category in categories or ())


def _numbers(column: Any, name: Any) -> FloatArray:
    if column.dtype.kind == "c":
        raise complex_error(name)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"column {name!r} held numbers in training; now it cannot be read as numbers ({error})"
        ) from error


def _codes_of_numbers(values: FloatArray, name: Any, categories: list[Any] | None) -> FloatArray:
    """Codes of numbers; what is infinite stays so, as it is an error and no category."""
    known = np.array(categories, dtype=np.float64)
    order = np.argsort(known, kind="stable")
    place = order[np.searchsorted(known[order], values).clip(max=len(known) - 1)]
    result = np.where(known[place] == values, place, np.where(np.isinf(values), values, np.nan))
    unseen = np.isnan(result) & ~np.isnan(values)
    if unseen.any():
        warnings.warn(UnseenCategoryWarning(name, float(values[unseen][0]), int(unseen.sum())), stacklevel=5)
    return np.asarray(result, dtype=np.float64)


def _codes(column: Any, name: Any, categories: list[Any]) -> FloatArray:
    code = {category: float(number) for number, category in enumerate(categories)}
    # A file may say "True" or "1" where a frame holds a boolean or a number.
    if all(isinstance(category, str) for category in categories):
        code |= {value: code[str(value)] for value in (False, True) if str(value) in code}
    else:
        code |= {str(category): number for category, number in code.items()}
    result: FloatArray
    if hasattr(column, "cat"):
        of_categories = [code.get(category, np.nan) for category in column.cat.categories]
        result = np.append(of_categories, np.nan)[column.cat.codes]  # the code -1 of missing cells picks the last
    else:
        result = np.asarray(column.map(code), dtype=np.float64)
    unseen = np.isnan(result) & ~column.isna().to_numpy()
    if unseen.any():
        example = column.to_numpy(dtype=object)[unseen][0]
        warnings.warn(UnseenCategoryWarning(name, example, int(unseen.sum())), stacklevel=5)
    return result

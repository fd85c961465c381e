"""From what users bring (arrays, pandas frames with categories and strings) to a table of numbers, and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from safespn.typing import AnyArray, FloatArray


class UnseenCategoryWarning(UserWarning):
    """A category that did not occur in training was treated as missing.

    Parameters
    ----------
    column : str or int
        Name of the column.
    example : object
        The first such category.
    n_rows : int
        Number of rows with such categories.
    """

    def __init__(self, column: Any, example: Any, n_rows: int) -> None:
        super().__init__(column, example, n_rows)
        self.column, self.example, self.n_rows = column, example, n_rows

    def __str__(self) -> str:
        return (
            f"column {self.column!r} holds {self.example!r}, which did not occur in training; treated as missing "
            f"({self.n_rows} rows)"
        )


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Codes the categorical columns of data frames as integers.

    Parameters
    ----------
    categories : tuple
        For each column its categories in the order of their codes, or None for a column of numbers.
    """

    categories: tuple[list[Any] | None, ...]

    @classmethod
    def fit(cls, X: Any) -> TableEncoder:
        """Look at the columns of a frame: categorical, boolean and string columns are categorical, the rest numbers."""
        if not is_frame(X):
            return cls((None,) * X.shape[1])
        return cls(tuple(_categories(X.iloc[:, column], X.columns[column]) for column in range(X.shape[1])))

    @property
    def has_categories(self) -> bool:
        return any(categories is not None for categories in self.categories)

    def encode(self, X: Any) -> AnyArray:
        """Return the table as numbers: codes for categories, NaN for missing cells and for unseen categories."""
        if not self.has_categories or not is_frame(X):
            return np.asarray(X)
        columns = [
            _numbers(X.iloc[:, column], X.columns[column])
            if categories is None
            else _codes(X.iloc[:, column], X.columns[column], categories)
            for column, categories in enumerate(self.categories)
        ]
        return np.column_stack(columns)


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a pandas data frame, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns")


def is_lazy(X: Any) -> bool:
    """Whether ``X`` is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


def meta_of(X: Any) -> Any:
    """What tells names and number of columns of a Dask collection: an empty frame, or the array itself."""
    return X._meta if is_frame(X) else X


def _categories(column: Any, name: Any) -> list[Any] | None:
    kind = column.dtype.kind
    if kind in "Mm":
        raise ValueError(f"column {name!r} holds dates or times; turn it into a number or drop it")
    if hasattr(column, "cat"):
        known, used = column.cat.categories.tolist(), np.unique(column.cat.codes)
        return [known[code] for code in used if code >= 0] or [None]
    if column.dtype == bool or str(column.dtype) == "boolean":
        return [False, True]
    if kind in "iuf":
        return None
    present = column.dropna().unique().tolist()
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in present):
        return None
    if len({type(value) for value in present}) > 1:
        kinds = ", ".join(sorted({type(value).__name__ for value in present}))
        raise ValueError(f"column {name!r} mixes types ({kinds}); make it all numbers or all strings")
    return sorted(present)


def _numbers(column: Any, name: Any) -> FloatArray:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"column {name!r} held numbers in training; now it cannot be read as numbers ({error})"
        ) from error


def _codes(column: Any, name: Any, categories: list[Any]) -> FloatArray:
    code = {category: float(number) for number, category in enumerate(categories)}
    result: FloatArray
    if hasattr(column, "cat"):
        of_categories = [code.get(category, np.nan) for category in column.cat.categories]
        result = np.append(of_categories, np.nan)[column.cat.codes]  # the code -1 of missing cells picks the last
    else:
        result = np.asarray(column.map(code), dtype=np.float64)
    unseen = np.isnan(result) & ~column.isna().to_numpy()
    if unseen.any():
        example = column.to_numpy(dtype=object)[unseen][0]
        warnings.warn(UnseenCategoryWarning(name, example, int(unseen.sum())), stacklevel=4)
    return result

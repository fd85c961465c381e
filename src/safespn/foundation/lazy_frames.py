"""What kind of table it is (pandas frame, Dask collection or array), without importing either library."""

from __future__ import annotations

from typing import Any


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a pandas data frame, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns")


def is_lazy(X: Any) -> bool:
    """Whether ``X`` is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


def meta_of(X: Any) -> Any:
    """What tells names and number of columns of a Dask collection: an empty frame, or the array itself."""
    return X._meta if is_frame(X) else X

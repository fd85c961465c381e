"""Tables of other libraries (polars, pyarrow, whatever offers Arrow's interface) as pandas frames."""

from __future__ import annotations

from typing import Any

from safespn.foundation.lazy_frames import is_frame, is_lazy
from safespn.foundation.masked_arrays import unmask


def as_table(X: Any) -> Any:
    """Return a table as one that encoders take: a pandas frame or an array, with NaN in masked cells."""
    if is_frame(X) or is_lazy(X):
        return X
    if hasattr(X, "to_pandas") and hasattr(X, "shape"):
        return X.to_pandas()
    if hasattr(X, "__arrow_c_stream__"):
        import pyarrow as pa

        return pa.table(X).to_pandas()
    return unmask(X)

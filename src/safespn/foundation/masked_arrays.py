"""Masked arrays, whose masks numpy's own conversions drop silently."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmask(X: Any) -> Any:
    """Return a masked table with NaN in its masked cells; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    table = np.array(X.data, dtype=np.float64 if X.dtype.kind in "iub" else X.dtype)
    table[np.ma.getmaskarray(X)] = np.nan
    return table

"""Cells of one column: which are missing, which are numbers, and what they are as categories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from safespn.typing import AnyArray, BoolArray, FloatArray

MISSING_MARKERS = frozenset(
    {"", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "Null", "null", "None", "<NA>", "."}
)
"""Texts that stand for a missing cell."""
_WHOLE_WITH_ZEROS = re.compile(r"([+-]?\d+)\.0*")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column.

    Parameters
    ----------
    texts : array of shape (n_rows,)
        Each cell as text; "" where missing.
    numbers : array of shape (n_rows,)
        Each cell as a number; NaN where missing or not a number.
    """

    texts: AnyArray
    numbers: FloatArray

    @property
    def is_missing(self) -> BoolArray:
        return np.asarray(self.texts == "")

    @property
    def is_text(self) -> BoolArray:
        """Which cells hold something that is not a number."""
        return np.asarray(~self.is_missing & np.isnan(self.numbers))

    def categories(self) -> AnyArray:
        """Cells as category names, None where missing; 1.0 is the category 1, as it is where no cell is missing."""
        distinct, places = np.unique(self.texts.astype(str), return_inverse=True)
        names = np.array([_category(text) for text in distinct.tolist()], dtype=object)
        return names[places]


def cells_of(column: Any, kind: str, markers: Iterable[str] = (), decimal: str = ".") -> Cells:
    """Look at a column of a file.

    Parameters
    ----------
    column : Series
        Texts (or None) or numbers, as in ``kind``.
    kind : {"text", "number"}
    markers : iterable of str
        Texts that mark a missing cell besides the usual ones.
    decimal : str
        The decimal mark of texts.
    """
    if kind == "number":
        numbers = np.array(column, dtype=np.float64)
        texts = np.array(["" if value != value else _number_text(value) for value in numbers], dtype=object)
    else:
        texts = np.array(["" if text is None or text != text else text.strip() for text in column], dtype=object)
        texts[np.isin(texts.astype(str), [*MISSING_MARKERS, *markers])] = ""
        written = texts if decimal == "." else np.array([text.replace(decimal, ".") for text in texts], dtype=object)
        numbers = np.array(pd.to_numeric(pd.Series(written), errors="coerce"), dtype=np.float64)
    # A marker such as -999 is also meant where the file writes -999.0.
    marked = np.isin(numbers, [float(marker) for marker in markers if _is_number(marker)])
    texts[marked], numbers[marked] = "", np.nan
    return Cells(texts, numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(float(value))


def _category(text: str) -> str | None:
    whole = _WHOLE_WITH_ZEROS.fullmatch(text)
    return (whole[1] if whole else text) or None

"""Cells of one column: which are missing, which are numbers, and what they are as categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from safespn.foundation.column_types import is_numeric_text
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

MISSING_MARKERS = frozenset(
    {"", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "Null", "null", "None", "<NA>", "."}
)
"""Texts that stand for a missing cell."""
_AMOUNT = re.compile(
    r"(?!.*[+-].*[+-])([+-]?)[$€£¥]? ?([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)? ?[$€£¥]?"  # one sign at most
)
_CURRENCY = re.compile(r"[$€£¥]")
_IN_BRACKETS = re.compile(r"([$€£¥]? ?)\(([^()+-]*)\)( ?[$€£¥]?)")
_SWAPPED_MARKS = str.maketrans(",.", ".,")
_AROUND = "+-()$€£¥ "
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_ONLY_GROUPED = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3}){2,}|(?:\.\d{3})+,\d+)")
_WITH_DECIMAL_COMMA = re.compile(r"(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?")
_WITH_DECIMAL_POINT = re.compile(r"\d*\.\d+(?:[eE][+-]?\d+)?|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}")
_WHOLE_WITH_ZEROS = re.compile(r"([+-]?\d+)\.0*")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column.

    Parameters
    ----------
    numbers : array of shape (n_rows,)
        Each cell as a number; NaN where missing or not a number.
    written : array of shape (n_rows,), optional
        Each cell as text, "" where missing; None if the file holds numbers.
    rows : array of shape (n_rows,), optional
        Numbers of the rows in the file, counted from 0; without it these are all rows.
    amount : tuple of str and float, optional
        A text such as $1,234 that was read as a number, and that number.
    """

    numbers: FloatArray
    written: AnyArray | None = None
    rows: IntArray | None = None
    amount: tuple[str, float] | None = None

    @cached_property
    def texts(self) -> AnyArray:
        """Each cell as text; "" where missing."""
        if self.written is not None:
            return self.written
        places, distinct = pd.factorize(self.numbers)
        return _taken([_number_text(value) for value in distinct.tolist()], places)

    @property
    def is_missing(self) -> BoolArray:
        return np.isnan(self.numbers) if self.written is None else np.asarray(self.written == "")

    @property
    def is_text(self) -> BoolArray:
        """Which cells hold something that is not a number."""
        return np.asarray(~self.is_missing & np.isnan(self.numbers))

    def row_number(self, place: int) -> int:
        """Number of a row as people count: from 1, in the file."""
        return 1 + int(place if self.rows is None else self.rows[place])

    def categories(self) -> AnyArray:
        """Cells as category names, None where missing; 1.0 is the category 1, as it is where no cell is missing."""
        places, distinct = pd.factorize(self.texts)
        return _taken([_category(text) for text in distinct.tolist()], places)


def cells_of(
    column: AnyArray,
    kind: str,
    markers: Iterable[str] = (),
    decimal: str = ".",
    rows: IntArray | None = None,
    *,
    grouping: bool | None = None,
) -> Cells:
    """Look at a column of a file.

    Parameters
    ----------
    column : array of shape (n_rows,)
        Texts (or None) or numbers, as in ``kind``.
    kind : {"text", "number"}
    markers : iterable of str
        Texts that mark a missing cell besides the usual ones.
    decimal : str
        The decimal mark of texts.
    rows : array of shape (n_rows,), optional
        Numbers of the rows in the file, counted from 0, if these are not all rows.
    grouping : bool, optional
        Whether points group thousands in this column; without it these cells decide. Those who look at a column piece
        by piece say it, so that all pieces are read alike.
    """
    marked_numbers = [float(marker) for marker in markers if is_numeric_text(marker)]
    if kind == "number":
        numbers = np.array(column, dtype=np.float64)
        numbers[np.isin(numbers, marked_numbers)] = np.nan
        return Cells(numbers, None, rows)
    missing = MISSING_MARKERS.union(markers)
    places, distinct = pd.factorize(column)
    texts = [text.strip() for text in distinct.tolist()]
    texts = ["" if text in missing else text for text in texts]
    grouping = points_group(texts, decimal) if grouping is None else grouping
    if grouping:
        decimal = ","
    with_points = texts if decimal == "." else [text.replace(decimal, ".") for text in texts]
    if grouping:
        # Left to what reads amounts: 1.234 would be a number by itself, but a smaller one.
        with_points = ["" if _is_grouped(text) else other for text, other in zip(texts, with_points, strict=True)]
    numbers = np.array(pd.to_numeric(pd.Series(with_points, dtype=object), errors="coerce"), dtype=np.float64)
    amount = None
    for place in np.nonzero(np.isnan(numbers))[0]:
        # Where points are decimal marks beside commas, they are in amounts, too.
        number = _amount(texts[place], decimal if grouping or "," in texts[place] else ".")
        if number is not None:
            amount, numbers[place] = amount or (texts[place], number), number
    # A marker such as -999 is also meant where the file writes -999.0.
    for place in np.nonzero(np.isin(numbers, marked_numbers))[0]:
        texts[place], numbers[place] = "", np.nan
    return Cells(np.append(numbers, np.nan)[places], _taken(texts, places), rows, amount)


def points_group(texts: Iterable[str], decimal: str = ".") -> bool:
    """Decide for a column whether points group thousands: 1.234 is then more than a thousand.

    Where the file has decimal commas they do, unless the column shows points that can only be decimal (0.5 or 1.23).
    Elsewhere they do if some can only group (1.234.567 or 1.234,5), all cells are such numbers and they are not all of
    one shape, as codes are.

    Parameters
    ----------
    texts : iterable of str
        Cells, or some of them; empty where missing.
    decimal : str
        The decimal mark of the file.
    """
    given = {text.strip(_AROUND) for text in texts}
    only_grouped = any(text.count(".") > 0 and _ONLY_GROUPED.fullmatch(text) for text in given)
    if decimal == ",":
        return only_grouped or not any(
            _WITH_DECIMAL_POINT.fullmatch(text) and not _GROUPED.fullmatch(text) for text in given
        )
    shapes = {(text.count("."), "," in text) for text in given if text}
    return only_grouped and len(shapes) > 1 and all(_WITH_DECIMAL_COMMA.fullmatch(text) for text in given if text)


def _taken(distinct: Sequence[str | None], places: IntArray) -> AnyArray:
    """Spread distinct values over the rows; at place -1 the cell is missing."""
    return np.array([*distinct, ""], dtype=object)[places]


def _amount(text: str, decimal: str = ".") -> float | None:
    """Read a number with the sign of a currency or with grouped thousands; None if it is something else.

    With the sign of a currency, brackets mean that it is negative, as accountants write.
    """
    bracketed = _IN_BRACKETS.fullmatch(text)
    if bracketed:
        if not _CURRENCY.search(text):
            return None
        text = "-" + "".join(bracketed.groups())
    found = _AMOUNT.fullmatch(text if decimal == "." else text.translate(_SWAPPED_MARKS))
    return float(found[1] + found[2] + found[3].replace(",", "") + (found[4] or "")) if found else None


def _is_grouped(text: str) -> bool:
    """Whether each point in a number has a group of three digits behind it, so that it may be a thousands separator."""
    return _GROUPED.fullmatch(text) is not None


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(float(value))


def _category(text: str) -> str | None:
    whole = _WHOLE_WITH_ZEROS.fullmatch(text)
    return (whole[1] if whole else text) or None

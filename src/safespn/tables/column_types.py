"""Which columns are numbers, which are categories, and which are better left out: decided once, and explained."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
from pandas.tseries.api import guess_datetime_format

from safespn.tables.cells import Cells
from safespn.tables.errors import TableError
from safespn.typing import AnyArray, FloatArray

MOST_CATEGORIES = 200
FEWEST_ROWS_PER_CATEGORY = 2
FEWEST_ROWS_OF_IDENTIFIER = 20
ROWS_WITHOUT_REPEATS = 200
"""From so many rows on, whole numbers that never repeat are an identifier whatever their name."""
_NAME_OF_IDENTIFIER = re.compile(
    r"(.*[\s_.-])?(id|ids|key|index|idx|uuid|guid|code|nr|no|number|row)|.*[a-z](ID|Id|Nr|No)|column \d+|unnamed.*"
)


@dataclass(frozen=True)
class ColumnType:
    """What became of a column.

    Parameters
    ----------
    name : str
    kind : {"continuous", "categorical", "ignored"}
    reason : str
        Number of categories, or why it is ignored.
    advice : str
        What to do if the decision is wrong; empty if there is nothing to say.
    """

    name: str
    kind: str
    reason: str = ""
    advice: str = ""

    def __str__(self) -> str:
        if self.kind == "categorical":
            return f"{self.name}: categorical ({self.reason})"
        return f"{self.name}: {self.kind}{f', {self.reason}' if self.reason else ''}"


def decide_type(name: str, cells: Cells, source: str) -> ColumnType:
    """Decide what a column is from its cells; ``source`` is named in errors."""
    present = ~cells.is_missing
    if not present.any():
        return ColumnType(name, "ignored", "empty")
    distinct = np.unique(cells.categories()[present].astype(str))
    if len(distinct) == 1:
        return ColumnType(name, "ignored", f"always {shortened(distinct[0])}")
    if not cells.is_text.any():
        return _type_of_numbers(name, cells.numbers[present], len(distinct), bool(present.all()))
    return _type_of_texts(name, cells, distinct, source)


def categorical(name: str, cells: Cells) -> ColumnType:
    """Take a column as categorical because its owner says so."""
    n_categories = len(np.unique(cells.categories()[~cells.is_missing].astype(str)))
    return ColumnType(name, "categorical", str(n_categories)) if n_categories else ColumnType(name, "ignored", "empty")


def continuous(name: str, cells: Cells, source: str) -> ColumnType:
    """Take a column as numbers because its owner says so."""
    if cells.is_text.any():
        row = int(np.argmax(cells.is_text))
        text = shortened(cells.texts[row])
        raise TableError(
            f"{source}: column {name!r} was to be continuous, but row {cells.row_number(row)} holds {text!r}; "
            f"pass --missing {text!r} if it marks a missing cell"
        )
    return ColumnType(name, "continuous") if (~cells.is_missing).any() else ColumnType(name, "ignored", "empty")


def _type_of_numbers(name: str, values: FloatArray, n_distinct: int, is_complete: bool) -> ColumnType:
    if n_distinct == 2:
        return ColumnType(name, "categorical", "2")
    is_unique = is_complete and n_distinct == len(values) >= FEWEST_ROWS_OF_IDENTIFIER
    if is_unique and np.isfinite(values).all() and (values == np.round(values)).all():
        steps = np.diff(values)
        named = _NAME_OF_IDENTIFIER.fullmatch(name) or _NAME_OF_IDENTIFIER.fullmatch(name.lower())
        if named or (steps == steps[0]).all() or len(values) >= ROWS_WITHOUT_REPEATS:
            return ColumnType(name, "ignored", "unique per row", "if it is a measurement, pass --continuous")
    return ColumnType(name, "continuous")


def _type_of_texts(name: str, cells: Cells, distinct: AnyArray, source: str) -> ColumnType:
    if _are_dates(distinct):
        return ColumnType(name, "ignored", "dates", "turn them into numbers, such as days since a start")
    n_numbers, n_texts = int(np.isfinite(cells.numbers).sum()), int(cells.is_text.sum())
    if n_numbers >= n_texts and len(np.unique(cells.numbers[np.isfinite(cells.numbers)])) > 10:
        row = int(np.argmax(cells.is_text))
        text = shortened(cells.texts[row])
        raise TableError(
            f"{source}: column {name!r} mixes numbers and text: {text!r} in row {cells.row_number(row)} "
            f"({n_texts} rows {'in all' if cells.rows is None else 'of the sample'}); "
            f"pass --missing {text!r} if it marks missing cells, --categorical {name!r} or --ignore {name!r}"
        )
    n_present = int((~cells.is_missing).sum())
    if len(distinct) == n_present:
        return ColumnType(name, "ignored", "unique per row", "if it is a category, pass --categorical")
    if len(distinct) > min(MOST_CATEGORIES, max(10, n_present // FEWEST_ROWS_PER_CATEGORY)):
        return ColumnType(
            name, "ignored", f"free text ({len(distinct)} different values)", "if it is a category, pass --categorical"
        )
    return ColumnType(name, "categorical", str(len(distinct)))


def _are_dates(distinct: AnyArray) -> bool:
    """Whether nearly all of some values read as dates."""
    sample = distinct[:: max(1, len(distinct) // 50)].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about days before months
        known = [guess_datetime_format(text) is not None for text in sample]
    return sum(known) >= 0.9 * len(known)


def shortened(text: str) -> str:
    """Keep a text short enough for a line that names it."""
    return text if len(text) <= 40 else f"{text[:39]}…"

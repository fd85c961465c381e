"""The types of a table's columns: one decision for arrays, data frames, Dask collections and files.

========================================================  ===========================================
what a column holds                                       type
========================================================  ===========================================
nothing, or always the same                               "ignored"
booleans, pandas categories                               "categorical"
numbers with exactly two different values                 "categorical"
whole numbers that tell rows apart (frames and files)     "ignored": an identifier
all other numbers                                         "continuous"
dates; texts that hardly repeat                           "ignored"
all other texts                                           "categorical"
========================================================  ===========================================

"count" is never chosen, only declared.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from safespn.typing import AnyArray, FloatArray

TYPES = ("continuous", "categorical", "count", "ignored")
MOST_CATEGORIES = 200
FEWEST_ROWS_PER_CATEGORY = 2
FEWEST_ROWS_OF_IDENTIFIER = 20
ROWS_WITHOUT_REPEATS = 200
"""From so many rows on, whole numbers that never repeat are an identifier whatever their name."""
MOST_NUMBERS_AMONG_TEXTS = 10
LONGEST_DATE = 100
"""Letters; longer texts are no dates. Looking for one takes time that grows with the length."""
_FIRST_LOOK = 1_000
_NAME_OF_IDENTIFIER = re.compile(
    r"(.*[\s_.-])?(id|ids|key|index|idx|uuid|guid|code|nr|no|number|row)|.*[a-z](ID|Id|Nr|No)|column \d+|unnamed.*"
)


@dataclass(frozen=True)
class ColumnType:
    """What became of a column.

    Parameters
    ----------
    name : str
    kind : {"continuous", "categorical", "count", "ignored"}
    reason : str
        Number of categories, or why it is ignored.
    alternative : str
        The type that it probably has if the decision is wrong; empty if there is no doubt.
    of_numbers : bool
        Whether categories are numbers.
    """

    name: str
    kind: str
    reason: str = ""
    alternative: str = ""
    of_numbers: bool = False

    def __str__(self) -> str:
        if self.kind == "categorical":
            return f"{self.name}: categorical ({self.reason})"
        return f"{self.name}: {self.kind}{f', {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What decides the type of a column; summaries of several blocks of rows can be merged.

    Parameters
    ----------
    holds : {"nothing", "numbers", "texts", "categories", "dates"}
        "categories" are values that their owner has marked as such: booleans and pandas categories.
    n_present, n_missing : int
        Cells.
    values : list or array
        The different values, in the order of their codes.
    is_complete : bool
        Whether ``values`` are all; of numbers that repeat, three different ones say enough.
    n_numbers : int
        How many of the different texts are written like numbers.
    no_count : float, optional
        A value that is not a count.
    """

    holds: str
    n_present: int
    n_missing: int
    values: Any = ()
    is_complete: bool = True
    n_numbers: int = 0
    no_count: float | None = None

    @property
    def mixes_numbers_and_texts(self) -> bool:
        """Whether texts among numbers are rather a mistake than categories."""
        n_texts = len(self.values) - self.n_numbers
        return self.holds == "texts" and self.n_numbers > MOST_NUMBERS_AMONG_TEXTS and self.n_numbers >= n_texts > 0

    @property
    def is_of_numbers(self) -> bool:
        """Whether all values are numbers or booleans."""
        return self.holds in ("nothing", "numbers") or all(
            isinstance(value, (bool, int, float, np.number, np.bool_)) for value in self.values
        )

    @property
    def categories(self) -> list[Any]:
        """The values as categories, whole numbers as integers."""
        if self.holds != "numbers":
            return list(self.values)
        return [int(value) if float(value).is_integer() else float(value) for value in self.values]


def summarise_numbers(
    values: FloatArray, declared: str | None = None, *, find_identifiers: bool = True
) -> ColumnSummary:
    """Look at a column of numbers, NaN where missing.

    Parameters
    ----------
    declared : str, optional
        The type that the caller says it has.
    find_identifiers : bool
        Whether it matters that all values are different.
    """
    present = values[~np.isnan(values)]
    n_present, n_missing = len(present), len(values) - len(present)
    if not n_present:
        return ColumnSummary("nothing", 0, n_missing)
    distinct = np.unique(present) if declared == "categorical" else np.sort(_three_different(present))
    summary = ColumnSummary("numbers", n_present, n_missing, distinct)
    if declared == "count":
        refused = present[(present < 0) | (present != np.floor(present))]
        return replace(summary, no_count=float(refused[0]) if len(refused) else None)
    if declared == "categorical" or len(distinct) < 3:
        return summary
    if find_identifiers and not n_missing and _are_different_integers(present):
        return replace(summary, values=np.sort(present))
    return replace(summary, is_complete=False)


def _three_different(values: FloatArray) -> FloatArray:
    """Up to three different values, without sorting all of them."""
    found: list[float] = []
    while len(values) and len(found) < 3:
        found.append(values[0])
        values = values[values != values[0]] if len(found) < 3 else values
    return np.array(found)


def _are_different_integers(values: FloatArray) -> bool:
    for some in (values[:_FIRST_LOOK], values):
        if not np.isfinite(some).all() or (some != np.round(some)).any() or len(np.unique(some)) < len(some):
            return False
    return True


def merge_summaries(summaries: Iterable[ColumnSummary]) -> ColumnSummary:
    """Put together what blocks of rows hold in a column; blocks without any cell in it do not matter.

    Raises
    ------
    ValueError
        If they do not hold the same; the message lacks the column's name.
    """
    given = list(summaries)
    held = {number: summary for number, summary in enumerate(given) if summary.holds != "nothing"}
    n_missing = sum(summary.n_missing for summary in given)
    if not held:
        return ColumnSummary("nothing", 0, n_missing)
    numbers = [number for number, summary in held.items() if summary.holds == "numbers"]
    others = [number for number in held if number not in numbers]
    if numbers and others:
        other = "dates" if held[others[0]].holds == "dates" else "categories"
        raise ValueError(
            f"holds numbers in block {numbers[0]} and {other} in block {others[0]}; make it the same type everywhere"
        )
    values: Any
    if numbers:
        values = np.unique(np.concatenate([summary.values for summary in held.values()]))
    else:
        values = _sorted_union(summary.values for summary in held.values())
    return ColumnSummary(
        next(iter(held.values())).holds,
        sum(summary.n_present for summary in held.values()),
        n_missing,
        values,
        all(summary.is_complete for summary in held.values()),
        0 if numbers else count_numbers(values),
        next((summary.no_count for summary in held.values() if summary.no_count is not None), None),
    )


def _sorted_union(groups: Iterable[Sequence[Any]]) -> list[Any]:
    values = {value for group in groups for value in group}
    kinds = sorted({type(value).__name__ for value in values})
    if len(kinds) > 1:
        raise ValueError(f"mixes types between blocks ({', '.join(kinds)})")
    return sorted(values)


def count_numbers(values: Iterable[Any]) -> int:
    """Count the texts that are written like numbers."""
    return sum(isinstance(value, str) and is_numeric_text(value) for value in values)


def is_numeric_text(text: str) -> bool:
    """Whether a text is written like a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def decide_type(name: Any, column: ColumnSummary, declared: str | None = None) -> ColumnType:
    """Decide the type of a column.

    Parameters
    ----------
    name : str
        Its name, which may suggest an identifier.
    declared : str, optional
        The type that its owner says it has.

    Raises
    ------
    ValueError
        If it cannot have the declared type, or holds numbers and a few texts.
    """
    title = str(name)
    if declared == "ignored":
        return ColumnType(title, "ignored", "as asked")
    if column.holds == "nothing":
        return ColumnType(title, "ignored", "empty")
    if declared is not None:
        return _declared_type(name, column, declared)
    if column.holds == "dates":
        return ColumnType(title, "ignored", "dates")
    n_distinct = len(column.values)
    if n_distinct == 1 and (column.holds != "numbers" or np.isfinite(column.values).all()):
        return ColumnType(title, "ignored", f"always {shortened(str(column.categories[0]))}")
    if column.holds == "numbers":
        return _type_of_numbers(title, column)
    if column.holds == "texts":
        return _type_of_texts(name, column)
    return ColumnType(title, "categorical", str(n_distinct), of_numbers=column.is_of_numbers)


def _declared_type(name: Any, column: ColumnSummary, declared: str) -> ColumnType:
    if column.holds == "dates":
        raise ValueError(f"column {name!r} holds dates or times, so it cannot be {declared}; turn it into a number")
    if declared == "categorical":
        return ColumnType(str(name), declared, str(len(column.values)), of_numbers=column.is_of_numbers)
    if not column.is_of_numbers:
        raise ValueError(
            f"column {name!r} was to be {declared}, but holds {column.values[0]!r}; make it numbers, with NaN where "
            "they are missing"
        )
    if column.no_count is not None:
        raise ValueError(f"column {name!r} was to be count, but holds {column.no_count:g}; expected 0, 1, 2, ...")
    return ColumnType(str(name), declared)


def _type_of_numbers(name: str, column: ColumnSummary) -> ColumnType:
    if len(column.values) == 2 and np.isfinite(column.values).all():
        return ColumnType(name, "categorical", "2", of_numbers=True)
    n_distinct = len(column.values)
    is_unique = column.is_complete and not column.n_missing and n_distinct == column.n_present
    if is_unique and n_distinct >= FEWEST_ROWS_OF_IDENTIFIER and _are_different_integers(np.asarray(column.values)):
        steps = np.diff(column.values)
        named = _NAME_OF_IDENTIFIER.fullmatch(name) or _NAME_OF_IDENTIFIER.fullmatch(name.lower())
        if named or (steps == steps[0]).all() or n_distinct >= ROWS_WITHOUT_REPEATS:
            return ColumnType(name, "ignored", "unique per row", "continuous")
    return ColumnType(name, "continuous")


def _type_of_texts(name: Any, column: ColumnSummary) -> ColumnType:
    title, n_distinct = str(name), len(column.values)
    if are_dates(column.values):
        return ColumnType(title, "ignored", "dates")
    if column.mixes_numbers_and_texts:
        text = next(value for value in column.values if not is_numeric_text(value))
        raise ValueError(
            f"column {name!r} mixes numbers and text such as {shortened(text)!r}; put NaN where it marks missing "
            f"cells, or pass column_types={{{name!r}: 'categorical'}} or 'ignored'"
        )
    if n_distinct == column.n_present:
        return ColumnType(title, "ignored", "unique per row", "categorical")
    if n_distinct > min(MOST_CATEGORIES, max(10, column.n_present // FEWEST_ROWS_PER_CATEGORY)):
        return ColumnType(title, "ignored", f"free text ({n_distinct} different values)", "categorical")
    return ColumnType(title, "categorical", str(n_distinct))


def are_dates(distinct: Sequence[Any]) -> bool:
    """Whether nearly all of some values read as dates."""
    from pandas.tseries.api import guess_datetime_format  # texts come in data frames and files, which need pandas

    sample = distinct[:: max(1, len(distinct) // 50)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about days before months
        known = [
            isinstance(text, str) and len(text) <= LONGEST_DATE and guess_datetime_format(text) is not None
            for text in sample
        ]
    return sum(known) >= 0.9 * len(known)


def shortened(text: str) -> str:
    """Keep a text short enough for a line that names it."""
    return text if len(text) <= 40 else f"{text[:39]}…"


def declared_types(column_types: Mapping[Any, str] | None, names: Sequence[Any]) -> list[str | None]:
    """Spread what a caller declares over the columns: by name where there is such a name, else by number.

    Raises
    ------
    ValueError
        If there is no such column or no such type.
    """
    declared: list[str | None] = [None] * len(names)
    places = {name: place for place, name in enumerate(names)}
    for key, kind in (column_types or {}).items():
        is_number = isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < len(names)
        if key not in places and not is_number:
            raise ValueError(
                f"column_types: there is no column {key!r}; expected a name of X, or 0 to {len(names) - 1}"
            )
        if kind not in TYPES:
            raise ValueError(
                f"column_types: column {key!r} is declared {kind!r}; expected one of {', '.join(map(repr, TYPES))}"
            )
        declared[places.get(key, int(key) if is_number else -1)] = kind
    return declared


def names_of(X: Any) -> list[Any]:
    """Names of the columns of a table, or their numbers if it has none."""
    return list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))


def summarise_columns(X: Any, declared: Sequence[str | None]) -> tuple[ColumnSummary, ...]:
    """Look at each column of an array of numbers or of a data frame."""
    if hasattr(X, "iloc"):
        names = names_of(X)
        if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in X.dtypes):
            # Thousands of columns are looked at much faster as an array.
            numbers = X.to_numpy(dtype=np.float64)
            return tuple(_summarise_cells(numbers[:, place], declared[place]) for place in range(len(names)))
        return tuple(_summarise_series(X.iloc[:, place], names[place], declared[place]) for place in range(len(names)))
    table: AnyArray = np.asarray(X, dtype=np.float64)
    return tuple(
        summarise_numbers(table[:, place], declared[place], find_identifiers=False) for place in range(table.shape[1])
    )


def _summarise_cells(cells: FloatArray, declared: str | None) -> ColumnSummary:
    if declared == "ignored" or np.isnan(cells).all():
        return ColumnSummary("nothing", 0, int(np.isnan(cells).sum()))
    return summarise_numbers(cells, declared)


def _summarise_series(column: Any, name: Any, declared: str | None) -> ColumnSummary:
    n_missing = int(column.isna().sum())
    n_present, kind = len(column) - n_missing, column.dtype.kind
    if declared == "ignored" or not n_present:
        return ColumnSummary("nothing", 0, n_missing)
    if kind == "c":
        raise complex_error(name)
    if kind in "Mm":
        return ColumnSummary("dates", n_present, n_missing)
    if hasattr(column, "cat"):
        known, used = column.cat.categories.tolist(), np.unique(column.cat.codes)
        return ColumnSummary("categories", n_present, n_missing, [known[code] for code in used if code >= 0])
    if kind in "iuf":
        return _summarise_cells(column.to_numpy(dtype=np.float64, na_value=np.nan), declared)
    try:
        present = column.dropna().unique().tolist()
    except TypeError:
        example = type(column.dropna().iloc[0]).__name__
        raise ValueError(
            f"column {name!r} holds nested values ({example}); spread them over columns of their own"
        ) from None
    if any(isinstance(value, complex) for value in present):
        raise complex_error(name)
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in present):
        return summarise_numbers(column.to_numpy(dtype=np.float64, na_value=np.nan), declared)
    if len({type(value) for value in present}) > 1:
        kinds = ", ".join(sorted({type(value).__name__ for value in present}))
        raise ValueError(f"column {name!r} mixes types ({kinds}); make it all numbers or all strings")
    holds = "categories" if isinstance(present[0], bool) else "texts"
    return ColumnSummary(holds, n_present, n_missing, sorted(present), n_numbers=count_numbers(present))


def complex_error(name: Any) -> ValueError:
    """What to say about complex numbers."""
    return ValueError(f"column {name!r} holds complex numbers; give their parts, or size and angle, as two columns")

"""Types of a file's columns: what their cells hold, decided as everywhere, and what the owner can do about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safespn.exceptions import TableError
from safespn.foundation import column_types
from safespn.foundation.column_types import ColumnSummary, ColumnType, shortened, summarise_numbers
from safespn.tables.cells import Cells


def decide_type(name: str, cells: Cells, source: str) -> ColumnType:
    """Decide what a column is from its cells; ``source`` is named in errors."""
    column = _summary(cells)
    if not column.mixes_numbers_and_texts or column_types.are_dates(column.values):
        return column_types.decide_type(name, column)
    row = int(np.argmax(cells.is_text))
    text = shortened(cells.texts[row])
    raise TableError(
        f"{source}: column {name!r} mixes numbers and text: {text!r} in row {cells.row_number(row)} "
        f"({int(cells.is_text.sum())} rows {'in all' if cells.rows is None else 'of the sample'}); "
        f"pass --missing {text!r} if it marks missing cells, --categorical {name!r} or --ignore {name!r}"
    )


def categorical(name: str, cells: Cells) -> ColumnType:
    """Take a column as categorical because its owner says so."""
    decided = column_types.decide_type(name, _summary(cells, "categorical"), "categorical")
    # What is not in a sample may be text.
    return decided if cells.rows is None else replace(decided, of_numbers=False)


def continuous(name: str, cells: Cells, source: str) -> ColumnType:
    """Take a column as numbers because its owner says so."""
    if cells.is_text.any():
        row = int(np.argmax(cells.is_text))
        text = shortened(cells.texts[row])
        raise TableError(
            f"{source}: column {name!r} was to be continuous, but row {cells.row_number(row)} holds {text!r}; "
            f"pass --missing {text!r} if it marks a missing cell"
        )
    return column_types.decide_type(name, _summary(cells, "continuous"), "continuous")


def _summary(cells: Cells, declared: str | None = None) -> ColumnSummary:
    if not cells.is_text.any():
        return summarise_numbers(cells.numbers, declared)
    present = ~cells.is_missing
    names = cells.categories()[present]
    n_numbers = len(set(names[np.isfinite(cells.numbers[present])].tolist()))
    return ColumnSummary("texts", len(names), int((~present).sum()), sorted(set(names.tolist())), n_numbers=n_numbers)


def advice_on(column: ColumnType) -> str:
    """Say what to do if a column is ignored and should not be; empty if there is nothing to say."""
    if column.kind != "ignored":
        return ""
    return {
        "dates": "turn them into numbers, such as days since a start",
        "nested values": "spread them over columns of their own",
    }.get(column.reason, "") or {
        "continuous": "if it is a measurement, pass --continuous",
        "categorical": "if it is a category, pass --categorical",
    }.get(column.alternative, "")

"""How a text file writes its table: encoding, separator and decimal mark, found by looking at its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from safespn.exceptions import TableError
from safespn.tables.cells import MISSING_MARKERS, points_group

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
HEAD_BYTES = 1 << 20
"""How much of a file is looked at."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")
_POINT_NUMBER = re.compile(r"[+-]?(\d*|[1-9]\d{0,2}(,\d{3})+)\.\d+([eE][+-]?\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d*|[1-9]\d{0,2}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_COMMA_GROUP = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class Dialect:
    """How a text file writes its table."""

    encoding: str
    separator: str
    decimal: str
    names: tuple[str, ...]
    """Column names; a column without one is called by its number."""
    n_empty_lines: int
    """Empty lines before the column names."""
    has_rows: bool
    grouping: frozenset[str] = frozenset()
    """Columns in which points group thousands."""

    @property
    def notes(self) -> list[str]:
        """What is unusual and was understood."""
        notes = []
        if self.separator != ",":
            notes.append(f"cells are separated by {SEPARATORS[self.separator]}")
        if self.decimal == ",":
            notes.append("commas are decimal marks")
        if self.encoding == "cp1252":
            notes.append("the file is not UTF-8; read as Windows-1252")
        return notes


def find_dialect(path: Path, name: Path) -> Dialect:
    """Look at the beginning of a text file; ``name`` is named in errors."""
    with path.open("rb") as file:
        content = file.read(HEAD_BYTES)
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError(f"{name}: the file is empty; expected a line of column names and rows below it")
    encoding, text = _decode(name, content)
    is_whole = len(content) < HEAD_BYTES
    lines = list(io.StringIO(text, newline=""))
    lines = lines if is_whole or len(lines) == 1 else lines[:-1]
    n_empty = next((number for number, line in enumerate(lines) if line.strip()), 0)
    separator = max(SEPARATORS, key=lambda mark: _evenness(lines[n_empty:], mark))
    rows = _rows(lines[n_empty:], separator)
    names = tuple(on_one_line(cell) or f"column {number}" for number, cell in enumerate(rows[0], start=1))
    columns = [[row[place].strip() for row in rows[1:] if place < len(row)] for place in range(len(names))]
    decimal = _decimal(columns, separator)
    grouping = frozenset(
        name for name, cells in zip(names, columns, strict=True) if points_group(_present(cells), decimal)
    )
    has_rows = len(rows) > 1 or not is_whole
    return Dialect(encoding, separator, decimal, names, n_empty, has_rows, grouping)


def on_one_line(name: str) -> str:
    """Column names as they are called: line breaks, which spreadsheets write into wide headers, are spaces."""
    return _LINE_BREAKS.sub(" ", name.strip())


def _decode(name: Path, content: bytes) -> tuple[str, str]:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return encoding, content.decode(encoding, errors="ignore")
    if b"\0" in content:
        raise TableError(f"{name}: this is neither a CSV nor a Parquet file (it holds zero bytes)")
    try:
        # An incomplete letter at the end is where the beginning was cut off.
        return "utf-8", codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return "cp1252", content.decode("cp1252", errors="replace")


def _rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    limit = csv.field_size_limit(2 * HEAD_BYTES)
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row] or [[""]]
    except csv.Error:
        return [[""]]
    finally:
        csv.field_size_limit(limit)


def _evenness(lines: Sequence[str], separator: str) -> tuple[float, int]:
    """Share of the first lines with as many cells as there are names, and their number; the best has the largest."""
    widths = [len(row) for row in _rows(lines[:200], separator)]
    return (widths.count(widths[0]) / len(widths) if widths[0] > 1 else 0.0), widths[0]


def _present(cells: Iterable[str]) -> set[str]:
    return {cell for cell in cells if cell not in MISSING_MARKERS}


def _decimal(columns: Sequence[Sequence[str]], separator: str) -> str:
    """Find the decimal mark; between commas as separators a comma in quotes rather groups thousands.

    Points that may group thousands say nothing in columns where some can only do so, nor beside columns whose numbers
    plainly have decimal commas.
    """
    if separator == ",":
        return "."
    beside = "," if any(_has_decimal_commas(_present(cells)) for cells in columns) else "."
    with_comma = with_point = 0
    for cells in columns:
        with_comma += sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
        if not points_group(_present(cells), beside):
            with_point += sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    return "," if with_comma > with_point else "."


def _has_decimal_commas(cells: set[str]) -> bool:
    """Whether cells are whole numbers and such with a comma, not all of which may group thousands."""
    if not all(_WHOLE_NUMBER.fullmatch(cell) or _COMMA_NUMBER.fullmatch(cell) for cell in cells):
        return False
    return any("," in cell and not _COMMA_GROUP.fullmatch(cell) for cell in cells)

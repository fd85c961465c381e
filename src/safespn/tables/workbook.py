"""Excel workbooks: their first sheet, copied to a text file that everything else can read."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from safespn.exceptions import TableError
from safespn.tables.temporary_copy import TemporaryCopy

WORKBOOK_MARK = b"PK\x03\x04"
ROWS_PER_BLOCK = 1_000
_ERRORS = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"})
"""What a formula that failed leaves in its cell: no value."""


def copy_of_workbook(content: Path, name: Path) -> tuple[TemporaryCopy, list[str]]:
    """Copy the first sheet of a workbook as CSV.

    Parameters
    ----------
    content : Path
        The file to read.
    name : Path
        What it is called in errors.

    Returns
    -------
    copy : TemporaryCopy
    notes : list of str
        Which sheet was read, if there are several.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise TableError(
            f"{name}: reading Excel files needs openpyxl; pip install 'safespn[excel]', or save the table as CSV"
        ) from None
    try:
        with content.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which no table needs
            book = load_workbook(file, read_only=True, data_only=True)
            sheets = book.worksheets
            if not sheets:
                raise TableError(f"{name}: the workbook has no sheet with cells; expected a table in the first one")
            copy = TemporaryCopy.of_bytes(_as_csv(sheets[0].iter_rows(values_only=True)))
            titles = [sheet.title for sheet in sheets]
    except (BadZipFile, InvalidFileException, KeyError, OSError, ValueError) as error:
        if isinstance(error, TableError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise TableError(f"{name}: a damaged Excel file, or a zip archive of another kind; save it again") from error
    others = ", ".join(map(repr, titles[1:4])) + (", …" if len(titles) > 4 else "")
    return copy, [f"the first sheet, {titles[0]!r}, is read; not {others}"] if len(titles) > 1 else []


def _as_csv(rows: Iterable[tuple[Any, ...]]) -> Iterator[bytes]:
    """Rows that are not empty, in blocks of text; all of them as wide as the first one."""
    text, width = io.StringIO(), 0
    writer = csv.writer(text, lineterminator="\n")
    for number, row in enumerate(row for row in rows if any(cell is not None for cell in row)):
        cells = [_text(cell) for cell in row]
        if not width:
            width = max(place + 1 for place, cell in enumerate(cells) if cell)
        writer.writerow((cells + [""] * width)[:width])
        if number % ROWS_PER_BLOCK == ROWS_PER_BLOCK - 1:
            yield text.getvalue().encode()
            text.seek(0), text.truncate()
    yield text.getvalue().encode()


def _text(cell: Any) -> str:
    if cell is None or (isinstance(cell, str) and cell in _ERRORS):
        return ""
    if isinstance(cell, (datetime, date, time)):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)

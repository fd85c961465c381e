"""Excel files are read like the CSV files that hold the same."""

from __future__ import annotations

import sys
import zipfile
from datetime import datetime

import pytest

pytest.importorskip("typer", reason="needs the extra [cli]")

from safespn.exceptions import TableError
from safespn.tables import ColumnChoices, open_table, read_training_table

ROWS = [
    ["size", "colour", "seen", "fine", "kind", None],
    [1.5, "red", datetime(2024, 1, 2), True, "a", None],
    [2, "a, b", datetime(2024, 1, 3), False, "b", None],
    ["#N/A", "red", datetime(2024, 1, 4), True, None, None],
    [4.25, None, datetime(2024, 1, 5), False, "a", None],
    [None] * 6,
    [5.0, "a, b", datetime(2024, 1, 6), True, "b", None],
]


def workbook(path, sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra [excel]")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_read_like_the_same_csv(tmp_path):
    file = open_table(workbook(tmp_path / "t.xlsx", {"first": ROWS, "second": [["x"]]}))
    assert file.names == ["size", "colour", "seen", "fine", "kind"]
    assert file.notes == ["the first sheet, 'first', is read; not 'second'"]
    table = read_training_table(file, "kind", ColumnChoices())
    assert table.labels.tolist() == ["a", "b", "", "a", "b"]
    assert table.features["size"].tolist()[:2] == [1.5, 2.0]
    assert table.features["size"].isna().tolist() == [False, False, True, False, False]
    assert table.features["colour"].tolist()[:2] == ["red", "a, b"]
    assert table.column_types["seen"] == "ignored"
    assert table.column_types["fine"] == "categorical"


def test_long_sheets_are_copied_whole(tmp_path):
    rows = [["x", "y"], *([number, "ab"[number % 2]] for number in range(2_500))]
    table = read_training_table(
        open_table(workbook(tmp_path / "t.xlsx", {"s": rows})), "y", ColumnChoices(continuous=("x",))
    )
    assert table.features["x"].tolist() == list(range(2_500))


def test_an_archive_that_is_no_workbook_is_refused(tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra [excel]")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("a.txt", "x,y\n")
    with pytest.raises(TableError, match="damaged Excel file, or a zip archive of another kind; save it again"):
        open_table(tmp_path / "t.xlsx")
    (tmp_path / "cut.xlsx").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(TableError, match="damaged Excel file"):
        open_table(tmp_path / "cut.xlsx")


def test_without_openpyxl_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(TableError, match=r"pip install 'safespn\[excel\]', or save the table as CSV"):
        open_table(tmp_path / "t.xlsx")

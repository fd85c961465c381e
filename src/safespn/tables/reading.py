"""CSV and Parquet files as chunks of columns: texts, numbers, and kinds that no model takes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from safespn.exceptions import TableError
from safespn.tables.dialect import Dialect, find_dialect
from safespn.tables.temporary_copy import TemporaryCopy, copy_in_utf8, copy_of_stream
from safespn.tables.workbook import WORKBOOK_MARK, copy_of_workbook
from safespn.typing import AnyArray, IntArray

CHUNK_ROWS = 16_384
CHUNK_BYTES = 1 << 20
LARGEST_CELL_BYTES = 1 << 26
_PARQUET_MARK = b"PAR1"
PARQUET_SUFFIXES = (".parquet", ".pq")
_Batch = tuple[int, pa.RecordBatch, float]
"""Number of the first row, rows, and the share of the file that was read with them."""


@dataclass(frozen=True)
class TableFile:
    """A CSV or Parquet file that can be read.

    Parameters
    ----------
    path : Path
    kinds : dict
        Column names in the file's order, each "text", "number", "date" or "nested".
    dialect : Dialect, optional
        How a text file is written; None for Parquet.
    copy : TemporaryCopy, optional
        What is read instead of ``path``.
    remarks : tuple of str
        What else is unusual about the file.
    """

    path: Path
    kinds: dict[str, str]
    dialect: Dialect | None
    copy: TemporaryCopy | None = None
    remarks: tuple[str, ...] = ()

    @property
    def content(self) -> Path:
        """The file to read: seekable, in UTF-8 if it is text."""
        return self.path if self.copy is None else self.copy.path

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    @property
    def decimal(self) -> str:
        return self.dialect.decimal if self.dialect else "."

    def grouping(self, name: str) -> bool:
        """Whether points group thousands in a column of texts, by the beginning of the file."""
        return self.dialect is not None and name in self.dialect.grouping

    @property
    def notes(self) -> list[str]:
        """What is unusual about the file and was understood."""
        return [*self.remarks, *(self.dialect.notes if self.dialect else [])]

    @property
    def row_groups(self) -> list[int]:
        """Rows of each part that a Parquet file can be read by; none for a text file."""
        if self.dialect is not None:
            return []
        metadata = pa.parquet.read_metadata(_native(self.content))
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory, roughly: eight bytes for each cell of Parquet, the size of a text file."""
        if self.dialect is None:
            return 8 * sum(self.row_groups) * len(self.names)
        return self.content.stat().st_size

    def chunks(
        self,
        columns: Sequence[str] | None = None,
        progress: Callable[[float], None] | None = None,
        rows: IntArray | None = None,
    ) -> Iterator[dict[str, AnyArray]]:
        """Read some rows at a time; texts come as arrays of strings and None, numbers as float64.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns to read, in this order; all by default.
        progress : callable, optional
            Called after each chunk with the share of the file that was read.
        rows : array of shape (n_rows,), optional
            Numbers of the rows to read, increasing and counted from 0; all by default.
        """
        wanted = self.names if columns is None else list(columns)
        for start, batch, share in self._batches(wanted, rows):
            chosen = batch if rows is None else _chosen(batch, start, rows)
            if chosen.num_rows:
                yield {name: _cells(chosen.column(name), self.kinds[name]) for name in wanted}
            if progress is not None:
                progress(share)

    def read(self, columns: Sequence[str] | None = None, rows: IntArray | None = None) -> dict[str, AnyArray]:
        """Read rows at once, all by default; see :meth:`chunks`."""
        chunks = list(self.chunks(columns, rows=rows))
        if not chunks:
            raise no_rows(self.path)
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in columns or self.names}

    def _batches(self, columns: list[str], rows: IntArray | None) -> Iterator[_Batch]:
        batches = _parquet_batches(self.content, columns, rows)
        if self.dialect is not None:
            batches = _csv_batches(self.content, self.dialect, columns)
        try:
            yield from batches
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise TableError(f"{self.path}: {_plain(error)}") from error


def open_table(path: Path) -> TableFile:
    """Look at a file and find out how to read it.

    Raises
    ------
    TableError
        If it is not a table: empty, damaged, or with column names that occur twice.
    """
    if path.is_dir():
        raise TableError(f"{path}: this is a folder; expected a CSV, Parquet or Excel file")
    try:
        copy = copy_of_stream(path)
        content = path if copy is None else copy.path
        with content.open("rb") as file:
            mark = file.read(4)
    except FileNotFoundError:
        raise TableError(f"{path}: no such file; check the name and the folder") from None
    if mark == _PARQUET_MARK:
        return TableFile(path, _parquet_kinds(content, path), None, copy)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        raise TableError(
            f"{path}: not a Parquet file, whatever its name says; write it again, or rename it if it is CSV"
        )
    remarks: list[str] = []
    if mark == WORKBOOK_MARK:
        copy, remarks = copy_of_workbook(content, path)
        content = copy.path
    dialect = find_dialect(content, path)
    _check_names(path, dialect.names)
    if dialect.encoding not in ("utf-8", "utf-8-sig"):
        copy = copy_in_utf8(content, dialect.encoding, path)
    return TableFile(path, dict.fromkeys(dialect.names, "text"), dialect, copy, tuple(remarks))


def no_rows(path: Path) -> TableError:
    """What to say about a table without rows."""
    return TableError(f"{path}: the file has column names but no rows; add rows below the first line")


def _check_names(path: Path, names: Iterable[str]) -> None:
    positions: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in positions:
            raise TableError(
                f"{path}: {name!r} is the name of columns {positions[name]} and {position}; rename one of them"
            )
        positions[name] = position


def _chosen(batch: pa.RecordBatch, start: int, rows: IntArray) -> pa.RecordBatch:
    """Rows of a batch that are wanted, by their numbers in the file."""
    first, last = np.searchsorted(rows, [start, start + batch.num_rows])
    inside = rows[first:last] - start
    if len(inside) and inside[-1] - inside[0] + 1 > len(inside):
        return batch.take(pa.array(inside))
    return batch.slice(int(inside[0]) if len(inside) else 0, len(inside))


def _native(path: Path) -> pa.NativeFile:
    """Open a file without Python: a thread of Arrow that reads ahead and needs Python at exit aborts the process."""
    return pa.OSFile(os.fsencode(path))


def _csv_batches(path: Path, dialect: Dialect, columns: list[str]) -> Iterator[_Batch]:
    """Read a text file in blocks, larger ones from where a cell does not fit into one."""
    done, block_bytes = 0, CHUNK_BYTES
    while True:
        try:
            for start, batch, share in _csv_blocks(path, dialect, columns, block_bytes):
                stop = start + batch.num_rows
                if stop > done:
                    yield done, batch.slice(done - start), share
                    done = stop
            return
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block_bytes >= LARGEST_CELL_BYTES:
                raise
            block_bytes = LARGEST_CELL_BYTES


def _csv_blocks(path: Path, dialect: Dialect, columns: list[str], block_bytes: int) -> Iterator[_Batch]:
    if not dialect.has_rows:
        return
    read_options = pa.csv.ReadOptions(
        use_threads=False,  # otherwise errors do not say which row
        block_size=block_bytes,
        column_names=list(dialect.names),
        skip_rows=dialect.n_empty_lines,
        skip_rows_after_names=1,
    )
    parse_options = pa.csv.ParseOptions(
        delimiter=dialect.separator, newlines_in_values=True, ignore_empty_lines=len(dialect.names) > 1
    )
    convert_options = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(dialect.names, pa.string()), strings_can_be_null=False, include_columns=columns
    )
    file, size = _native(path), path.stat().st_size
    with pa.csv.open_csv(file, read_options, parse_options, convert_options) as reader:
        done = 0
        for batch in reader:
            for start in range(0, batch.num_rows, CHUNK_ROWS):
                yield done + start, batch.slice(start, CHUNK_ROWS), file.tell() / size
            done += batch.num_rows


def _parquet_batches(path: Path, columns: list[str], rows: IntArray | None) -> Iterator[_Batch]:
    # A buffer lets Arrow read on as it goes, instead of whole row groups at once.
    with pa.parquet.ParquetFile(_native(path), buffer_size=CHUNK_BYTES, pre_buffer=False) as file:
        n_rows = file.metadata.num_rows
        stop = 0
        for group in range(file.metadata.num_row_groups):
            start, stop = stop, stop + file.metadata.row_group(group).num_rows
            if rows is not None and np.searchsorted(rows, start) == np.searchsorted(rows, stop):
                continue
            for batch in file.iter_batches(CHUNK_ROWS, row_groups=[group], columns=columns):
                yield start, batch, (start + batch.num_rows) / n_rows
                start += batch.num_rows
                if rows is not None and start > rows[-1]:
                    return


def _parquet_kinds(path: Path, name: Path) -> dict[str, str]:
    """Kinds of the columns of a Parquet file; ``name`` is named in errors."""
    try:
        schema = pa.parquet.read_schema(_native(path))
    except pa.ArrowInvalid as error:
        raise TableError(f"{name}: the Parquet file is damaged or truncated; copy or write it again") from error
    _check_names(name, schema.names)
    return {field.name: _kind(field.type) for field in schema}


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_temporal(kind):
        return "date"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or kind in (pa.string(), pa.large_string()):
        return "text"
    return "text" if kind == pa.string_view() else "nested"


def _cells(column: pa.Array, kind: str) -> AnyArray:
    if kind in ("date", "nested"):
        return np.full(len(column), None, dtype=object)  # not used
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == "number":
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(column.type):
        return np.array([None if cell is None else str(cell) for cell in column.to_pylist()], dtype=object)
    return np.asarray(column.cast(pa.string()).to_numpy(zero_copy_only=False))


def _plain(error: Exception) -> str:
    """Say in a reader's words what Arrow found."""
    message = " ".join(str(error).split())
    where = re.search(r"Row #(\d+)", message)
    line = f"line {where[1]}: " if where else ""
    wrong_width = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if wrong_width:
        return (
            f"{line}{wrong_width[2]} cells where the first line has {wrong_width[1]} names; "
            "quote cells that hold the separator, or correct the line"
        )
    if "UTF8" in message:
        return f"{line}letters that are not UTF-8; save the file as UTF-8"
    if "straddl" in message:
        limit = f"{LARGEST_CELL_BYTES >> 20} MB"
        return f"a quoted cell does not end, or a row is longer than {limit}; look for an unmatched quote"
    return f"the file is damaged or truncated ({message[:120]}); copy or write it again"

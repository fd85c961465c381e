"""CSV and Parquet files as chunks of columns: texts, numbers, and kinds that no model takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from safespn.tables.dialect import Dialect, find_dialect
from safespn.tables.errors import TableError
from safespn.typing import AnyArray, IntArray

CHUNK_ROWS = 16_384
CHUNK_BYTES = 1 << 20
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
    """

    path: Path
    kinds: dict[str, str]
    dialect: Dialect | None

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    @property
    def decimal(self) -> str:
        return self.dialect.decimal if self.dialect else "."

    @property
    def notes(self) -> list[str]:
        """What is unusual about the file and was understood."""
        return self.dialect.notes if self.dialect else []

    @property
    def row_groups(self) -> list[int]:
        """Rows of each part that a Parquet file can be read by; none for a text file."""
        if self.dialect is not None:
            return []
        metadata = pa.parquet.read_metadata(self.path)
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory, roughly: eight bytes for each cell of Parquet, the size of a text file."""
        return self.path.stat().st_size if self.dialect is not None else 8 * sum(self.row_groups) * len(self.names)

    def chunks(
        self,
        columns: Sequence[str] | None = None,
        tell: Callable[[float], None] | None = None,
        rows: IntArray | None = None,
    ) -> Iterator[dict[str, AnyArray]]:
        """Read some rows at a time; texts come as arrays of strings and None, numbers as float64.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns to read, in this order; all by default.
        tell : callable, optional
            Called after each chunk with the share of the file that was read.
        rows : array of shape (n_rows,), optional
            Numbers of the rows to read, increasing and counted from 0; all by default.
        """
        wanted = self.names if columns is None else list(columns)
        for start, batch, share in self._batches(wanted, rows):
            chosen = batch if rows is None else _chosen(batch, start, rows)
            if chosen.num_rows:
                yield {name: _cells(chosen.column(name), self.kinds[name]) for name in wanted}
            if tell is not None:
                tell(share)

    def read(self, columns: Sequence[str] | None = None, rows: IntArray | None = None) -> dict[str, AnyArray]:
        """Read rows at once, all by default; see :meth:`chunks`."""
        chunks = list(self.chunks(columns, rows=rows))
        if not chunks:
            raise no_rows(self.path)
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in columns or self.names}

    def _batches(self, columns: list[str], rows: IntArray | None) -> Iterator[_Batch]:
        batches = _parquet_batches(self.path, columns, rows)
        if self.dialect is not None:
            batches = _csv_batches(self.path, self.dialect, columns)
        try:
            yield from batches
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise TableError(f"{self.path}: {_plain(error)}") from error


def open_table(path: Path) -> TableFile:
    """Look at a file and tell how to read it.

    Raises
    ------
    TableError
        If it is not a table: empty, damaged, or with column names that occur twice.
    """
    if path.is_dir():
        raise TableError(f"{path}: this is a folder; expected a CSV or Parquet file")
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == _PARQUET_MARK
    except FileNotFoundError:
        raise TableError(f"{path}: no such file; check the name and the folder") from None
    if is_parquet:
        return TableFile(path, _parquet_kinds(path), None)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        raise TableError(
            f"{path}: not a Parquet file, whatever its name says; write it anew, or rename it if it is CSV"
        )
    dialect = find_dialect(path)
    _check_names(path, dialect.names)
    return TableFile(path, dict.fromkeys(dialect.names, "text"), dialect)


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


def _csv_batches(path: Path, dialect: Dialect, columns: list[str]) -> Iterator[_Batch]:
    if not dialect.has_rows:
        return
    read_options = pa.csv.ReadOptions(
        use_threads=False,  # otherwise errors do not say which row
        block_size=CHUNK_BYTES,
        encoding="utf-8" if dialect.encoding == "utf-8-sig" else dialect.encoding,
        column_names=list(dialect.names),
        skip_rows=dialect.header_line,
    )
    parse_options = pa.csv.ParseOptions(
        delimiter=dialect.separator, newlines_in_values=True, ignore_empty_lines=len(dialect.names) > 1
    )
    convert_options = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(dialect.names, pa.string()), strings_can_be_null=False, include_columns=columns
    )
    with path.open("rb") as file, pa.csv.open_csv(file, read_options, parse_options, convert_options) as reader:
        size = path.stat().st_size
        done = 0
        for batch in reader:
            for start in range(0, batch.num_rows, CHUNK_ROWS):
                yield done + start, batch.slice(start, CHUNK_ROWS), file.tell() / size
            done += batch.num_rows


def _parquet_batches(path: Path, columns: list[str], rows: IntArray | None) -> Iterator[_Batch]:
    # A buffer lets Arrow read on as it goes, instead of whole row groups at once.
    with pa.parquet.ParquetFile(path, buffer_size=CHUNK_BYTES, pre_buffer=False) as file:
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


def _parquet_kinds(path: Path) -> dict[str, str]:
    try:
        schema = pa.parquet.read_schema(path)
    except pa.ArrowInvalid as error:
        raise TableError(f"{path}: the Parquet file is damaged or truncated; copy or write it anew") from error
    _check_names(path, schema.names)
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
        return np.full(len(column), None, dtype=object)  # nobody looks at them
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
            "quote cells that hold the separator, or mend the line"
        )
    if "UTF8" in message:
        return f"{line}letters that are not UTF-8; save the file as UTF-8"
    if "straddl" in message:
        return "a quoted cell does not end; look for a quote without its partner"
    return f"the file is damaged or truncated ({message[:120]}); copy or write it anew"

"""Tables of results, written in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from safespn.tables.reading import PARQUET_SUFFIXES

FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How cells begin that spreadsheets compute when they open a CSV file."""


class _EscapingWriter:
    """A writer of record batches in which no name of a column and no text begins like a formula."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema

    def __enter__(self) -> _EscapingWriter:
        self._writer.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.__exit__(*error)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        columns = [_escaped(column) if _is_text(column.type) else column for column in batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


def result_writer(
    file: IO[bytes], schema: pa.Schema, path: Path | None = None, *, escape_formulas: bool = False
) -> Any:
    """Make a writer of record batches to an open file.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the batches that will be given.
    path : Path, optional
        The file is Parquet if this name says so, CSV otherwise.
    escape_formulas : bool
        Put an apostrophe before names of columns and texts that a spreadsheet would compute.
    """
    if escape_formulas:
        # Without metadata, in which pandas repeats the names.
        schema = pa.schema([field.with_name(without_formula(field.name)) for field in schema])
        return _EscapingWriter(result_writer(file, schema, path), schema)
    if path is not None and path.suffix.lower() in PARQUET_SUFFIXES:
        return pa.parquet.ParquetWriter(file, schema)
    return pa.csv.CSVWriter(file, schema)


def without_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    return f"'{text}" if text.startswith(FORMULA_BEGINNINGS) else text


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _escaped(column: pa.Array) -> pa.Array:
    return pa.array([None if cell is None else without_formula(cell) for cell in column.to_pylist()], column.type)

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


def result_writer(file: IO[bytes], schema: pa.Schema, path: Path | None = None) -> Any:
    """Make a writer of record batches to an open file: Parquet if the name of ``path`` says so, CSV otherwise."""
    if path is not None and path.suffix.lower() in PARQUET_SUFFIXES:
        return pa.parquet.ParquetWriter(file, schema)
    return pa.csv.CSVWriter(file, schema)


def without_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    return f"'{text}" if text.startswith(FORMULA_BEGINNINGS) else text

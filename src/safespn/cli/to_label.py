"""Files with rows for somebody to label: those that ``audit`` draws and ``suggest`` chooses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from safespn.foundation.atomic_files import atomic_open
from safespn.tables import TableFile, result_writer
from safespn.typing import IntArray

ROW, WHY, LABEL = "row", "why", "label"


def write_rows(
    file: TableFile,
    rows: IntArray,
    output: Path,
    reasons: list[str] | None = None,
    *,
    escape_formulas: bool = False,
) -> None:
    """Write rows with their numbers, counted from 1, reasons if there are any, and an empty column for the label."""
    added = (ROW, LABEL) if reasons is None else (ROW, WHY, LABEL)
    cells = read_rows(file, rows)
    shown = cells.rename(columns={name: f"{name} of the table" for name in added if name in file.kinds})
    frame = pd.concat([pd.DataFrame({ROW: rows + 1}), shown], axis=1)
    if reasons is not None:
        frame[WHY] = pd.Series(reasons, dtype=object)
    frame[LABEL] = pd.Series([""] * len(frame), dtype=object)
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    with (
        atomic_open(output) as stream,
        result_writer(stream, batch.schema, output, escape_formulas=escape_formulas) as writer,
    ):
        writer.write_batch(batch)


def read_rows(file: TableFile, rows: IntArray) -> pd.DataFrame:
    """Read some rows as the file has them, in the order given; no columns if there are no rows."""
    if not len(rows):
        return pd.DataFrame(index=pd.RangeIndex(0))
    order = np.argsort(rows)
    cells = file.read(rows=rows[order])
    return pd.DataFrame({name: cells[name] for name in file.names}).iloc[np.argsort(order)].reset_index(drop=True)

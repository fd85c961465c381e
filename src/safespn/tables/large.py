"""Tables that are too large for memory: types decided on a sample, rows read from the file block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from safespn.exceptions import TableError
from safespn.foundation.column_types import MOST_CATEGORIES, ColumnType
from safespn.foundation.stratified import share_places
from safespn.tables.reading import TableFile, no_rows, open_table
from safespn.tables.training import (
    UNLABELLED,
    ColumnChoices,
    TrainingTable,
    check_labels,
    checked_choices,
    decided_table,
    features_of,
    labels_of,
    look_at,
)
from safespn.typing import AnyArray, IntArray

SAMPLE_ROWS = 100_000
"""Rows that decide the types of columns."""
REPORT_ROWS = 10_000
"""Rows that a report is made from."""
ROWS_PER_BLOCK = 500_000
CELLS_PER_BLOCK = 5_000_000
"""Blocks of tables with many columns have fewer rows."""
MOST_SLICES = 4
"""Blocks that a row group is cut into at most: each is read from the beginning of its group."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LargeTable(TrainingTable):
    """A table whose rows stay in a file; ``features`` is a Dask data frame, labels are in memory.

    Parameters
    ----------
    blocks : list of range
        Numbers of the rows of each partition.
    sample : TrainingTable
        The rows that decided the types of columns.
    sampled_rows : array of shape (n_sampled,)
        Their numbers in the file, counted from 0.
    folder : Path
        For temporary files, and the caller's to delete.
    copy : Path, optional
        A Parquet file of the features in it that is read instead.
    """

    blocks: list[range]
    sample: TrainingTable
    sampled_rows: IntArray
    folder: Path
    copy: Path | None = None

    @property
    def targets(self) -> Any:
        """Labels as a Dask array in the blocks of the features.

        Strings of fixed width are compared much faster than objects, but only those of one block are made at a time.
        """
        width = max(map(len, pd.unique(self.labels)))
        return da.from_array(self.labels, chunks=(tuple(map(len, self.blocks)),), name=False).astype(f"U{width}")

    def for_report(self, seed: int) -> tuple[TrainingTable, IntArray]:
        """Draw rows for a report, stratified by class.

        Returns
        -------
        table : TrainingTable
            Its features have the numbers of the rows as their index.
        places : array of shape (n_unlabelled,)
            Where its unlabelled rows are among all unlabelled rows.
        """
        places = _draw(self.sample.labels, REPORT_ROWS, seed)
        rows = self.sampled_rows[places]
        size = f"{len(rows)} of {len(self.labels)} rows"
        table = replace(
            self.sample,
            source=f"{self.source}, a sample of {size}",
            features=self.sample.features.iloc[places].set_axis(rows),
            labels=self.sample.labels[places],
            ids=None if self.sample.ids is None else self.sample.ids[places],
            notes=[*self.notes, f"this report is made from a sample of {size}, stratified by class; the fit saw all"],
        )
        among_unlabelled = np.cumsum(~self.is_labelled) - 1
        return table, among_unlabelled[rows[~table.is_labelled]]


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads rows of a file as features of types that are known."""

    file: TableFile
    types: list[ColumnType]
    choices: ColumnChoices
    stamp: tuple[int, int]

    @property
    def names(self) -> list[str]:
        """Columns that are used."""
        return [column.name for column in self.types if column.kind != "ignored"]

    def __call__(self, number: int, block: range) -> pd.DataFrame:
        """Read one block."""
        frames = self.frames(f"{self.file.path}: block {number}", np.arange(block.start, block.stop))
        return pd.concat(frames, ignore_index=True)

    def frames(self, source: str, rows: IntArray) -> Iterator[pd.DataFrame]:
        """Read some rows a chunk at a time; ``source`` is named in errors."""
        done = 0
        if stamp_of(self.file) != self.stamp:
            raise TableError(f"{source}: the file changed during the fit; fit again when it is complete")
        for chunk in self.file.chunks(self.names, rows=rows):
            length = len(next(iter(chunk.values())))
            cells = look_at(self.file, chunk, self.choices, rows[done : done + length])
            yield features_of(cells, self.types, source)
            done += length


@dataclass(frozen=True, eq=False)
class _Copy:
    """Features as a Parquet file with a row group for each block: cells are decoded once, not in every pass."""

    path: Path
    texts: list[str]

    @classmethod
    def write(cls, path: Path, reader: _Reader, n_rows: int, size: int) -> _Copy:
        """Write all rows in row groups of up to ``size`` rows."""
        categorical = [column.name for column in reader.types if column.kind == "categorical"]
        texts = [column.name for column in reader.types if column.name in categorical and not column.of_numbers]
        schema = pa.schema([(each.name, pa.string() if each.name in texts else pa.float64()) for each in reader.types])
        seen: dict[str, set[Any]] = {name: set() for name in categorical if name not in reader.choices.categorical}
        with pa.parquet.ParquetWriter(path, schema) as writer:
            gathered: list[pa.RecordBatch] = []
            for frame in reader.frames(str(reader.file.path), np.arange(n_rows)):
                for name, categories in seen.items():
                    categories.update(frame[name].dropna().unique())
                _check_categories(seen, reader)
                if gathered and sum(batch.num_rows for batch in gathered) + len(frame) > size:
                    writer.write_table(pa.Table.from_batches(gathered))
                    gathered = []
                gathered.append(pa.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False))
            writer.write_table(pa.Table.from_batches(gathered))
        return cls(path, texts)

    def __call__(self, number: int, block: range) -> pd.DataFrame:
        """Read one block."""
        with pa.parquet.ParquetFile(self.path, read_dictionary=self.texts) as file:
            frame: pd.DataFrame = file.read_row_group(number).to_pandas()
        return frame


def _check_categories(seen: dict[str, set[Any]], reader: _Reader) -> None:
    """Check that columns are categorical beyond the sample too."""
    for column in reader.types:
        if len(seen.get(column.name, ())) > MOST_CATEGORIES:
            raise TableError(
                f"{reader.file.path}: column {column.name!r} has more than {MOST_CATEGORIES} different values, but "
                f"{column.reason} in the sample that decided its type; "
                f"pass --continuous, --categorical or --ignore {column.name!r}"
            )


def read_large_table(file: TableFile, target: str, choices: ColumnChoices, folder: Path, seed: int) -> LargeTable:
    """Decide the types of columns on a sample, and promise the rows in blocks.

    Parameters
    ----------
    folder : Path
        Where a copy of the features is written if the file would be slow to read block by block.
    seed : int
        Of the sample.

    Raises
    ------
    TableError
        If nothing can be learned from it.
    """
    source = str(file.path)
    stamp = stamp_of(file)
    choices = checked_choices(choices, target, file)
    parts = [labels_of(file, chunk[target], target, choices) for chunk in file.chunks([target])]
    if not parts:
        raise no_rows(file.path)
    labels: AnyArray = np.concatenate(parts)
    check_labels(labels, source, target, choices.unlabelled)
    rows = _draw(labels, SAMPLE_ROWS, seed)
    names = [name for name in file.names if name != target]
    sample = decided_table(file, target, file.read(names, rows), labels[rows], choices, rows)
    reader = _Reader(file, sample.columns, choices, stamp)
    size = max(1, min(ROWS_PER_BLOCK, CELLS_PER_BLOCK // len(reader.names)))
    blocks, copy = divide(file.row_groups, size), None
    read: _Reader | _Copy = reader
    if _needs_copy(file, sample, size):
        copy = folder / "rows.parquet"
        read = _Copy.write(copy, reader, len(labels), size)
        edges = np.cumsum([0, *open_table(copy).row_groups]).tolist()
        blocks = [range(start, stop) for start, stop in pairwise(edges)]
    features = dd.from_map(read, range(len(blocks)), blocks, meta=read(0, blocks[0]).iloc[:0])
    return LargeTable(
        source,
        target,
        features,
        labels,
        sample.columns,
        choices,
        sample.notes,
        blocks=blocks,
        sample=sample,
        sampled_rows=rows,
        folder=folder,
        copy=copy,
    )


def stamp_of(file: TableFile) -> tuple[int, int]:
    """What changes when a file is written: its time, in nanoseconds, and its size, in bytes."""
    found = file.content.stat()
    return found.st_mtime_ns, found.st_size


def _needs_copy(file: TableFile, sample: TrainingTable, size: int) -> bool:
    """Whether blocks would be slow to read again and again: text, categories, or a small part of a row group each."""
    is_text = [file.kinds[name] == "text" for name in sample.used_columns]
    is_categorical = [column.kind == "categorical" for column in sample.columns]
    return any(is_text) or any(is_categorical) or max(file.row_groups, default=0) > MOST_SLICES * size


def divide(row_groups: Sequence[int], size: int) -> list[range]:
    """Divide rows into blocks of at most ``size`` rows: several row groups each, or equal slices of one."""
    blocks: list[range] = []
    end = 0
    for n_rows in row_groups:
        edges = np.linspace(end, end + n_rows, -(-n_rows // size) + 1).astype(int).tolist()
        for start, stop in pairwise(edges):
            if blocks and stop - blocks[-1].start <= size:
                blocks[-1] = range(blocks[-1].start, stop)
            else:
                blocks.append(range(start, stop))
        end += n_rows
    return blocks


def _draw(labels: AnyArray, size: int, seed: int) -> IntArray:
    """Draw rows, stratified by class; labelled rows get at most half of the places if there are others."""
    codes, values = pd.factorize(labels)
    unlabelled = len(values)
    codes[labels == UNLABELLED] = unlabelled
    counts = np.bincount(codes, minlength=unlabelled + 1)
    generator = np.random.default_rng(seed)
    drawn = [
        generator.choice(np.nonzero(codes == code)[0], n_drawn, replace=False)
        for code, n_drawn in enumerate(share_places(counts, size).tolist())
    ]
    return np.sort(np.concatenate(drawn))

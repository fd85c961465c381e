"""Rows for the measurements: Gaussian clusters that belong to classes, one row in a hundred labelled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_CLUSTERS = 30
SHARE_LABELLED = 0.01
SETTINGS = {"network": "deep", "univariate": True, "max_depth": 4, "sample_size": 10_000, "random_state": 0}
"""With 20 columns and 2 classes a network of about 1,000 edges, 500 per class."""


def rows(first: int, n_rows: int, n_columns: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows ``first`` to ``first + n_rows`` of an endless table, their classes, and their labels (-1 where unknown).

    ``first`` is the seed of the draws: blocks of a table can be made apart from each other.
    """
    centres = np.random.default_rng(0).normal(0, 1.2, (N_CLUSTERS, n_columns))
    generator = np.random.default_rng([1, first])
    cluster = generator.integers(N_CLUSTERS, size=n_rows)
    table = generator.normal(size=(n_rows, n_columns))
    table += centres[cluster]
    classes = cluster % n_classes
    return table, classes, np.where(generator.random(n_rows) < SHARE_LABELLED, classes, -1)


def write_parquet(
    path: Path, n_rows: int, n_columns: int, rows_per_block: int = 500_000, kind: str = "float64"
) -> None:
    """Write a table to one Parquet file, a row group for each block; column ``y`` has the labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{column}" for column in range(n_columns)]
    schema = pa.schema([*((name, pa.type_for_alias(kind)) for name in names), ("y", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_rows, rows_per_block):
            table, _, labels = rows(first, min(rows_per_block, n_rows - first), n_columns)
            columns = [*(column.astype(kind) for column in table.T), labels]
            writer.write_table(pa.table(columns, schema=schema))

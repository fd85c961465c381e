"""Tables in files, as people have them: read with their quirks, types decided and explained, results written whole."""

from __future__ import annotations

from safespn.tables.column_types import ColumnType
from safespn.tables.errors import TableError
from safespn.tables.prediction import columns_for, features_for
from safespn.tables.reading import TableFile, open_table
from safespn.tables.training import UNLABELLED, ColumnChoices, TrainingTable, read_training_table
from safespn.tables.writing import result_writer

__all__ = [
    "UNLABELLED",
    "ColumnChoices",
    "ColumnType",
    "TableError",
    "TableFile",
    "TrainingTable",
    "columns_for",
    "features_for",
    "open_table",
    "read_training_table",
    "result_writer",
]

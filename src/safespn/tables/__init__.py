"""Tables in files, as people have them: read with their quirks, types decided and explained, results written whole."""

from __future__ import annotations

from safespn.exceptions import TableError
from safespn.foundation.column_types import ColumnType
from safespn.tables.prediction import columns_for, features_for
from safespn.tables.reading import TableFile, open_table
from safespn.tables.training import UNLABELLED, ColumnChoices, TrainingTable, check_id, read_training_table
from safespn.tables.writing import result_writer

__all__ = [
    "UNLABELLED",
    "ColumnChoices",
    "ColumnType",
    "TableError",
    "TableFile",
    "TrainingTable",
    "check_id",
    "columns_for",
    "features_for",
    "open_table",
    "read_training_table",
    "result_writer",
]

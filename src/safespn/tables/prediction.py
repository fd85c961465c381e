"""From rows of a file to the features that a fitted classifier expects, whatever the file calls their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from safespn.classifier import SafeSPNClassifier
from safespn.tables.cells import Cells, cells_of
from safespn.tables.errors import TableError
from safespn.tables.reading import TableFile
from safespn.typing import AnyArray, FloatArray


def columns_for(classifier: SafeSPNClassifier, file: TableFile) -> list[str]:
    """Name the columns of a file that a classifier needs, in its order; other columns do not matter."""
    known = getattr(classifier, "feature_names_in_", None)
    if known is None:
        if len(file.names) != classifier.n_features_in_:
            raise TableError(
                f"{file.path}: {len(file.names)} columns, but the model was fitted to a table of "
                f"{classifier.n_features_in_} columns without names; give exactly those"
            )
        return file.names
    names = [str(name) for name in known]
    gone = [name for name in names if name not in file.kinds]
    if gone:
        rest = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise TableError(f"{file.path}: no column {gone[0]!r}{rest}; the model needs the columns it was fitted to")
    for name in names:
        if file.kinds[name] in ("date", "nested"):
            raise TableError(f"{file.path}: column {name!r} holds {file.kinds[name]}s; the model was fitted to cells")
    return names


def features_for(
    classifier: SafeSPNClassifier,
    file: TableFile,
    chunk: dict[str, AnyArray],
    missing: Sequence[str] = (),
    start: int = 0,
) -> pd.DataFrame:
    """Turn rows of a file into features of the types that the classifier was fitted to.

    Parameters
    ----------
    chunk : dict
        Cells of the columns that :func:`columns_for` names.
    missing : sequence of str
        Texts that mark a missing cell besides the usual ones.
    start : int
        Number of the chunk's first row, counted from 0.

    Raises
    ------
    TableError
        If a cell is not a number in a column of numbers, or infinite.
    """
    features: dict[str, Any] = {}
    for (name, column), categories in zip(chunk.items(), classifier._encoder.categories, strict=True):
        cells = cells_of(column, file.kinds[name], missing, file.decimal)
        if categories is None:
            features[name] = _numbers(cells, name, file, start)
        else:
            features[name] = _categories(cells, categories)
    frame = pd.DataFrame(features)
    if not hasattr(classifier, "feature_names_in_"):
        frame.columns = pd.RangeIndex(frame.shape[1])
    return frame


def _numbers(cells: Cells, name: str, file: TableFile, start: int) -> FloatArray:
    wrong = cells.is_text | np.isinf(cells.numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"{file.path}: column {name!r}, row {start + row + 1}: {cells.texts[row]!r} is no finite number, but the "
            f"model was fitted to numbers; pass --missing {cells.texts[row]!r} if it marks a missing cell"
        )
    return cells.numbers


def _categories(cells: Cells, categories: list[Any]) -> pd.Series:
    """Cells as the classifier knows its categories, which may be numbers or booleans if it was fitted in Python."""
    texts = pd.Series(cells.categories(), dtype=object)
    if all(isinstance(category, str) for category in categories):
        return texts
    known = {str(category): category for category in categories}
    return texts.map(lambda text: known.get(text, text)).astype(object)

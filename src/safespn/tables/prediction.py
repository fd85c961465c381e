"""From rows of a file to the features that a fitted classifier expects, whatever the file calls their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from safespn.classifier import SafeSPNClassifier
from safespn.exceptions import TableError
from safespn.tables.cells import Cells, cells_of
from safespn.tables.dialect import on_one_line
from safespn.tables.reading import TableFile
from safespn.typing import AnyArray, FloatArray


def columns_for(classifier: SafeSPNClassifier, file: TableFile) -> list[str]:
    """Name the columns of a file that a classifier needs, in its order; other and ignored columns do not matter."""
    known = getattr(classifier, "feature_names_in_", None)
    if known is None:
        if len(file.names) != classifier.n_features_in_:
            raise TableError(
                f"{file.path}: {len(file.names)} columns, but the model was fitted to a table of "
                f"{classifier.n_features_in_} columns without names; give exactly those"
            )
        return file.names
    used = [name for name, kind in zip(known, classifier.column_types_, strict=True) if kind != "ignored"]
    names = [name if name in file.kinds else on_one_line(name) for name in map(str, used)]
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
    encoder, has_names = classifier._encoder, hasattr(classifier, "feature_names_in_")
    names = iter(chunk)
    features: dict[int, Any] = {}
    for number, (kind, categories) in enumerate(zip(encoder.types, encoder.categories, strict=True)):
        name = None if kind == "ignored" and has_names else next(names)
        if name is None or kind == "ignored":
            features[number] = np.full(len(next(iter(chunk.values()))), np.nan)
            continue
        cells = cells_of(chunk[name], file.kinds[name], missing, file.decimal, grouping=file.grouping(name))
        if categories is None:
            features[number] = _numbers(cells, name, file, start)
        else:
            features[number] = _categories(cells, categories)
    frame = pd.DataFrame(features)
    frame.columns = pd.Index(getattr(classifier, "feature_names_in_", frame.columns))
    return frame


def _numbers(cells: Cells, name: str, file: TableFile, start: int) -> FloatArray:
    wrong = cells.is_text | np.isinf(cells.numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"{file.path}: column {name!r}, row {start + row + 1}: {cells.texts[row]!r} is not a finite number, but "
            f"the model was fitted to numbers; pass --missing {cells.texts[row]!r} if it marks a missing cell"
        )
    return cells.numbers


def _categories(cells: Cells, categories: list[Any]) -> pd.Series:
    """Cells as the classifier knows its categories, which may be numbers or booleans if it was fitted in Python."""
    texts = pd.Series(cells.categories(), dtype=object)
    if all(isinstance(category, str) for category in categories):
        return texts
    known = {str(category): category for category in categories}
    return texts.map(lambda text: known.get(text, text)).astype(object)

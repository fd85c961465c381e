"""From rows of a file to the features that a fitted classifier expects, whatever the file calls their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from safespn.classifier import SafeSPNClassifier
from safespn.tables.cells import cells_of
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
    classifier: SafeSPNClassifier, file: TableFile, chunk: pd.DataFrame, missing: Sequence[str] = ()
) -> pd.DataFrame:
    """Turn rows of a file into features of the types that the classifier was fitted to.

    Raises
    ------
    TableError
        If a cell is not a number in a column of numbers, or infinite.
    """
    features: dict[str, Any] = {}
    for name, categories in zip(chunk.columns, classifier._encoder.categories, strict=True):
        cells = cells_of(chunk[name], file.kinds[name], missing, file.decimal)
        if categories is None:
            features[name] = _numbers(cells.numbers, cells.texts, name, file, int(chunk.index[0]))
        else:
            by_text = {str(category): category for category in categories}
            features[name] = _categories(cells.categories(), by_text)
    frame = pd.DataFrame(features)
    if not hasattr(classifier, "feature_names_in_"):
        frame.columns = pd.RangeIndex(frame.shape[1])
    return frame


def _numbers(numbers: FloatArray, texts: AnyArray, name: str, file: TableFile, start: int) -> FloatArray:
    wrong = (np.isnan(numbers) & (texts != "")) | np.isinf(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"{file.path}: column {name!r}, row {start + row + 1}: {texts[row]!r} is no finite number, but the model "
            f"was fitted to numbers; pass --missing {texts[row]!r} if it marks a missing cell"
        )
    return numbers


def _categories(texts: AnyArray, by_text: dict[str, Any]) -> pd.Series:
    return pd.Series([None if text is None else by_text.get(text, text) for text in texts], dtype=object)

"""Rows to label as tasks of Label Studio: a file that it imports, and the interface that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from safespn.answers.suggestion import Suggestions
from safespn.typing import AnyArray

TABLE, CHOICE = "row", "label"


def tasks(suggestions: Suggestions, cells: Sequence[Mapping[str, Any]], names: Sequence[Any]) -> list[dict[str, Any]]:
    """Make one task per suggested row, with the predicted class as its pre-annotation.

    Parameters
    ----------
    suggestions : Suggestions
    cells : sequence of mappings
        Columns and cells of each suggested row.
    names : sequence
        What the rows are called, such as their numbers.
    """
    return [
        {
            "data": {TABLE: {str(key): _plain(value) for key, value in row.items()}, "name": str(name), "why": reason},
            "predictions": [
                {
                    "model_version": "safespn",
                    "score": float(probability),
                    "result": [
                        {
                            "from_name": CHOICE,
                            "to_name": TABLE,
                            "type": "choices",
                            "value": {"choices": [str(label)]},
                        }
                    ],
                }
            ],
        }
        for row, name, reason, label, probability in zip(
            cells, names, suggestions.reasons, suggestions.labels, suggestions.probabilities, strict=True
        )
    ]


def interface(classes: AnyArray) -> str:
    """Return the labelling interface for such tasks, to be pasted into the settings of a project."""
    choices = "\n".join(f"    <Choice value={quoteattr(str(name))}/>" for name in classes)
    return (
        f'<View>\n  <Header value="$why"/>\n  <Table name="{TABLE}" value="${TABLE}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{TABLE}" choice="single">\n{choices}\n  </Choices>\n</View>\n'
    )


def _plain(value: Any) -> Any:
    """Turn a cell into what JSON knows; missing cells into null."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or str(value) in ("<NA>", "NaT"):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)

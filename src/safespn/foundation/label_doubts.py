"""Labels that are probably not meant as classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from safespn.typing import AnyArray, IntArray

WORDS_FOR_NO_LABEL = frozenset(
    {"?", "-", "na", "n/a", "nan", "none", "null", "missing", "unknown", "unlabeled", "unlabelled", "not known", "tbd"}
)
MOST_CLASSES = 20
"""From more classes than this on, numbers may be a quantity."""
FEWEST_ROWS_PER_CLASS = 5


def label_doubts(
    classes: AnyArray, counts: IntArray, n_rows: int, how_to_mark: Callable[[str], str] = "unlabeled={!r}".format
) -> list[str]:
    """Say which classes look like a marker of unlabelled rows, and whether they look like a quantity.

    Parameters
    ----------
    classes : array of shape (n_classes,)
    counts : array of shape (n_classes,)
        Rows of each class.
    n_rows : int
        Rows with and without a label.
    how_to_mark : callable
        Gives the setting that makes a label a marker.
    """
    doubts = []
    for name, count in zip(classes.tolist(), counts.tolist(), strict=True):
        if not isinstance(name, str):
            continue
        is_word = name.strip().casefold() in WORDS_FOR_NO_LABEL and 2 * count > n_rows
        if is_word or name == "-1":
            doubts.append(
                f"{name!r} is taken as a class ({count} of {n_rows} rows); if it marks unlabelled rows, pass "
                f"{how_to_mark(name)}"
            )
    if _is_quantity(classes, counts):
        doubts.append(
            f"the labels are {len(classes)} different numbers, which look like a quantity rather than classes; this is "
            "classification, not regression: group the values, or use another method"
        )
    return doubts


def _is_quantity(classes: AnyArray, counts: IntArray) -> bool:
    """Whether labels are many numbers, except where they count up from 0 or 1 with several rows each, as codes do."""
    if len(classes) <= MOST_CLASSES or classes.dtype.kind == "b":
        return False
    try:
        numbers = np.sort(classes.astype(np.float64))
    except ValueError:
        return False
    are_codes = numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())
    return not (are_codes and counts.min() >= FEWEST_ROWS_PER_CLASS)

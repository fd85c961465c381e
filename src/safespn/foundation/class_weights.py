"""How much labelled rows of each class count."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from safespn.typing import AnyArray, FloatArray, IntArray

ClassWeight = str | Mapping[Any, float] | None
"""None, "balanced", or a mapping from classes to weights."""


def class_factors(class_weight: ClassWeight, classes: AnyArray, counts: IntArray) -> FloatArray | None:
    """Factor of the weight of labelled rows of each class, shape (n_classes,); None if all are one.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping
        "balanced" gives every class the same total; classes that a mapping does not name keep their weight.
    counts : array of shape (n_classes,)
        Labelled rows of each class.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1.0)), dtype=np.float64)
    names = classes.tolist()
    for name, weight in class_weight.items():
        if name not in names:
            known = ", ".join(map(repr, names))
            raise ValueError(
                f"class_weight names the class {name!r}, which has no labelled row; expected some of {known}"
            )
        if not isinstance(weight, Real) or not 0 < float(weight) < float("inf"):
            raise ValueError(f"class_weight gives class {name!r} the weight {weight!r}; expected a positive number")
    return np.array([float(class_weight.get(name, 1.0)) for name in names])


def times_factors(weights: FloatArray | None, codes: IntArray, factors: FloatArray | None) -> FloatArray | None:
    """Multiply row weights by the factors of the rows' classes; unlabelled rows, of code -1, keep theirs."""
    if factors is None:
        return weights
    of_rows = np.append(factors, 1.0)[codes]
    return of_rows if weights is None else weights * of_rows

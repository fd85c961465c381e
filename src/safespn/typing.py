"""Names for the array types that the package passes around."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ArrayLike: TypeAlias = npt.ArrayLike
RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"
AnyArray: TypeAlias = npt.NDArray[Any]

"""Rules of scoring that reports and experiments share."""

from __future__ import annotations

import numpy as np

from safespn.typing import FloatArray

SMALLEST_PROBABILITY = 1e-15
"""A class that is less probable counts as this probable in a log loss."""
HARM = 0.01
"""A trial is harmed where a score is lower by more than this: one point of accuracy or F1."""


def standard_error(values: FloatArray) -> float:
    """Standard error of a mean; infinite for a single value, which says nothing about the spread."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")

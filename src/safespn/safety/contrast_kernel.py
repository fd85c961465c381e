"""The sums of :mod:`safespn.safety.contrast` over rows, compiled: one loop, no arrays in between."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.engine.compilation import compiled
from safespn.typing import FloatArray, IntArray


@compiled
def gain_totals(
    joint: FloatArray, reference: FloatArray, soft_labels: FloatArray, codes: IntArray, weights: FloatArray
) -> tuple[float, float, float]:
    """Worst case, contrast at the soft labels, and gain of the labelled rows; empty ``weights`` are ones."""
    worst_case, contrast, labelled = 0.0, 0.0, 0.0
    for row in range(len(joint)):
        weight = weights[row] if len(weights) > 0 else 1.0
        if codes[row] >= 0:
            worst = _gain(joint[row, codes[row]], reference[row, codes[row]])
        else:
            worst = np.inf
            for k in range(joint.shape[1]):
                gain = _gain(joint[row, k], reference[row, k])
                # A NaN that is no gain at all stays until the end: nothing is less than NaN.
                worst = gain if gain < worst or gain != gain else worst
        at_labels = _gain(_log_mean(joint[row], soft_labels[row]), _log_mean(reference[row], soft_labels[row]))
        # What both models make impossible adds nothing, nor does what only the reference model does.
        worst = 0.0 if worst == np.inf else worst
        at_labels = 0.0 if at_labels == np.inf else at_labels
        worst_case += weight * worst
        contrast += weight * at_labels
        labelled += weight * worst if codes[row] >= 0 else 0.0
    return worst_case, contrast, labelled


@njit(nogil=True, error_model="numpy", forceinline=True)
def _gain(log_density: float, reference: float) -> float:
    """As by :func:`safespn.foundation.posteriors.gains`: infinite if both models make it impossible."""
    return np.inf if log_density == -np.inf and reference == -np.inf else log_density - reference


@njit(nogil=True, error_model="numpy", forceinline=True)
def _log_mean(joint: FloatArray, soft_labels: FloatArray) -> float:
    """Log of ``sum_k q_k exp(a_k)``, relative to the largest of the classes that have a soft label."""
    largest = -np.inf
    for k in range(len(joint)):
        if joint[k] != joint[k] or soft_labels[k] != soft_labels[k]:
            return np.nan
        largest = joint[k] if soft_labels[k] > 0.0 and joint[k] > largest else largest
    if largest == -np.inf:
        return largest
    total = 0.0
    for k in range(len(joint)):
        if soft_labels[k] > 0.0:
            total += soft_labels[k] * math.exp(joint[k] - largest)
    return largest + math.log(total)

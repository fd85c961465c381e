"""The sums of :mod:`safespn.safety.contrast` over rows, compiled: one loop, no arrays in between."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.typing import FloatArray, IntArray


@njit(nogil=True, error_model="numpy", cache=True)
def gain_totals(
    joint: FloatArray, rival: FloatArray, soft_labels: FloatArray, codes: IntArray, weights: FloatArray
) -> tuple[float, float, float]:
    """Worst case, contrast at the soft labels, and gain of the labelled rows; empty ``weights`` are ones."""
    worst_case, contrast, labelled = 0.0, 0.0, 0.0
    for row in range(len(joint)):
        weight = weights[row] if len(weights) > 0 else 1.0
        if codes[row] >= 0:
            worst = joint[row, codes[row]] - rival[row, codes[row]]
        else:
            worst = np.inf
            for k in range(joint.shape[1]):
                # NaN, from a class that is impossible under both models, is not smaller.
                gain = joint[row, k] - rival[row, k]
                worst = gain if gain < worst else worst
        at_labels = _log_mean(joint[row], soft_labels[row]) - _log_mean(rival[row], soft_labels[row])
        # What both models make impossible adds nothing, nor does what only the rival does.
        worst = worst if worst < np.inf else 0.0
        at_labels = at_labels if at_labels < np.inf else 0.0
        worst_case += weight * worst
        contrast += weight * at_labels
        labelled += weight * worst if codes[row] >= 0 else 0.0
    return worst_case, contrast, labelled


@njit(nogil=True, error_model="numpy", forceinline=True)
def _log_mean(joint: FloatArray, soft_labels: FloatArray) -> float:
    """Log of ``sum_k q_k exp(a_k)``, relative to the largest of the classes that have a soft label."""
    largest = -np.inf
    for k in range(len(joint)):
        largest = joint[k] if soft_labels[k] > 0.0 and joint[k] > largest else largest
    if largest == -np.inf:
        return largest
    total = 0.0
    for k in range(len(joint)):
        if soft_labels[k] > 0.0:
            total += soft_labels[k] * math.exp(joint[k] - largest)
    return largest + math.log(total)

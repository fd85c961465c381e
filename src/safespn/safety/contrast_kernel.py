"""The sums of :mod:`safespn.safety.contrast` over rows, compiled: one loop, no large arrays in between.

As in :mod:`safespn.engine.kernels`, rows are in the inner loops, by vectors of ``LENGTH``. Vectors in which a value is
not finite, or a soft label is next to nothing, are worked through row by row.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.engine.backends import KERNEL_BLOCK
from safespn.engine.compilation import compiled
from safespn.engine.kernel_arithmetic import (
    CONSTANTS,
    LOWEST,
    SMALLEST_PART,
    exp_of_negative,
    log_of_positive,
)
from safespn.engine.kernel_vectors import (
    LENGTH,
    Vector,
    empty_aligned,
    fill,
    larger,
    load,
    store,
    total,
    where_at_least,
)
from safespn.engine.kernels import SOURCES, writeable
from safespn.typing import FloatArray, IntArray


def gain_totals(
    joint: FloatArray, reference: FloatArray, soft_labels: FloatArray, codes: IntArray, weights: FloatArray | None
) -> tuple[float, float, float]:
    """Worst case, contrast at the soft labels, and gain of the labelled rows, in nats; they add over blocks of rows.

    Parameters
    ----------
    joint, reference, soft_labels : arrays of shape (n_rows, n_classes)
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    weights : array of shape (n_rows,) or None
    """
    # Arrays that came from another process may be read-only, for which numba would compile once more.
    values = (joint, reference, soft_labels, np.empty(0) if weights is None else weights)
    codes = np.require(codes, requirements=["C", "W"])
    totals: tuple[float, float, float] = _gain_totals(*map(writeable, values), codes, CONSTANTS)
    return totals


@compiled
def _gain_totals(
    joint: FloatArray,
    reference: FloatArray,
    soft_labels: FloatArray,
    weights: FloatArray,
    codes: IntArray,
    constants: FloatArray,
    sources: int = SOURCES,
) -> tuple[float, float, float]:
    worst_case, contrast, labelled = 0.0, 0.0, 0.0
    n_classes = joint.shape[1]
    of_model, of_reference = empty_aligned(n_classes, KERNEL_BLOCK), empty_aligned(n_classes, KERNEL_BLOCK)
    labels, gains = empty_aligned(n_classes, KERNEL_BLOCK), empty_aligned(2, KERNEL_BLOCK)
    for begin in range(0, len(joint), KERNEL_BLOCK):
        n = min(KERNEL_BLOCK, len(joint) - begin)
        for k in range(n_classes):
            for r in range(n):
                of_model[k, r] = joint[begin + r, k]
                of_reference[k, r] = reference[begin + r, k]
                labels[k, r] = soft_labels[begin + r, k]
            for array in (of_model, of_reference, labels):
                array[k, n : -(-n // LENGTH) * LENGTH] = array[k, n - 1]
        for r in range(0, n, LENGTH):
            _gains(gains, of_model, of_reference, labels, r, constants)
        for r in range(n):
            row, code = begin + r, codes[begin + r]
            weight = weights[row] if len(weights) > 0 else 1.0
            worst = gains[0, r] if code < 0 else _gain(joint[row, code], reference[row, code])
            # What both models make impossible adds nothing, nor does what only the reference model does.
            worst = 0.0 if worst == np.inf else worst
            worst_case += weight * worst
            contrast += weight * (0.0 if gains[1, r] == np.inf else gains[1, r])
            labelled += weight * worst if code >= 0 else 0.0
    return worst_case, contrast, labelled


@njit(nogil=True, error_model="numpy", forceinline=True)
def _gains(
    gains: FloatArray,
    joint: FloatArray,
    reference: FloatArray,
    soft_labels: FloatArray,
    r: int,
    constants: FloatArray,
) -> None:
    """Set least gain, and gain at the soft labels, of a vector of rows; arrays have shape (n_classes, n_rows)."""
    worst, doubt, of_labels = fill(np.inf), fill(0.0), fill(0.0)
    largest, largest_of_reference = fill(LOWEST), fill(LOWEST)
    for k in range(len(joint)):
        a, b, label = load(joint, k, r), load(reference, k, r), load(soft_labels, k, r)
        used = where_at_least(label, fill(SMALLEST_PART), label, fill(0.0))
        # Not a number where a value is not finite, and not zero where a soft label is next to nothing.
        doubt = doubt + (a - a) + (b - b) + (label - used)
        of_labels = of_labels + used
        gain = a - b
        worst = where_at_least(gain, worst, worst, gain)
        largest = larger(where_at_least(used, fill(SMALLEST_PART), a, fill(LOWEST)), largest)
        largest_of_reference = larger(where_at_least(used, fill(SMALLEST_PART), b, fill(LOWEST)), largest_of_reference)
    doubt = doubt + where_at_least(of_labels, fill(SMALLEST_PART), fill(0.0), fill(1.0))
    if total(doubt) == 0.0:
        store(gains, 0, r, worst)
        mean = _log_mean(joint, soft_labels, largest, r, constants)
        store(gains, 1, r, mean - _log_mean(reference, soft_labels, largest_of_reference, r, constants))
    else:
        for i in range(r, r + LENGTH):
            _gains_of_row(gains, joint[:, i], reference[:, i], soft_labels[:, i], i)


@njit(nogil=True, error_model="numpy", forceinline=True)
def _log_mean(values: FloatArray, soft_labels: FloatArray, largest: Vector, r: int, constants: FloatArray) -> Vector:
    """Log of ``sum_k q_k exp(a_k)``, given the largest value of the classes that have a soft label."""
    mean = fill(0.0)
    for k in range(len(values)):
        below = load(values, k, r) - largest
        # Classes without a soft label may have a larger value.
        part = exp_of_negative(where_at_least(fill(0.0), below, below, fill(0.0)), constants)
        mean = mean + load(soft_labels, k, r) * part
    return largest + log_of_positive(mean, constants)


@njit(nogil=True, error_model="numpy")
def _gains_of_row(gains: FloatArray, joint: FloatArray, reference: FloatArray, soft_labels: FloatArray, r: int) -> None:
    worst = np.inf
    for k in range(len(joint)):
        gain = _gain(joint[k], reference[k])
        # A NaN that is no gain at all stays until the end: nothing is less than NaN.
        worst = gain if gain < worst or gain != gain else worst
    gains[0, r] = worst
    gains[1, r] = _gain(_log_mean_of_row(joint, soft_labels), _log_mean_of_row(reference, soft_labels))


@njit(nogil=True, error_model="numpy", forceinline=True)
def _gain(log_density: float, reference: float) -> float:
    """As by :func:`safespn.foundation.posteriors.gains`: infinite if both models make it impossible."""
    return np.inf if log_density == -np.inf and reference == -np.inf else log_density - reference


@njit(nogil=True, error_model="numpy")
def _log_mean_of_row(joint: FloatArray, soft_labels: FloatArray) -> float:
    """Log of ``sum_k q_k exp(a_k)``, relative to the largest of the classes that have a soft label."""
    largest = -np.inf
    for k in range(len(joint)):
        if joint[k] != joint[k] or soft_labels[k] != soft_labels[k]:
            return np.nan
        largest = joint[k] if soft_labels[k] > 0.0 and joint[k] > largest else largest
    if largest == -np.inf:
        return largest
    mean = 0.0
    for k in range(len(joint)):
        if soft_labels[k] > 0.0:
            mean += soft_labels[k] * math.exp(joint[k] - largest)
    return largest + math.log(mean)

"""The contrast between a model and the purely supervised one, and its exact worst case.

Write ``a`` and ``b`` for the class joints (rows, classes) of the model and of the supervised model on the same rows,
and ``c = a - b`` for the *gains*. For any soft labels q of the unlabelled rows the contrast is::

    C(q) = sum over labelled n of c[n, y_n]  +  sum over unlabelled m of  log(sum_k q_mk A_mk) - log(sum_k q_mk B_mk)

Each unlabelled row's part is the log of a ratio of two linear functions of q, so its minimum over the simplex is at a
corner, and the *worst case* over all soft and hard labellings is known exactly::

    W = sum over labelled n of c[n, y_n]  +  sum over unlabelled m of  min_k c[m, k]

If W is not negative, the model is at least as likely as the supervised one on these rows for every labelling, the true
one included.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from safespn.foundation.posteriors import gains
from safespn.foundation.simplex import log_of
from safespn.typing import FloatArray, IntArray

LARGEST_GRADIENT = 1e6
SMALLEST_TOTAL = 1e-250


def worst_gains(each: FloatArray) -> FloatArray:
    """Least gain of each row over its classes, in nats, shape (n_rows,)."""
    # Class by class: numpy is slow along short rows.
    return finite_if_all_skipped(reduce(np.minimum, each.T))


def labelled_gains(labelled: FloatArray, classes: IntArray) -> FloatArray:
    """Gain of each labelled row at its own class; zero where both models make it impossible."""
    return finite_if_all_skipped(labelled[np.arange(len(classes)), classes])


def contrast(joint: FloatArray, reference: FloatArray, soft_labels: FloatArray) -> FloatArray:
    """Each row's part of the contrast at given soft labels, in nats, shape (n_rows,)."""
    return finite_if_all_skipped(gains(_log_mean(joint, soft_labels), _log_mean(reference, soft_labels)))


def total_density_gain(density_gains: FloatArray, weights: FloatArray | None) -> float:
    """Gain in the log density of some rows, in nats; a row that the reference makes impossible adds nothing.

    Parameters
    ----------
    density_gains : array of shape (n_rows,)
        :func:`~safespn.foundation.posteriors.gains` in the log density.
    weights : array of shape (n_rows,) or None
    """
    each = finite_if_all_skipped(density_gains)
    return float(each.sum() if weights is None else each @ weights)


def magnitude(reference: FloatArray, weights: FloatArray | None) -> float:
    """Sum of the absolute finite log values of the reference model, which rounding errors of gains are relative to."""
    of_rows = np.abs(np.where(np.isfinite(reference), reference, 0.0)).sum(axis=1)
    return float(of_rows.sum() if weights is None else of_rows @ weights)


def gain_totals(
    each: FloatArray, at_labels: FloatArray, codes: IntArray, weights: FloatArray | None
) -> tuple[float, float, float]:
    """Worst case, contrast and labelled gain of some rows, in nats; they add over blocks of rows.

    Parameters
    ----------
    each : array of shape (n_rows, n_classes)
        Gains.
    at_labels : array of shape (n_rows,)
        Each row's part of the contrast.
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    weights : array of shape (n_rows,) or None
    """
    known = np.nonzero(codes >= 0)[0]
    of_labelled, worst = labelled_gains(each[known], codes[known]), worst_gains(each)
    worst[known] = of_labelled
    if weights is None:
        return float(worst.sum()), float(at_labels.sum()), float(of_labelled.sum())
    return float(worst @ weights), float(at_labels @ weights), float(of_labelled @ weights[known])


def _log_mean(joint: FloatArray, soft_labels: FloatArray) -> FloatArray:
    """Log of ``sum_k q_mk exp(a_mk)`` for each row, shape (n_rows,)."""
    largest = reduce(np.maximum, joint.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.einsum("mk,mk->m", np.exp(joint - largest[:, None]), soft_labels)
        result = largest + np.log(total)
    # Where the soft labels leave out the likely classes, or all are impossible, only the log domain is exact.
    doubtful = ~(total > SMALLEST_TOTAL)
    if doubtful.any():
        with np.errstate(invalid="ignore"):
            result[doubtful] = np.logaddexp.reduce(joint[doubtful] + log_of(soft_labels[doubtful]), axis=1)
    return np.asarray(result)


def soft_label_gradient(joint: FloatArray, reference: FloatArray, soft_labels: FloatArray) -> FloatArray:
    """Gradient of the contrast in the soft labels, ``A_mk / S[u_m, q_m] - B_mk / S+[u_m, q_m]``; finite for any input.

    Computed in the log domain; at a wrong corner it grows beyond all bounds and is clipped.
    """
    log_labels = log_of(soft_labels)

    def ratio(values: FloatArray) -> FloatArray:
        total = np.logaddexp.reduce(values + log_labels, axis=1, keepdims=True)
        offset = np.where(np.isfinite(total), total, values.max(axis=1, keepdims=True))
        offset = np.where(np.isfinite(offset), offset, 0.0)
        return np.exp(np.minimum(values - offset, np.log(LARGEST_GRADIENT)))

    return np.asarray(ratio(joint) - ratio(reference))


def finite_if_all_skipped(values: FloatArray) -> FloatArray:
    """A row that the reference makes impossible, whatever its class, adds nothing."""
    skipped = np.isposinf(values)
    return np.where(skipped, 0.0, values) if skipped.any() else values

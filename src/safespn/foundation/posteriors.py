"""What class joints say: posteriors of one model, gains of one model over another.

A class joint ``a`` has shape (n_rows, n_classes): ``a[n, k] = log p(x_n, y_n = k)``, minus infinity where class k
makes row n impossible.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from safespn.typing import FloatArray


def log_posterior(joint: FloatArray, log_prior: FloatArray | None = None) -> FloatArray:
    """Log class posteriors of a class joint, exact at any scale; shape (..., n_classes).

    A row that is impossible in every class says nothing about its class: it gets ``log_prior``, shape (n_classes,), or
    equal probabilities if that is not given. A row with a NaN is NaN.
    """
    top = joint.max(axis=-1, keepdims=True)
    impossible = np.isneginf(top)
    if impossible.any():
        joint = np.where(impossible, 0.0 if log_prior is None else log_prior, joint)
        top = joint.max(axis=-1, keepdims=True)
    shifted = joint - top
    with np.errstate(invalid="ignore"):
        return np.asarray(shifted - np.logaddexp.reduce(shifted, axis=-1, keepdims=True))


def posterior(joint: FloatArray) -> FloatArray:
    """Class posteriors of a class joint, as in :func:`log_posterior`: the model's own, optimistic soft labels."""
    return np.asarray(np.exp(log_posterior(joint)))


def gains(joint: FloatArray, reference: FloatArray) -> FloatArray:
    """Gain of each class's joint log density over the reference model's, in nats; shape (n_rows, n_classes).

    A class that is impossible under both models is out of question: its gain is infinite, so no minimum is taken there.
    One that only the model makes impossible has a gain of minus infinity. A NaN of either model stays one.
    """
    with np.errstate(invalid="ignore"):
        each = joint - reference
    if np.isnan(each).any():
        each = np.where(np.isneginf(joint) & np.isneginf(reference), np.inf, each)
    return np.asarray(each)


def pessimistic(gains: FloatArray, temperature: float) -> FloatArray:
    """The smoothed worst soft labels against a reference model: proportional to ``exp(-gain / temperature)``."""
    return np.asarray(softmax(np.clip(-gains / temperature, -1e300, 1e300), axis=1))

"""Evidence on the children of the root (the classes of a class network), and the flow that it sends down.

Write ``a`` for the *class joint*: ``a[n, k] = log w_k + log S_k(x_n)`` for child ``k`` of the root. Every learning
rule sends row ``n`` down child ``k`` with a flow of the form::

    weight[n] * softmax_k(tilt * a[n, k] + log_factor[n, k])

* likelihood given a label, a soft label or nothing: ``tilt = 1``, ``log_factor`` the log of the evidence;
* complete data with soft labels q, whatever the model thinks: ``tilt = 0``, ``log_factor = log q``;
* the smoothed worst case against a rival class joint ``b``: ``tilt = -1 / tau``, ``log_factor = b / tau``.

A :class:`Response` is complete data whose soft labels are decided in the middle of the pass, when ``a`` is known.

The objective of a row is what this flow is the gradient of: ``logsumexp_k(tilt * a[n, k] + log_factor[n, k]) / tilt``,
or, for a tilt of zero, the complete-data log-likelihood ``sum_k q[n, k] a[n, k]``. For a conditional likelihood the
flow and the objective with class unknown, ``softmax_k(a[n, k])`` and ``logsumexp_k(a[n, k])``, are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from safespn.typing import ArrayLike, BoolArray, FloatArray, IntArray

SMALLEST_LOG_JOINT = -1e300


@dataclass(frozen=True, eq=False)
class Evidence:
    """How rows enter the network at its root.

    Parameters
    ----------
    log_factor : array of shape (n_rows, n_root_edges) or None
        Added to the tilted class joint; None stands for zeros.
    tilt : float
    conditional : bool
        Subtract the flow, and the log-likelihood, of the row with class unknown.
    """

    log_factor: FloatArray | None = None
    tilt: float = 1.0
    conditional: bool = False

    def take(self, rows: slice | IntArray) -> Evidence:
        """Return the evidence of some of the rows."""
        if self.log_factor is None:
            return self
        return Evidence(self.log_factor[rows], self.tilt, self.conditional)


def class_evidence(classes: ArrayLike, n_rows: int, n_classes: int, *, conditional: bool = False) -> Evidence:
    """Make evidence of the rows' classes: 0 to ``n_classes - 1``, or -1 where the class is unknown."""
    classes = np.asarray(classes)
    if classes.shape != (n_rows,) or classes.dtype.kind not in "iub":
        raise ValueError(
            f"expected one integer class for each of {n_rows} rows, got shape {classes.shape} and dtype {classes.dtype}"
        )
    refused = (classes < -1) | (classes >= n_classes)
    if refused.any():
        row = int(np.argmax(refused))
        raise ValueError(
            f"class {classes[row]} of row {row}: expected 0 to {n_classes - 1} (the root's children), or -1 if unknown"
        )
    known = (classes[:, None] == np.arange(n_classes)) | (classes[:, None] == -1)
    return Evidence(np.where(known, 0.0, -np.inf), conditional=conditional)


@dataclass(frozen=True)
class ResponseRule:
    """How soft labels answer a class joint ``a`` that competes with a rival's ``b``.

    They move by ``rate`` from where they were towards
    ``pessimism * softmax_k(-(a - b) / temperature) + (1 - pessimism) * softmax_k(a)``.
    """

    pessimism: float
    temperature: float
    rate: float


@dataclass(frozen=True, eq=False)
class Response:
    """Rows that enter by soft labels which answer the class joint of the very same pass.

    Parameters
    ----------
    rival, soft_labels : arrays of shape (n_rows, n_root_edges)
        The rival's class joint, and the soft labels before.
    is_free : array of shape (n_rows,)
        Which rows' soft labels move; those of rows whose class is known stay.
    rule : ResponseRule
    """

    rival: FloatArray
    soft_labels: FloatArray
    is_free: BoolArray
    rule: ResponseRule

    def take(self, rows: slice) -> Response:
        """Return the response of some of the rows."""
        return Response(self.rival[rows], self.soft_labels[rows], self.is_free[rows], self.rule)

    def answer(self, joint: FloatArray) -> FloatArray:
        """Soft labels after a class joint is known, shape (n_rows, n_root_edges)."""
        rule = self.rule
        target = np.zeros_like(joint)
        if rule.pessimism > 0:
            target += rule.pessimism * pessimistic(gains(joint, self.rival), rule.temperature)
        if rule.pessimism < 1:
            target += (1 - rule.pessimism) * optimistic(joint)
        return np.where(
            self.is_free[:, None], self.soft_labels + rule.rate * (target - self.soft_labels), self.soft_labels
        )


def gains(joint: FloatArray, rival: FloatArray) -> FloatArray:
    """Gain of each class's joint log density over the rival's, in nats; shape (n_rows, n_classes).

    A class that is impossible under both models is out of question: its gain is infinite, so no minimum is taken there.
    One that only the model makes impossible has a gain of minus infinity.
    """
    with np.errstate(invalid="ignore"):
        each = joint - rival
    undefined = np.isnan(each)
    return np.where(undefined, np.inf, each) if undefined.any() else np.asarray(each)


def optimistic(joint: FloatArray) -> FloatArray:
    """The model's own soft labels: its class posteriors, uniform for a row of zero density; shape as ``joint``."""
    possible = np.isfinite(joint).any(axis=1, keepdims=True)
    return np.asarray(softmax(np.where(possible, joint, 0.0), axis=1))


def pessimistic(gains: FloatArray, temperature: float) -> FloatArray:
    """The smoothed worst soft labels against a rival: proportional to ``exp(-gain / temperature)``."""
    return np.asarray(softmax(np.clip(-gains / temperature, -1e300, 1e300), axis=1))

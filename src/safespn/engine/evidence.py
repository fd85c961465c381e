"""Evidence on the children of the root (the classes of a class network), and the flow that it sends down.

Write ``a`` for the *class joint*: ``a[n, k] = log w_k + log S_k(x_n)`` for child ``k`` of the root. Every learning
rule sends row ``n`` down child ``k`` with a flow of the form::

    weight[n] * softmax_k(tilt * a[n, k] + log_factor[n, k])

* likelihood given a label, a soft label or nothing: ``tilt = 1``, ``log_factor`` the log of the evidence;
* complete data with soft labels q, whatever the model thinks: ``tilt = 0``, ``log_factor = log q``;
* the smoothed worst case against a reference model's class joint ``b``: ``tilt = -1 / tau``, ``log_factor = b / tau``.

A :class:`SoftLabelUpdate` is complete data whose soft labels are computed in the middle of the pass, from ``a``.

The objective of a row is what this flow is the gradient of: ``logsumexp_k(tilt * a[n, k] + log_factor[n, k]) / tilt``,
or, for a tilt of zero, the complete-data log-likelihood ``sum_k q[n, k] a[n, k]``. For a conditional likelihood the
flow and the objective with class unknown, ``softmax_k(a[n, k])`` and ``logsumexp_k(a[n, k])``, are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.foundation.posteriors import gains, pessimistic, posterior
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
    return Evidence(log_indicators(classes, n_classes), conditional=conditional)


def log_indicators(classes: IntArray, n_classes: int) -> FloatArray:
    """Zero for the class of each row, or for every class where it is -1, and minus infinity elsewhere."""
    of_class = np.where(np.eye(n_classes + 1, n_classes, dtype=bool), 0.0, -np.inf)
    of_class[-1] = 0.0
    return np.take(of_class, classes, axis=0, mode="wrap")


@dataclass(frozen=True)
class SoftLabelUpdateRule:
    """How soft labels move, given a class joint ``a`` and that of the reference model, ``b``.

    They move by ``rate`` from where they were towards
    ``pessimism * softmax_k(-(a - b) / temperature) + (1 - pessimism) * softmax_k(a)``.
    """

    pessimism: float
    temperature: float
    rate: float

    @property
    def keeps_own_labels(self) -> bool:
        """Whether soft labels that are the model's own stay what they are."""
        return self.rate == 0 or self.pessimism == 0


@dataclass(frozen=True, eq=False)
class SoftLabelUpdate:
    """Rows that enter by soft labels which are updated from the class joint of the very same pass.

    Parameters
    ----------
    reference, soft_labels : arrays of shape (n_rows, n_root_edges)
        The reference model's class joint, and the soft labels before the update.
    is_free : array of shape (n_rows,)
        Which rows' soft labels move; those of rows whose class is known stay.
    rule : SoftLabelUpdateRule
    """

    reference: FloatArray
    soft_labels: FloatArray
    is_free: BoolArray
    rule: SoftLabelUpdateRule

    def take(self, rows: slice) -> SoftLabelUpdate:
        """Return the update of some of the rows."""
        return SoftLabelUpdate(self.reference[rows], self.soft_labels[rows], self.is_free[rows], self.rule)

    def updated_labels(self, joint: FloatArray) -> FloatArray:
        """Soft labels after a class joint is known, shape (n_rows, n_root_edges)."""
        rule = self.rule
        target = np.zeros_like(joint)
        if rule.pessimism > 0:
            target += rule.pessimism * pessimistic(gains(joint, self.reference), rule.temperature)
        if rule.pessimism < 1:
            target += (1 - rule.pessimism) * posterior(joint)
        return np.where(
            self.is_free[:, None], self.soft_labels + rule.rate * (target - self.soft_labels), self.soft_labels
        )

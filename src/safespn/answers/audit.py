"""Did the unlabelled rows help? Two models differ in accuracy only where they disagree, so only such rows need labels.

Of N rows the models disagree on M. On A of these the first model is right, on B the second, on the rest neither; the
difference in accuracy is (A - B) / N. Labels of n rows drawn without replacement from the M show a rows of the first
kind and b of the second; exact limits of A - B follow (:mod:`safespn.answers.limits`). With two classes one of the
models is right, and A + B = M.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from safespn.answers.limits import difference_limits
from safespn.exceptions import AuditWarning
from safespn.typing import IntArray


@dataclass(frozen=True)
class Audit:
    """How much more accurate one model is than another on a table; made by :meth:`SafeSPNClassifier.audit`.

    Parameters
    ----------
    difference : float
        Estimated difference in accuracy on all rows, as a share; positive if the first model is better.
    interval : tuple of float
        Ends of its confidence interval.
    confidence : float
        Probability with which the interval covers the true difference, at least.
    n_rows : int
        Rows of the table.
    n_disagreeing : int
        Rows that the models predict differently.
    n_audited : int
        Rows of these whose label was given.
    n_right, n_reference_right : int
        Audited rows on which the model and the reference are right.
    """

    difference: float
    interval: tuple[float, float]
    confidence: float
    n_rows: int
    n_disagreeing: int
    n_audited: int
    n_right: int
    n_reference_right: int

    def __str__(self) -> str:
        if not self.n_disagreeing:
            return f"The models agree on all {self.n_rows} rows: equally accurate, no audit is needed."
        low, high = (100 * end for end in self.interval)
        found = (
            f"on {self.n_rows} rows, of which {self.n_disagreeing} are predicted differently and "
            f"{self.n_audited} were audited"
        )
        if self.n_audited == self.n_disagreeing:
            return f"The model is {100 * self.difference:+.2f} points more accurate than the reference {found}: exact."
        verdict = "helped" if low > 0 else "harmed" if high < 0 else "is not settled"
        return (
            f"The model is {100 * self.difference:+.2f} points more accurate than the reference "
            f"({100 * self.confidence:g} % interval {low:+.2f} to {high:+.2f}) {found}: {_VERDICTS[verdict]}."
        )


_VERDICTS = {
    "helped": "it is better",
    "harmed": "it is worse",
    "is not settled": "which of them is better is not settled",
}


def draw_disagreeing(ours: IntArray, theirs: IntArray, n: int, generator: np.random.Generator) -> IntArray:
    """Draw rows that two models predict differently, without replacement.

    The rows are the first of one random order of all that disagree: a larger ``n`` and the same generator add rows.

    Parameters
    ----------
    ours, theirs : array of shape (n_rows,)
        Predicted classes.

    Warns
    -----
    AuditWarning
        If fewer rows disagree than asked for, or none.
    """
    if n < 1:
        raise ValueError(f"expected at least one row to audit, got n = {n}")
    disagreeing = np.flatnonzero(ours != theirs)
    if not len(disagreeing):
        message = f"the models agree on all {len(ours)} rows: they are equally accurate, no audit is needed"
        warnings.warn(AuditWarning(message), stacklevel=3)
    elif len(disagreeing) < n:
        message = f"the models disagree on {len(disagreeing)} rows only, fewer than the {n} asked for: these are all"
        warnings.warn(AuditWarning(message), stacklevel=3)
    return generator.permutation(disagreeing)[:n]


def audit_predictions(
    ours: IntArray,
    theirs: IntArray,
    rows: IntArray,
    labels: IntArray,
    n_classes: int,
    confidence: float = 0.95,
    look: int | None = None,
) -> Audit:
    """Estimate the difference in accuracy of two models from labels of rows on which they disagree.

    Parameters
    ----------
    ours, theirs : array of shape (n_rows,)
        Predicted class codes of the model and of the reference.
    rows : array of shape (n_audited,)
        Rows drawn by :func:`draw_disagreeing`.
    labels : array of shape (n_audited,)
        Their true class codes.
    look : int, optional
        For audits in batches: this is the ``look``-th interval computed from the same growing draw. Its error rate is
        ``(1 - confidence) / (look * (look + 1))``, and these add up to less than ``1 - confidence`` over all looks, so
        that all intervals together keep the confidence.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence:g}")
    if look is not None and look < 1:
        raise ValueError(f"look counts from 1, got {look}")
    n_disagreeing = int((ours != theirs).sum())
    _check_rows(ours, theirs, rows, n_disagreeing)
    right, reference_right = int((labels == ours[rows]).sum()), int((labels == theirs[rows]).sum())
    alpha = (1 - confidence) / (1 if look is None else look * (look + 1))
    difference, low, high = 0.0, 0, 0
    if n_disagreeing:
        counts = n_disagreeing, len(rows), right, reference_right
        low, high = difference_limits(*counts, alpha=alpha, one_is_right=n_classes == 2)
        difference = n_disagreeing / len(rows) * (right - reference_right) / len(ours)
    interval = low / len(ours), high / len(ours)
    return Audit(difference, interval, confidence, len(ours), n_disagreeing, len(rows), right, reference_right)


def _check_rows(ours: IntArray, theirs: IntArray, rows: IntArray, n_disagreeing: int) -> None:
    if n_disagreeing and not len(rows):
        raise ValueError(f"no rows were given, but the models disagree on {n_disagreeing}; draw some with audit_rows")
    outside = (rows < 0) | (rows >= len(ours))
    if outside.any():
        raise ValueError(f"there is no row {rows[outside][0]}; the table has rows 0 to {len(ours) - 1}")
    found, count = np.unique(rows, return_counts=True)
    if (count > 1).any():
        raise ValueError(f"row {found[count > 1][0]} is given twice; expected every row once")
    agreeing = ours[rows] == theirs[rows]
    if agreeing.any():
        raise ValueError(
            f"row {rows[agreeing][0]} was not drawn by audit_rows: the models agree on it; "
            "give the rows that were drawn, with the same table and models"
        )

"""Did the unlabelled rows help? Two models differ in accuracy only where they disagree, so only such rows need labels.

Of N rows the models disagree on M. On A of these the first model is right, on B the second, on the rest neither; the
difference in accuracy is (A - B) / N. Labels of n rows drawn without replacement from the M show a rows of the first
kind and b of the second. The interval inverts exact tests of A - B with the statistic t = a - b::

    low = smallest d with  max over A - B = d of  P(t >= observed) > alpha / 2,   high likewise with P(t <= observed).

The true A - B lies below ``low`` only if its own P(t >= observed) is at most alpha / 2, which happens with at most that
probability whatever A and B are: the interval covers with at least its confidence for every population. One more row of
the first kind in place of one of neither, or of neither in place of the second, makes large t more probable, so the
maximum grows with d and bisection finds the end. With two classes one of the models is right, and A + B = M.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln

from safespn.exceptions import AuditWarning
from safespn.typing import FloatArray, IntArray

MOST_POPULATIONS = 256
"""Populations with one difference up to which each is looked at."""

TERMS_AT_ONCE = 500_000


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


def difference_limits(
    n_population: int, n_drawn: int, right: int, reference_right: int, *, alpha: float, one_is_right: bool
) -> tuple[int, int]:
    """Confidence limits of A - B in a population from ``right`` and ``reference_right`` of ``n_drawn`` rows.

    Parameters
    ----------
    one_is_right : bool
        Whether A + B is the whole population, as with two classes.
    """
    tail = partial(_largest_tail, n_population, n_drawn, one_is_right=one_is_right)
    # What was seen is certain: at least `right` rows of the first kind, at least `reference_right` of the second.
    unseen = n_population - n_drawn
    seen = right - reference_right
    low = _smallest(tail, seen, seen - unseen, seen + unseen, alpha / 2, one_is_right)
    # The mirror image: exchange the models.
    high = -_smallest(tail, -seen, -seen - unseen, -seen + unseen, alpha / 2, one_is_right)
    return low, high


def _smallest(tail: partial[float], t: int, low: int, high: int, level: float, in_twos: bool) -> int:
    """Find the smallest difference between ``low`` and ``high`` at which t or more is more probable than ``level``.

    At ``high`` it is: every row not seen is of the first kind, and t or more is certain or all are as seen.
    """
    step = 2 if in_twos else 1
    first, last = 0, (high - low) // step
    while first < last:
        middle = (first + last) // 2
        if tail(low + step * middle, t) > level:
            last = middle
        else:
            first = middle + 1
    return low + step * first


def _largest_tail(n_population: int, n_drawn: int, difference: int, t: int, *, one_is_right: bool) -> float:
    """Largest probability of ``a - b >= t`` over all populations with ``A - B = difference``, or a bound above it."""
    if one_is_right:
        ones = np.array([(n_population + difference) // 2])
        return float(_tail(n_population, n_drawn, ones, ones - difference, t)[0])
    least, most = max(difference, 0), (n_population + difference) // 2
    # In large populations A is looked at in steps. Within one, more of the first kind and fewer of the second than
    # any population has bound the probability from above, so that the interval only becomes wider.
    ends = np.unique(np.linspace(least, most + 1, min(most + 1 - least, MOST_POPULATIONS) + 1).astype(np.intp))
    return float(_tail(n_population, n_drawn, ends[1:] - 1, ends[:-1] - difference, t).max())


def _tail(n_population: int, n_drawn: int, ones: IntArray, others: IntArray, t: int) -> FloatArray:
    """Probability of ``a - b >= t`` in draws without replacement, for populations of ``ones`` and ``others``."""
    a, b = np.divmod(np.arange((n_drawn + 1) ** 2), n_drawn + 1)
    outcomes = (a + b <= n_drawn) & (a - b >= t)
    a, b = a[outcomes], b[outcomes]
    log_factorial = gammaln(np.arange(n_population + 1) + 1.0)
    drawn = np.array([a, b, n_drawn - a - b])
    n_of_kinds = np.array([ones, others, n_population - ones - others])
    result = np.empty(len(ones))
    at_once = max(1, TERMS_AT_ONCE // max(len(a), 1))
    for start in range(0, len(ones), at_once):
        piece = slice(start, start + at_once)
        log_ways = np.full((len(ones[piece]), len(a)), -_log_choose(log_factorial, n_population, n_drawn))
        for n, k in zip(n_of_kinds, drawn, strict=True):
            log_ways += _log_choose(log_factorial, n[piece, None], k)
        result[piece] = np.exp(log_ways).sum(axis=1)
    return result


def _log_choose(log_factorial: FloatArray, n: Any, k: Any) -> FloatArray:
    """Log of the number of ways to choose k of n; minus infinity where there is none."""
    left = np.maximum(n - k, 0)
    return np.where(k <= n, log_factorial[n] - log_factorial[k] - log_factorial[left], -np.inf)

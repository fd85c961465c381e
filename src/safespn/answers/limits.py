"""Exact confidence limits for a finite population of which some rows were drawn without replacement.

A population of M rows has A rows of a first kind, B of a second and M - A - B of neither; a and b of n drawn rows are
of the first and second kind. Two questions are answered, both by inverting exact tests, so that the limits cover with
at least their confidence whatever the population is:

* How many are of the first kind, if only that is asked (`count_limits`)? By Blaker's test, whose limits are never wider
  than those of two tests of half the level.
* What is A - B (`difference_limits`)? If every row is of one of the kinds, A - B = 2 A - M. If not, by tests with the
  statistic t = a - b, whose distribution depends on A + B too. Limits of A + B come first, at a small share of the
  level (Berger and Boos 1994), and the other tests consider those A + B alone::

    low = smallest d with  max over A - B = d of  P(t >= observed) > what is left of the level / 2

  One more row of the first kind in place of one of neither, or of neither in place of the second, makes large t more
  probable, so the maximum grows with d and bisection finds the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from safespn.typing import FloatArray, IntArray

SHARE_FOR_NEITHER = 0.1
"""Share of the level that limits of A + B take."""
MOST_POPULATIONS = 256
"""Populations with one difference up to which each is looked at."""
TERMS_AT_ONCE = 500_000
TIE = 1 + 1e-9
"""Probabilities that differ by less are equal but for rounding."""


def difference_limits(
    n_population: int, n_drawn: int, right: int, reference_right: int, *, alpha: float, one_is_right: bool
) -> tuple[int, int]:
    """Confidence limits of A - B in a population from ``right`` and ``reference_right`` of ``n_drawn`` rows.

    Parameters
    ----------
    one_is_right : bool
        Whether A + B is the whole population, as with two classes.
    """
    if one_is_right:
        low, high = count_limits(n_population, n_drawn, right, alpha)
        return 2 * low - n_population, 2 * high - n_population
    either = count_limits(n_population, n_drawn, right + reference_right, SHARE_FOR_NEITHER * alpha)
    level = (1 - SHARE_FOR_NEITHER) * alpha / 2
    # What was seen is certain, and so is that the rows not seen are of some kind.
    unseen, seen = n_population - n_drawn, right - reference_right

    def lower_limit(t: int) -> int:
        def is_possible(difference: int) -> bool:
            return _largest_tail(n_population, n_drawn, difference, t, either) > level

        return _first_true(is_possible, max(t - unseen, -either[1]), min(t + unseen, either[1]))

    # The mirror image: exchange the models.
    return lower_limit(seen), -lower_limit(-seen)


def count_limits(n_population: int, n_drawn: int, seen: int, alpha: float) -> tuple[int, int]:
    """Confidence limits of the rows of one kind in a population, if ``seen`` of ``n_drawn`` rows are of that kind."""
    low = _lower_count(n_population, n_drawn, seen, alpha)
    return low, n_population - _lower_count(n_population, n_drawn, n_drawn - seen, alpha)


def _lower_count(n_population: int, n_drawn: int, seen: int, alpha: float) -> int:
    most = n_population - n_drawn + seen

    def is_possible(count: int) -> bool:
        return bool(_probabilities(n_population, n_drawn, np.array([count]))[0, seen:].sum() > alpha / 2)

    first = _first_true(is_possible, seen, most)
    for start in range(first, most, MOST_POPULATIONS):
        counts = np.arange(start, min(start + MOST_POPULATIONS, most))
        accepted = _blaker(n_population, n_drawn, counts, seen) > alpha
        if accepted.any():
            return int(counts[accepted.argmax()])
    return most


def _blaker(n_population: int, n_drawn: int, counts: IntArray, seen: int) -> FloatArray:
    """Probability of what is at least as far in a tail as ``seen``, for populations with ``counts`` of the kind."""
    probabilities = _probabilities(n_population, n_drawn, counts)
    below = probabilities.cumsum(axis=1)
    above = probabilities[:, ::-1].cumsum(axis=1)[:, ::-1]
    tail = np.minimum(below, above)
    return np.asarray(np.where(tail <= TIE * tail[:, [seen]], probabilities, 0.0).sum(axis=1))


def _probabilities(n_population: int, n_drawn: int, counts: IntArray) -> FloatArray:
    """Hypergeometric probabilities of 0, ..., n_drawn rows of a kind, shape (n_counts, n_drawn + 1)."""
    k = np.arange(n_drawn + 1)
    log_factorial = gammaln(np.arange(n_population + 1) + 1.0)
    ways = _log_choose(log_factorial, counts[:, None], k)
    ways = ways + _log_choose(log_factorial, n_population - counts[:, None], n_drawn - k)
    return np.exp(ways - _log_choose(log_factorial, n_population, n_drawn))


def _first_true(holds: Callable[[int], bool], first: int, last: int) -> int:
    """Return the first number from which on something holds, at the latest from ``last`` on."""
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if holds(middle) else (middle + 1, last)
    return last


def _largest_tail(n_population: int, n_drawn: int, difference: int, t: int, either: tuple[int, int]) -> float:
    """Largest probability of ``a - b >= t`` over all populations with ``A - B = difference``, or a bound above it.

    Parameters
    ----------
    either : tuple of int
        Least and most ``A + B``.
    """
    least, most = -(-(max(either[0], abs(difference)) + difference) // 2), (either[1] + difference) // 2
    if least > most:
        # Only for a single A + B that has the other parity: the difference before has the same rows and one fewer.
        return _largest_tail(n_population, n_drawn, difference - 1, t, either)
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

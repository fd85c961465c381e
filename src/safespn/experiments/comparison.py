"""Paired comparisons of methods over trials, and their ranks over data sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from safespn.foundation.scoring import HARM
from safespn.typing import FloatArray


@dataclass(frozen=True)
class PairedComparison:
    """How one method does against another on the same trials; higher scores are better.

    Parameters
    ----------
    difference : float
        Mean difference.
    p_value : float
        Two-sided, of Wilcoxon's signed-rank test; 1 where all trials are equal.
    effect : float
        Rank-biserial correlation: 1 if every difference is positive, -1 if every one is negative.
    harm_rate : float
        Share of the trials where the method is worse by more than one point (0.01).
    """

    difference: float
    p_value: float
    effect: float
    harm_rate: float

    @property
    def significantly_worse(self) -> bool:
        return self.difference < 0 and self.p_value < 0.05


def compare(method: FloatArray, other: FloatArray) -> PairedComparison:
    """Compare scores of two methods on the same trials, shape (n_trials,)."""
    difference = method - other
    differing = difference[difference != 0]
    harm_rate = float(np.mean(difference < -HARM))
    if len(differing) == 0:
        return PairedComparison(0.0, 1.0, 0.0, harm_rate)
    ranks = stats.rankdata(np.abs(differing))
    effect = float((ranks * np.sign(differing)).sum() / ranks.sum())
    p_value = float(stats.wilcoxon(differing, method="approx" if len(differing) > 25 else "auto").pvalue)
    return PairedComparison(float(difference.mean()), p_value, effect, harm_rate)


def average_ranks(scores: FloatArray) -> FloatArray:
    """Average rank of each method over data sets, 1 is best.

    Parameters
    ----------
    scores : array of shape (n_data_sets, n_methods)
        Higher is better; equal scores share their ranks.
    """
    return np.asarray(stats.rankdata(-scores, axis=1).mean(axis=0))


def critical_difference(n_methods: int, n_data_sets: int, significance: float = 0.05) -> float:
    """Difference of average ranks that Nemenyi's test calls significant (Demsar 2006)."""
    quantile = float(stats.studentized_range.ppf(1 - significance, n_methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def friedman_p_value(scores: FloatArray) -> float:
    """P-value of Friedman's test that all methods rank alike; NaN for fewer than three methods or two data sets.

    Parameters
    ----------
    scores : array of shape (n_data_sets, n_methods)
    """
    n_data_sets, n_methods = scores.shape
    if n_methods < 3 or n_data_sets < 2:
        return float("nan")
    return float(stats.friedmanchisquare(*scores.T).pvalue)

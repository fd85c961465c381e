import numpy as np
import pytest
from scipy import stats

from safespn.experiments.comparison import average_ranks, compare, critical_difference


def test_a_method_that_always_wins():
    pair = compare(np.arange(1.0, 11), np.zeros(10))
    assert pair.effect == 1
    assert pair.harm_rate == 0
    assert pair.p_value == pytest.approx(2 * 0.5**10)
    assert not pair.significantly_worse


def test_agrees_with_scipy_and_counts_harm():
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=60), generator.normal(0.8, size=60)
    pair = compare(one, other)
    assert pair.p_value == pytest.approx(stats.wilcoxon(one, other).pvalue, rel=1e-6)
    assert pair.harm_rate == np.mean(one - other < -0.01)
    assert pair.significantly_worse


def test_equal_scores_are_no_evidence():
    pair = compare(np.ones(5), np.ones(5))
    assert (pair.difference, pair.p_value, pair.effect) == (0, 1, 0)


def test_ranks_share_ties():
    np.testing.assert_allclose(average_ranks(np.array([[3.0, 1.0, 1.0], [1.0, 2.0, 3.0]])), [2, 2.25, 1.75])


def test_critical_difference_of_the_textbook():
    # Demsar (2006), table 5: q = 2.728 for five methods at 5 %.
    assert critical_difference(5, 10) == pytest.approx(2.728 * np.sqrt(5 * 6 / 60), abs=1e-3)

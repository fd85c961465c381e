import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safespn.decisions import f1_threshold


def expected_f1(probabilities, called):
    """2 E[true positives] / (number called positive + E[number of positives]), the usual plug-in value."""
    return 2 * probabilities[called].sum() / (called.sum() + probabilities.sum())


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=9))
def test_no_other_decision_has_a_higher_expected_f1(values):
    probabilities = np.array(values)
    ours = expected_f1(probabilities, probabilities >= f1_threshold(probabilities))
    every = [np.array(called) for called in itertools.product([False, True], repeat=len(values)) if any(called)]
    assert ours >= max(expected_f1(probabilities, called) for called in every) - 1e-12


def test_the_threshold_is_half_the_best_expected_f1():
    assert f1_threshold([0.4, 0.3, 0.1, 0.1]) == pytest.approx(0.7 / 2.9)
    assert f1_threshold([0.0, 0.0]) == 0.0
    assert f1_threshold([1.0, 1.0]) == 0.5


@pytest.mark.parametrize("bad", [[], [0.5, np.nan], [1.5], [-0.1], [[0.5]]])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match="probabilities must"):
        f1_threshold(bad)

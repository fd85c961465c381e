from __future__ import annotations

import numpy as np
import pytest

from safespn.foundation.posteriors import log_posterior, posterior

NOWHERE = -np.inf


@pytest.mark.parametrize("offset", [0.0, -1e5, 1e5])
def test_posteriors_are_exact_at_any_scale(offset):
    joint = np.array([[0.0, np.log(3.0)], [0.0, -900.0], [NOWHERE, -2.0]]) + offset
    expected = np.array([[-np.log(4.0), np.log(0.75)], [0.0, -900.0], [NOWHERE, 0.0]])
    np.testing.assert_allclose(log_posterior(joint), expected, atol=1e-9)
    np.testing.assert_allclose(posterior(joint).sum(axis=1), 1)


def test_a_row_that_no_class_explains_gets_the_prior():
    joint = np.array([[NOWHERE, NOWHERE], [0.0, 0.0]])
    np.testing.assert_allclose(posterior(joint), 0.5)
    np.testing.assert_allclose(np.exp(log_posterior(joint, np.log([0.9, 0.1]))), [[0.9, 0.1], [0.5, 0.5]])


def test_no_rows():
    assert log_posterior(np.empty((0, 3))).shape == (0, 3)

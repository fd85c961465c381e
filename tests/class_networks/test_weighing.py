from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from safespn.class_networks.weighing import (
    SMALLEST_WEIGHT,
    choose_temperature,
    log_tempered,
    mixture_weights,
    weigh_within_families,
)

RNG = np.random.default_rng(0)


def calibrated(n_rows=4000, n_classes=3):
    """Log posteriors and labels that were drawn from them."""
    log_posterior = log_softmax(RNG.normal(0, 1.5, (n_rows, n_classes)), axis=1)
    codes = np.array([RNG.choice(n_classes, p=p) for p in np.exp(log_posterior)])
    return log_posterior, codes, np.ones(n_rows)


@pytest.mark.parametrize("sharpness", [0.25, 1.0, 4.0])
def test_the_temperature_takes_back_what_sharpened_the_posteriors(sharpness):
    log_posterior, codes, weights = calibrated()
    temperature = choose_temperature(sharpness * log_posterior, codes, weights, 1.0)
    assert temperature == pytest.approx(sharpness, rel=0.1)


def test_over_confident_posteriors_are_flattened_however_confident_they_are():
    """Thousands of nats between the classes, as in wide tables, leave the loss flat near temperature one."""
    n_rows = 20
    codes = np.arange(n_rows) % 2
    told = np.where(np.arange(n_rows) % 4 == 0, 1 - codes, codes)
    log_posterior = 5000.0 * (told[:, None] == np.arange(2))
    temperature = choose_temperature(log_posterior, codes, np.ones(n_rows), 1.0)
    assert temperature > 50
    assert np.exp(log_tempered(log_posterior, temperature)[np.arange(n_rows), codes]).min() > 1e-12


@pytest.mark.parametrize("usual", [0.4, 1.0])
def test_without_evidence_the_temperature_is_the_usual_one(usual):
    temperature = choose_temperature(np.zeros((0, 2)), np.zeros(0, dtype=int), np.zeros(0), usual)
    assert temperature == pytest.approx(usual, rel=0.05)


def test_tempered_posteriors_are_powers():
    posterior = softmax(RNG.normal(size=(5, 3)), axis=1)
    powers = posterior**0.5
    np.testing.assert_allclose(np.exp(log_tempered(np.log(posterior), 2.0)), powers / powers.sum(axis=1, keepdims=True))


def test_mixture_weights_maximise_the_penalised_likelihood():
    probabilities = RNG.random((60, 3)) ** 2
    weights = RNG.integers(1, 4, 60).astype(float)

    def loss(free):
        share = softmax(free)
        return -(weights @ np.log(probabilities @ share) + np.log(share).sum() / 3)

    by_search = softmax(minimize(loss, np.zeros(3), tol=1e-10).x)
    np.testing.assert_allclose(mixture_weights(probabilities, weights), by_search, atol=2e-3)


def test_row_weights_count_as_repetition():
    probabilities = RNG.random((10, 2))
    weights = 1.0 + np.arange(10) % 3
    repeated = np.repeat(probabilities, weights.astype(int), axis=0)
    np.testing.assert_allclose(
        mixture_weights(probabilities, weights), mixture_weights(repeated, np.ones(len(repeated)))
    )


def test_a_family_does_not_win_by_number():
    """Three copies of one member weigh together what it would alone."""
    rng = np.random.default_rng(0)
    good, bad = (log_softmax(rng.normal(0, 1, (50, 2)) + shift * np.array([1, 0]), axis=1) for shift in (0.6, 0.4))
    codes, weights = np.zeros(50, dtype=int), np.ones(50)
    alone = weigh_within_families([good, bad], ["a", "b"], codes, weights)
    many = weigh_within_families([good] + [bad] * 3, ["a"] + ["b"] * 3, codes, weights)
    assert many.sum() == pytest.approx(1)
    assert 0.1 < many[0] < 0.9
    assert many[0] == pytest.approx(alone[0], abs=0.02)


def test_members_that_hardly_count_are_dropped_and_the_rest_sum_to_one():
    sure = np.log(np.tile([0.95, 0.05], (400, 1)))
    wrong = np.log(np.tile([0.05, 0.95], (400, 1)))
    shares = weigh_within_families([sure, wrong], ["a", "b"], np.zeros(400, dtype=int), np.ones(400))
    np.testing.assert_allclose(shares, [1, 0])
    assert SMALLEST_WEIGHT > 0

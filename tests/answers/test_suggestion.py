"""Suggested rows: the greedy batch against all batches, and what it must and must not hold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import entr

from safespn.answers.suggestion import _reach, as_geometry, find_outliers, suggest_rows
from safespn.network.columns import COUNTS, REAL, Domain


def log_posteriors(first):
    return np.log(np.column_stack([first, 1 - np.asarray(first)]))


def test_the_greedy_batch_is_near_the_best_of_all():
    rng = np.random.default_rng(0)
    points, probabilities = rng.normal(size=(14, 2)), rng.uniform(0.05, 0.95, 14)
    log_posterior = log_posteriors(probabilities)
    chosen = suggest_rows(log_posterior, points, np.zeros(14, bool), np.zeros(14), 3)
    uncertainty = entr(np.exp(log_posterior)).sum(axis=1)
    distances = cdist(points, points, "sqeuclidean")
    candidates = uncertainty >= 0.5 * uncertainty.max()
    similarity = np.exp(-distances / _reach(distances[:, candidates], 3))

    def worth(batch):
        return uncertainty @ similarity[:, batch].max(axis=1) + uncertainty[list(batch)].sum()

    best = max(worth(list(batch)) for batch in combinations(range(14), 3))
    assert worth(chosen.tolist()) >= (1 - 1 / np.e) * best
    assert worth(chosen.tolist()) >= 0.95 * best


def test_a_batch_is_uncertain_and_diverse():
    points = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [9.0, 9.0]], 50, axis=0)
    probabilities = np.repeat([0.5, 0.45, 0.55, 0.999], 50)
    chosen = suggest_rows(log_posteriors(probabilities), points, np.zeros(200, bool), np.zeros(200), 3)
    assert sorted(chosen // 50) == [0, 1, 2]


def test_rows_reach_less_far_in_larger_batches():
    distances = cdist(np.arange(40.0)[:, None], np.arange(40.0)[:, None], "sqeuclidean")
    assert _reach(distances, 2) > _reach(distances, 10) > 0
    assert _reach(np.zeros((5, 5)), 2) == 1


def test_outliers_come_last():
    is_outlier = np.arange(10) >= 8
    densities = np.arange(10.0)
    chosen = suggest_rows(log_posteriors(np.full(10, 0.5)), np.zeros((10, 1)), is_outlier, densities, 10)
    assert chosen[8:].tolist() == [9, 8]
    assert sorted(chosen[:8]) == list(range(8))
    assert suggest_rows(log_posteriors([0.5]), np.zeros((1, 1)), np.array([True]), np.zeros(1), 1).tolist() == [0]


def test_outliers_are_less_likely_than_what_the_model_draws():
    drawn = np.linspace(-5, 0, 1001)
    np.testing.assert_array_equal(find_outliers(np.array([-6.0, -4.0, -np.inf]), drawn), [True, False, True])


def test_geometry_does_not_depend_on_units_and_keeps_categories_apart():
    table = np.array([[1.0, 10, 0, 3], [2, 20, 1, 4], [4, 40, 2, 9]])
    domains = (REAL, REAL, Domain("codes", 3), COUNTS)
    geometry = as_geometry(table, domains)
    np.testing.assert_allclose(geometry[:, 0], geometry[:, 1])
    assert geometry.shape == (3, 6)
    np.testing.assert_allclose(cdist(geometry[:, 2:5], geometry[:, 2:5]), 1 - np.eye(3))
    assert as_geometry(table[:, :1], (None,)).shape == (3, 1)

"""Suggested rows: the greedy batch against all batches, and what it must and must not hold."""

from __future__ import annotations

import json
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import entr

from safespn.answers import label_studio
from safespn.answers.stopping import expected_gain
from safespn.answers.suggestion import Suggestions, _reach, as_geometry, find_outliers, suggest_rows
from safespn.network.columns import COUNTS, REAL, Domain


def log_posteriors(first):
    return np.log(np.column_stack([first, 1 - np.asarray(first)]))


def test_the_greedy_batch_is_near_the_best_of_all():
    rng = np.random.default_rng(0)
    points, probabilities = rng.normal(size=(14, 2)), rng.uniform(0.05, 0.95, 14)
    log_posterior = log_posteriors(probabilities)
    chosen = suggest_rows(log_posterior, points, np.zeros(14, bool), np.zeros(14), 3)[0]
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
    chosen = suggest_rows(log_posteriors(probabilities), points, np.zeros(200, bool), np.zeros(200), 3)[0]
    assert sorted(chosen // 50) == [0, 1, 2]


def test_rows_stand_for_those_that_resemble_them():
    points = np.array([0.0] * 6 + [5.0] * 3 + [90.0])[:, None]
    probabilities = np.array([0.5] * 9 + [0.95])
    chosen, stands_for = suggest_rows(log_posteriors(probabilities), points, np.zeros(10, bool), np.zeros(10), 2)
    assert {int(points[row, 0]): int(count) for row, count in zip(chosen, stands_for, strict=True)} == {0: 6, 5: 3}
    none, _ = suggest_rows(log_posteriors(probabilities), points, np.zeros(10, bool), np.zeros(10), 0)
    assert len(none) == 0


def test_reasons_are_words():
    found = Suggestions(
        np.array([4, 7, 2]),
        np.array(["ill", "well", "well"]),
        np.array(["well", "ill", "ill"]),
        np.array([0.52, 0.6, 0.9]),
        np.array([24, 1, 1]),
        np.array([False, False, True]),
    )
    assert found.reasons == [
        "ill (0.52) or well; stands for 23 more rows",
        "well (0.60) or ill; resembles no other row",
        "unlike the other rows",
    ]
    cells = [{"age": np.float64(50.5), "sex": "f", "seen": np.nan}, {"age": np.int64(3)}, {"age": None}]
    made = label_studio.tasks(found, cells, [5, 8, 3])
    assert made[0]["data"] == {
        "row": {"age": 50.5, "sex": "f", "seen": None},
        "name": "5",
        "why": "ill (0.52) or well; stands for 23 more rows",
    }
    (result,) = made[0]["predictions"][0]["result"]
    assert result["value"] == {"choices": ["ill"]}
    assert json.loads(json.dumps(made)) == made
    view = ElementTree.fromstring(label_studio.interface(np.array(["ill", 'a "b" <c>'])))
    assert {view.find("Table").get("name"), view.find("Choices").get("toName")} == {result["to_name"]}
    assert view.find("Choices").get("name") == result["from_name"]
    assert [each.get("value") for each in view.iter("Choice")] == ["ill", 'a "b" <c>']


def test_gains_of_more_labels_follow_the_logarithm_of_their_number():
    curve = {size: 0.6 + 0.05 * np.log2(size) for size in (10, 20, 40)}
    assert expected_gain(curve, 40) == pytest.approx(0.05)
    assert expected_gain(curve, 120) == pytest.approx(0.1)
    assert expected_gain({10: 0.8, 20: 0.8}, 5) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ({10: 0.5}, "at least two"),
        ({0: 0.5, 10: 0.6}, "at least one label, got 0"),
        ({10: 50, 20: 60}, "got 50 for 10"),
    ],
)
def test_curves_that_are_none(curve, words):
    with pytest.raises(ValueError, match=words):
        expected_gain(curve, 5)


def test_rows_reach_less_far_in_larger_batches():
    distances = cdist(np.arange(40.0)[:, None], np.arange(40.0)[:, None], "sqeuclidean")
    assert _reach(distances, 2) > _reach(distances, 10) > 0
    assert _reach(np.zeros((5, 5)), 2) == 1


def test_outliers_come_last():
    is_outlier = np.arange(10) >= 8
    densities = np.arange(10.0)
    chosen = suggest_rows(log_posteriors(np.full(10, 0.5)), np.zeros((10, 1)), is_outlier, densities, 10)[0]
    assert chosen[8:].tolist() == [9, 8]
    assert sorted(chosen[:8]) == list(range(8))
    assert suggest_rows(log_posteriors([0.5]), np.zeros((1, 1)), np.array([True]), np.zeros(1), 1)[0].tolist() == [0]


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

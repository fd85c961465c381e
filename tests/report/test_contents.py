"""What a report tells, checked against direct computations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from safespn import SafeSPNClassifier
from safespn.report import collect_report, render_report
from safespn.report.comparison import compare, compare_joints
from safespn.report.features import relevances
from safespn.report.learning_curve import CurvePoint, Evaluation
from safespn.report.quality import area_error, measure_shift
from safespn.report.rows import (
    comparable_densities,
    disagreements,
    queries,
    unlikely_rows,
    usual_cell_densities,
)
from safespn.summaries import feature_density
from safespn.tables import UNLABELLED, ColumnType, TrainingTable

CLASSES = np.array(["a", "b"], dtype=object)


def training_table(n: int = 90, n_labelled: int = 30, seed: int = 0) -> TrainingTable:
    """Column u tells the classes apart, v does not, kind does a little."""
    generator = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    features = pd.DataFrame(
        {
            "u": generator.normal(3.0 * codes, 1.0),
            "v": generator.normal(size=n),
            "kind": np.where(generator.random(n) < 0.3 + 0.4 * codes, "x", "y"),
        }
    )
    labels = CLASSES[codes].copy()
    labels[n_labelled:] = UNLABELLED
    types = [ColumnType("u", "continuous"), ColumnType("v", "continuous"), ColumnType("kind", "categorical", "2")]
    return TrainingTable("somewhere", "letter", features, labels, types)


def fitted(table: TrainingTable) -> SafeSPNClassifier:
    return SafeSPNClassifier(network="blocks", unlabeled=UNLABELLED, random_state=0).fit(table.features, table.labels)


@pytest.fixture(scope="module")
def example():
    table = training_table()
    classifier = fitted(table)
    encoded = np.asarray(classifier._encoder.encode(table.features), dtype=float)
    return table, classifier, encoded


def test_report_of_a_usual_fit(example):
    table, classifier, _ = example
    report = collect_report(classifier, table)
    assert (report.n_rows, report.n_labelled, report.n_unlabelled) == (90, 30, 60)
    assert report.class_counts == {"a": 15, "b": 15}
    assert report.safety is classifier.safety_
    assert report.n_disagreements == round(classifier.safety_.disagreement * 60)
    assert all(table.labels[query.row] == UNLABELLED for query in report.queries)
    assert report.shown_columns[0] == "u"
    page = render_report(report)
    assert "{{" not in page
    assert "nan" not in page.lower().replace("nano", "")


def test_relevance_is_the_fall_of_the_log_posterior(example):
    table, classifier, encoded = example
    known = table.is_labelled
    codes = np.searchsorted(classifier.classes_, table.labels[known].astype(str))
    measured = {each.name: each.loss for each in relevances(classifier, ["u", "v", "kind"], encoded[known], codes)}
    without = table.features[known].assign(u=np.nan)
    rows = np.arange(len(codes))
    expected = (
        classifier.predict_log_proba(table.features[known])[rows, codes]
        - classifier.predict_log_proba(without)[rows, codes]
    )
    assert measured["u"] == pytest.approx(expected.mean())
    assert measured["u"] > 5 * abs(measured["v"])


def test_densities_integrate_to_one(example):
    _, classifier, encoded = example
    codes = np.full(len(encoded), -1)
    continuous = feature_density(classifier, 0, "u", encoded, codes)
    step = continuous.values[1] - continuous.values[0]
    np.testing.assert_allclose(continuous.densities.sum(axis=0) * step, 1.0, atol=0.05)
    categorical = feature_density(classifier, 2, "kind", encoded, codes)
    np.testing.assert_allclose(categorical.densities.sum(axis=0), 1.0)
    assert categorical.categories == ["x", "y"]


def test_scores_by_hand():
    truth = np.array([0, 0, 1, 1])
    supervised = np.log(np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]]))
    safe = np.log(np.array([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]))
    result = compare_joints(supervised - 3.0, safe - 1.0, truth, 2)
    assert (result.scores["supervised"].accuracy, result.scores["safe"].accuracy) == (0.5, 0.75)
    assert result.accuracy_gain == 0.25
    assert result.accuracy_gain_error == pytest.approx(0.25)
    assert result.scores["safe"].log_loss == pytest.approx(-np.log([0.8, 0.6, 0.8, 0.3]).mean())
    assert result.scores["safe"].log_likelihood == pytest.approx(np.log([0.8, 0.6, 0.8, 0.3]).mean() - 1.0)
    confidence = np.array([0.8, 0.6, 0.8, 0.7]).mean()
    assert result.scores["safe"].bins == [(pytest.approx(confidence), 0.75, 4)]
    assert result.scores["safe"].calibration_error == pytest.approx(abs(confidence - 0.75))


def test_comparison_needs_two_labels_of_each_class_and_unlabelled_rows():
    table = training_table(30, 30)
    assert "no unlabelled rows" in compare(fitted(table), table, 0).verdict
    table = training_table(30, 10)
    table.labels[1:10:2] = UNLABELLED
    table.labels[1] = "b"
    assert "class 'b' has a single labelled row" in compare(fitted(table), table, 0).verdict


def test_verdicts():
    truth = np.arange(100) % 2
    right = np.where(np.eye(2)[truth] == 1, np.log(0.8), np.log(0.2))
    wrong = right[:, ::-1]
    assert compare_joints(wrong, right, truth, 5).verdict.startswith("The unlabelled rows helped: +100.0 points")
    assert compare_joints(right, wrong, truth, 5).verdict.startswith("The unlabelled rows did harm: -100.0 points")
    assert "no difference" in compare_joints(right, right, truth, 5).verdict
    unsure = np.log(np.exp(right) * 0.1 + 0.45)
    assert "probabilities better" in compare_joints(unsure, right, truth, 5).verdict


def test_disagreements_largest_change_first():
    supervised = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    safe = np.array([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    listed, n = disagreements(supervised, safe, np.array([4, 5, 6, 7]), CLASSES)
    assert n == 2
    assert [each.row for each in listed] == [6, 5]
    assert (listed[0].supervised, listed[0].safe, listed[0].safe_probability) == ("a", "b", 0.9)


def test_queries_are_uncertain_and_typical():
    probabilities = np.array([[0.5, 0.5], [0.5, 0.5], [0.99, 0.01], [0.6, 0.4]])
    densities = np.array([-100.0, -2.0, -1.0, -3.0])
    listed = queries(probabilities, densities, np.arange(4), CLASSES)
    assert [each.row for each in listed][:2] == [1, 3]
    assert listed[0].density_rank == pytest.approx(2 / 3)


def test_least_likely_rows_and_their_cells(example):
    _, classifier, encoded = example
    changed = encoded.copy()
    changed[17, 1] = 40.0
    densities = np.logaddexp.reduce(classifier.spn_.log_joint(changed), axis=1)
    usual = usual_cell_densities(classifier, encoded)
    listed = unlikely_rows(classifier, ["u", "v", "kind"], changed, densities, usual)
    assert (listed[0].row, listed[0].column) == (17, "v")
    assert listed[0].log_density == pytest.approx(densities.min())
    assert listed[0].surprise > 50
    assert len(listed) == 10
    assert unlikely_rows(classifier, ["u", "v", "kind"], changed, densities, None)[0].column == ""


def test_gaps_make_rows_neither_likelier_nor_less_likely(example):
    _, classifier, encoded = example
    usual = usual_cell_densities(classifier, encoded)
    gaps = encoded.copy()
    gaps[::2, 1] = np.nan
    densities = np.logaddexp.reduce(classifier.spn_.log_joint(gaps), axis=1)
    comparable = comparable_densities(densities, gaps, usual)
    assert densities[::2].mean() - densities[1::2].mean() > 1.0
    assert comparable[::2].mean() == pytest.approx(comparable[1::2].mean(), abs=0.4)
    np.testing.assert_array_equal(comparable[1::2], densities[1::2])


def test_shift_is_noticed_where_there_is_one():
    generator = np.random.default_rng(0)
    table = generator.normal(size=(300, 3))
    labelled = np.arange(300) < 80
    assert not measure_shift(["a", "b", "c"], table, labelled, 0).is_noticeable
    table[labelled, 1] += 1.5
    shift = measure_shift(["a", "b", "c"], table, labelled, 0)
    assert shift.is_noticeable
    assert shift.columns[0] == "b"
    assert shift.area == pytest.approx(norm.cdf(1.5 / np.sqrt(2)), abs=0.08)
    assert "it takes 10" in measure_shift(["a", "b", "c"], table, np.arange(300) < 5, 0).reason


def test_error_of_an_area_against_simulation():
    generator = np.random.default_rng(0)
    areas = [(generator.normal(1.0, 1.0, 40)[:, None] > generator.normal(0.0, 1.0, 60)).mean() for _ in range(2_000)]
    assert area_error(float(np.mean(areas)), 40, 60) == pytest.approx(np.std(areas), rel=0.1)


def _point(n: int, supervised: float, safe: float, loss: float = 0.5) -> CurvePoint:
    noise = np.linspace(-0.02, 0.02, 10)
    return CurvePoint(
        n, supervised + noise, safe + noise[::-1] / 4 + noise, np.full(10, 0.5), np.full(10, loss) + noise / 9
    )


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.85)], "Yes, use the unlabelled rows: +5.0 to +10.0 points"),
        ([_point(10, 0.8, 0.7)], "No, leave the unlabelled rows out: -10.0 points of accuracy, harm in 100 %"),
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.7)], "It depends"),
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.8)], "Yes, with 10 labels"),
        ([_point(10, 0.8, 0.7), _point(20, 0.8, 0.8)], "Rather not: accuracy falls with 10 labels"),
        ([_point(10, 0.8, 0.8, loss=0.3)], "Use them if probabilities matter"),
        ([_point(10, 0.8, 0.8)], "It makes no clear difference"),
    ],
)
def test_recommendations(points, words):
    assert words in Evaluation("t", "y", 10, 100, 50, 10, points).recommendation


def test_a_gain_below_the_base_rate_is_no_recommendation():
    points = [_point(10, 0.5, 0.6)]
    assert "No better than always guessing" in Evaluation("t", "y", 10, 100, 50, 10, points, 0.65).recommendation

"""What a report tells, checked against direct computations."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from safespn import SafeSPNClassifier
from safespn.report import collect_report, quick_comparison, render_report, write_report
from safespn.report import held_out as held_out_module
from safespn.report.comparison import compare, recall_and_precision
from safespn.report.features import ColumnEffects, column_effects, relevances
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY, HeldOut
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
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


def test_listed_rows_are_explained_and_gaps_have_a_next_measurement():
    table = training_table()
    table.features.loc[40:60, "u"] = np.nan
    table.features.loc[50:55, "kind"] = None
    classifier = fitted(table)
    report = collect_report(classifier, table)
    rows = {query.row for query in report.queries} | {each.row for each in report.disagreements}
    assert set(report.whys) == rows
    row = next(query.row for query in report.queries)
    exact = classifier.explain(table.features.iloc[[row]])
    for name, value in report.whys[row]:
        assert value == pytest.approx(exact.values[0, exact.columns.index(name)])
    assert 0 < len(report.measurements) <= 10
    drops = classifier.next_measurement(table.features)
    for each in report.measurements:
        assert np.isnan(drops[each.row]).sum() == 0
        assert each.drop == pytest.approx(drops[each.row].max(), rel=0.02)
        assert pd.isna(table.features[each.column].iloc[each.row])
    assert [each.drop for each in report.measurements] == sorted((e.drop for e in report.measurements), reverse=True)
    page = render_report(report)
    assert "because of" in page
    assert "Cells most worth measuring" in page


def test_columns_are_ranked_by_rows_with_unseen_labels(example):
    table, classifier, _ = example
    ranked = collect_report(classifier, table).relevances
    assert ranked[0].name == "u"
    assert ranked[0].is_clear
    assert ranked[0].error > 0
    assert not next(each for each in ranked if each.name == "v").is_clear


def test_where_labels_are_noise_no_column_is_said_to_matter():
    table = training_table(120, 60)
    table.labels[:60] = np.random.default_rng(1).permutation(table.labels[:60])
    report = collect_report(fitted(table), table)
    assert not any(each.is_clear for each in report.relevances)
    page = render_report(report)
    assert "no column's effect differs significantly from zero" in page
    assert not report.comparison.beats_guessing
    assert '<p class="verdict bad">' in page
    assert "plain-note" in page  # the certificate is not green beside predictions that are guesses


def test_effects_of_exchanged_cells_by_hand(example):
    table, classifier, encoded = example
    known = table.is_labelled
    codes = np.searchsorted(classifier.classes_, table.labels[known].astype(str))
    generator = np.random.default_rng(0)
    effects = column_effects(classifier, [0, 2], encoded[known], codes, encoded[~known], generator)
    assert effects.seen.shape == effects.expected.shape == (30, 2)
    assert effects.elsewhere.shape == (60, 2)
    assert (effects.expected >= -1e-12).all()  # a divergence
    alone = column_effects(classifier, [0], encoded[known], codes, encoded[known][:0], generator)
    assert alone.seen[:, 0].mean() == pytest.approx(effects.seen[:, 0].mean(), rel=0.5)


def test_relevances_follow_the_labels_where_they_are_many_and_the_fits_where_they_are_few():
    rng = np.random.default_rng(0)
    elsewhere = np.tile([0.3, 0.2, 0.1], (100, 1))
    noisy = ColumnEffects(rng.normal([0.3, 0.2, 0.1], 3.0, (20, 3)), np.tile([0.3, 0.2, 0.1], (20, 1)), elsewhere)
    assert [each.name for each in relevances(["a", "b", "c"], [noisy])] == ["a", "b", "c"]
    sure = ColumnEffects(rng.normal([0.1, 0.2, 0.3], 0.01, (400, 3)), np.tile([0.3, 0.2, 0.1], (400, 1)), elsewhere)
    ranked = relevances(["a", "b", "c"], [sure])
    assert [each.name for each in ranked] == ["c", "b", "a"]
    assert ranked[0].loss == pytest.approx(0.3, abs=0.02)
    assert all(each.is_clear for each in ranked)


def test_densities_integrate_to_one(example):
    _, classifier, encoded = example
    codes = np.full(len(encoded), -1)
    continuous = feature_density(classifier, 0, "u", encoded, codes)
    step = continuous.values[1] - continuous.values[0]
    np.testing.assert_allclose(continuous.densities.sum(axis=0) * step, 1.0, atol=0.05)
    categorical = feature_density(classifier, 2, "kind", encoded, codes)
    np.testing.assert_allclose(categorical.densities.sum(axis=0), 1.0)
    assert categorical.categories == ["x", "y"]


def held_out(truth, supervised, safe, base=None) -> HeldOut:
    """Predictions of two models of ours, and of others that know the class proportions at best."""
    others = np.log(np.tile([0.51, 0.49], (len(truth), 1))) if base is None else base
    peers = {BASE_RATE: others, LOGISTIC: others, FOREST: others}
    return HeldOut(5, np.asarray(truth), {**peers, LABELS_ONLY: supervised, ALL_ROWS: safe})


def compared(truth, supervised, safe, base=None, gains=None):
    rule = np.eye(2) if gains is None else np.array(gains)
    return compare(held_out(truth, supervised, safe, base), ["a", "b"], rule, len(truth))


def test_scores_by_hand():
    truth = np.array([0, 0, 1, 1])
    supervised = np.log(np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]]))
    safe = np.log(np.array([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]]))
    result = compared(truth, supervised, safe)
    assert (result.scores[LABELS_ONLY].accuracy, result.scores[ALL_ROWS].accuracy) == (0.5, 0.75)
    assert result.scores[BASE_RATE].accuracy == 0.5
    assert result.guess == "a"
    assert result.gains[LABELS_ONLY].accuracy == 0.25
    assert result.gains[LABELS_ONLY].accuracy_error == pytest.approx(0.25)
    assert result.scores[ALL_ROWS].log_loss == pytest.approx(-np.log([0.8, 0.6, 0.8, 0.3]).mean())
    confidence = np.array([0.8, 0.6, 0.8, 0.7]).mean()
    assert result.scores[ALL_ROWS].bins == [(pytest.approx(confidence), 0.75, 4)]
    assert result.scores[ALL_ROWS].calibration_error == pytest.approx(abs(confidence - 0.75))
    assert result.confusion.tolist() == [[2, 0], [1, 1]]
    rates = recall_and_precision(result.confusion)
    assert (rates[0][0], rates[0][2], rates[1][0], rates[1][2]) == (1.0, pytest.approx(2 / 3), 0.5, 1.0)
    assert result.curves.area == 1.0 - 1 / 4
    careful = compared(truth, supervised, safe, gains=[[0, -4], [0, 1]])  # class b only where it is above 0.8
    assert careful.confusion.tolist() == [[2, 0], [2, 0]]


def test_quality_needs_two_labels_of_each_class():
    table = training_table(30, 10)
    table.labels[1:10:2] = UNLABELLED
    table.labels[1] = "b"
    report = collect_report(fitted(table), table)
    assert "class 'b' has 1 labelled rows" in report.comparison.quality
    assert "Cannot tell" in render_report(report)


def test_without_unlabelled_rows_quality_is_told_all_the_same():
    table = training_table(40, 40)
    report = collect_report(fitted(table), table)
    assert LABELS_ONLY not in report.comparison.scores
    assert report.comparison.beats_guessing
    assert "there are none" in report.comparison.verdict


def test_verdicts():
    truth = np.arange(100) % 2
    right = np.where(np.eye(2)[truth] == 1, np.log(0.8), np.log(0.2))
    wrong = right[:, ::-1]
    assert compared(truth, wrong, right).verdict.startswith("The unlabelled rows helped: +100.0 points")
    assert compared(truth, right, wrong).verdict.startswith("The unlabelled rows did harm: -100.0 points")
    assert "100 labelled rows cannot show" in compared(truth, right, right).verdict
    assert "right on the very same held-out rows" in compared(truth, right, right).verdict
    assert "(standard error 0.0)" not in compared(truth, right, right).verdict
    unsure = np.log(np.exp(right) * 0.1 + 0.45)
    assert "probabilities better" in compared(truth, unsure, right).verdict
    assert "little" not in compared(truth, unsure, right).verdict


def test_predictions_no_better_than_guessing_are_called_so():
    truth = (np.arange(100) < 30).astype(int)
    base = np.log(np.tile([0.7, 0.3], (100, 1)))
    useless = compared(truth, base, base, base)
    assert useless.quality.startswith("No better than always guessing 'a': right in 70.0 %")
    assert not useless.beats_guessing
    some = base.copy()
    some[:15] = np.log([0.55, 0.45])  # the same decisions, with some information
    assert "The probabilities do carry information" in compared(truth, base, some, base).quality
    good = np.where(np.eye(2)[truth] == 1, np.log(0.8), np.log(0.2))
    assert compared(truth, base, good, base).beats_guessing


def test_better_than_guessing_is_a_question_of_one_direction():
    truth = np.repeat([0, 1], [43, 17])
    base = np.log(np.tile([0.7, 0.3], (60, 1)))
    right = np.repeat([True, False, True, False], [38, 5, 13, 4])  # 85 % against 72 %: 1.9 standard errors
    ours = np.log(np.where(np.eye(2)[np.where(right, truth, 1 - truth)] == 1, 0.8, 0.2))
    result = compared(truth, base, ours, base)
    assert result.gains[BASE_RATE].accuracy / result.gains[BASE_RATE].accuracy_error == pytest.approx(1.93, abs=0.02)
    assert result.beats_guessing


def test_a_simple_model_that_does_better_is_named():
    truth = (np.arange(100) < 30).astype(int)
    base = np.log(np.tile([0.7, 0.3], (100, 1)))
    good = np.where(np.eye(2)[truth] == 1, np.log(0.8), np.log(0.2))
    found = held_out(truth, base, base, base)
    found.log_posteriors[FOREST] = good
    quality = compare(found, ["a", "b"], np.eye(2), 100).quality
    assert "A random forest on the labelled rows alone does better: 100.0 %" in quality


def test_disagreements_largest_change_first():
    supervised = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    safe = np.array([[0.8, 0.2], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    listed, n = disagreements(supervised, safe, np.array([4, 5, 6, 7]), CLASSES)
    assert n == 2
    assert [each.row for each in listed] == [6, 5]
    assert (listed[0].supervised, listed[0].safe, listed[0].safe_probability) == ("a", "b", 0.9)


def test_rows_to_label_are_those_that_the_classifier_suggests(example):
    table, classifier, _ = example
    unknown = np.nonzero(~table.is_labelled)[0]
    features = table.features.iloc[unknown]
    probabilities, densities = classifier.predict_proba(features), classifier.score_samples(features)
    listed = queries(classifier, features, probabilities, densities, unknown, 0)
    assert [each.row for each in listed] == unknown[classifier.suggest_labels(features, 10)].tolist()
    assert listed[0].probability == pytest.approx(probabilities[listed[0].row - 30].max())
    assert listed[0].density_rank == pytest.approx((densities < densities[listed[0].row - 30]).mean() * 60 / 59)


def test_a_histogram_of_all_rows_lies_behind_densities(example):
    _, classifier, encoded = example
    edges, density = feature_density(classifier, 0, "u", encoded, np.full(len(encoded), -1)).histogram
    assert (density * np.diff(edges)).sum() == pytest.approx(1.0)
    assert edges[0] == encoded[:, 0].min()
    assert len(feature_density(classifier, 2, "kind", encoded, np.full(len(encoded), -1)).histogram[0]) == 0


def test_a_report_in_python(example, tmp_path):
    table, _, _ = example
    numbers = table.features[["u", "v"]].to_numpy()
    labels = np.where(table.labels == "a", 3, np.where(table.labels == "b", 11, -1))
    clf = SafeSPNClassifier(network="blocks", random_state=0).fit(numbers, labels)
    clf.report(tmp_path / "report.html", numbers, labels, target="number")
    page = (tmp_path / "report.html").read_text()
    assert "Predicting number" in page
    assert "column 0" in page
    assert not hasattr(clf, "feature_names_in_")
    with pytest.raises(ValueError, match="row 0 has the label 5"):
        write_report(clf, numbers, np.where(labels == 3, 5, labels), tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


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


def test_rows_of_frames_with_an_index_are_called_by_it(example, tmp_path):
    table, classifier, _ = example
    frame = table.features.set_axis([f"patient {number}" for number in range(len(table.features))])
    classifier.report(tmp_path / "r.html", frame, table.labels)
    page = (tmp_path / "r.html").read_text()
    assert len(set(re.findall(r'<th scope="row" class="n">patient \d+</th>', page))) > 10
    assert not re.search(r'<th scope="row" class="n">\d+</th>', page)


def test_minus_signs_and_names_of_columns(example):
    table, classifier, _ = example
    report = collect_report(classifier, table)
    many = [ColumnType(f"c{number}", "continuous") for number in range(70)]
    page = render_report(replace(report, columns=many))
    assert "c59 and 10 more" in page
    shown = re.findall(r'<p class="verdict[^>]*>(.*?)</p>', page)
    assert "-" not in "".join(shown).replace("held-out", "")


def test_fits_for_a_comparison_use_part_of_many_rows(monkeypatch):
    table = training_table(140, 60)
    classifier = fitted(table)
    monkeypatch.setattr(held_out_module, "MOST_LABELLED", 30)
    monkeypatch.setattr(held_out_module, "MOST_UNLABELLED", 50)
    monkeypatch.setattr(held_out_module, "FEWEST_UNLABELLED", 10)
    comparison = quick_comparison(classifier, table)
    assert (comparison.n_rows, comparison.n_unlabelled, comparison.n_folds) == (30, 50, 3)
    assert comparison.to_dict()["models"].keys() == {
        *("class_proportions", "logistic_regression", "random_forest", "labels_only", "all_rows")
    }


def test_notebooks_show_tables(example):
    _, classifier, _ = example
    page = classifier.safety_._repr_html_()
    assert "certified, in likelihood" in page
    assert all(escape(promise) in page for promise in classifier.safety_.promises)
    assert f"<td>{classifier.members_[0].weight:.3f}</td>" in classifier.members_._repr_html_()
    assert isinstance(classifier.members_, tuple)

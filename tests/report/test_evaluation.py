"""What evaluations say of trials with hidden labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from safespn import SafeSPNClassifier
from safespn.report.curve_point import CurvePoint, row_variance
from safespn.report.evaluation import Evaluation
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY
from safespn.report.learning_curve import default_sizes
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
from tests.report.test_contents import training_table


def _point(n: int, supervised: float, safe: float, loss: float = 0.5, peer: float = 0.6, base: float = 0.55):
    noise = np.linspace(-0.02, 0.02, 10)
    accuracies = {
        BASE_RATE: np.full(10, base),
        LOGISTIC: peer + noise,
        FOREST: peer - 0.1 + noise,
        LABELS_ONLY: supervised + noise,
        ALL_ROWS: safe + noise[::-1] / 4 + noise,
    }
    losses = {name: np.full(10, 0.5) for name in accuracies} | {BASE_RATE: np.full(10, 0.65)}
    return CurvePoint(n, accuracies, losses | {ALL_ROWS: np.full(10, loss) + noise / 9})


def evaluation(*points: CurvePoint) -> Evaluation:
    return Evaluation("t", "y", 10, 100, 50, 10, list(points))


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.85)], "Yes, the unlabelled rows help: +5.0 to +10.0 points"),
        ([_point(10, 0.8, 0.7)], "No, leave the unlabelled rows out: -10.0 points of accuracy, harm in 100 %"),
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.7)], "It depends"),
        ([_point(10, 0.7, 0.8), _point(20, 0.8, 0.8)], "Yes, with 10 labels"),
        ([_point(10, 0.8, 0.7), _point(20, 0.8, 0.8)], "Rather not: accuracy falls with 10 labels"),
        ([_point(10, 0.8, 0.8, loss=0.3)], "They make the probabilities better"),
        ([_point(10, 0.8, 0.8)], "no difference of more than 2 points"),
        ([_point(10, 0.8, 0.8, loss=0.3, peer=0.9)], "But with 10 labels a logistic regression on the labels alone"),
    ],
)
def test_recommendations(points, words):
    assert words in evaluation(*points).recommendation


def test_a_gain_below_the_base_rate_is_no_recommendation():
    text = evaluation(_point(10, 0.5, 0.6, base=0.65)).recommendation
    assert "No better than always guessing" in text
    text = evaluation(_point(10, 0.4, 0.5, base=0.55, peer=0.75)).recommendation
    assert "A logistic regression on 10 labels is right in 75 %" in text
    unsure = _point(10, 0.5, 0.56)
    unsure.accuracies[ALL_ROWS][:] = 0.56 + np.linspace(-0.2, 0.2, 10)
    assert evaluation(unsure).recommendation.startswith("Not clearly better than always guessing")


def test_better_probabilities_that_are_worse_than_proportions_are_no_recommendation():
    point = _point(10, 0.8, 0.8, loss=0.9)
    worse = CurvePoint(10, point.accuracies, point.log_losses | {LABELS_ONLY: np.full(10, 1.2)})
    assert "probabilities better" not in evaluation(worse).recommendation


def test_a_gain_that_only_makes_up_for_a_weak_start_is_called_so():
    text = evaluation(_point(10, 0.7, 0.78, peer=0.8)).recommendation
    assert text.startswith("Yes, the unlabelled rows help: +8.0 points")
    assert "But with 10 labels a logistic regression on the labels alone is as good or better (80.0 %" in text


def test_what_trials_cannot_show_is_not_told():
    wide = np.linspace(-0.2, 0.2, 10)
    point = _point(10, 0.8, 0.8)
    unsure = CurvePoint(10, point.accuracies | {ALL_ROWS: 0.81 + wide}, point.log_losses)
    assert unsure.accuracy_gain[1] > 0.03
    assert evaluation(unsure).recommendation.startswith("Cannot tell: the change of accuracy is between -")


def test_trials_that_share_labels_count_for_less():
    point = _point(10, 0.7, 0.8)
    shared = CurvePoint(10, point.accuracies, point.log_losses, overlap=1.0)
    assert shared.accuracy_gain[1] == pytest.approx(point.accuracy_gain[1] * np.sqrt(1 + 10 / 4))


def test_numbers_of_labels_go_up_to_all_there_are():
    assert default_sizes(training_table(100, 50)) == [10, 20, 40]
    assert default_sizes(training_table(100, 100)) == [10, 20, 50]


def test_verdicts_in_a_word():
    verdicts = [
        evaluation(_point(10, 0.7, 0.8), _point(20, 0.8, 0.85)).verdict,
        evaluation(_point(10, 0.8, 0.7)).verdict,
        evaluation(_point(10, 0.8, 0.8, loss=0.3)).verdict,
        evaluation(_point(10, 0.8, 0.8, loss=0.6)).verdict,
        evaluation(_point(10, 0.8, 0.8)).verdict,
        evaluation(_point(10, 0.5, 0.5)).verdict,
    ]
    assert verdicts == [
        "helps",
        "harms",
        "better probabilities",
        "worse probabilities",
        "no difference",
        "no better than guessing",
    ]


def test_worse_probabilities_are_told_beside_better_accuracy():
    assert "But the probabilities get worse (log loss +0.4" in evaluation(_point(10, 0.7, 0.8, loss=0.9)).recommendation


def test_several_numbers_of_labels_together_show_what_one_does_not():
    noise = np.array([-0.05, 0.05] * 5)
    points = []
    for number, sign in ((10, 1), (20, -1)):
        point = _point(number, 0.7, 0.72)
        points.append(
            CurvePoint(
                number,
                point.accuracies | {LABELS_ONLY: np.full(10, 0.7), ALL_ROWS: 0.72 + sign * noise},
                point.log_losses,
            )
        )
    assert evaluation(points[0]).verdict == "cannot tell"
    assert evaluation(*points).verdict == "helps"


def test_rows_that_are_scored_again_and_again_are_no_new_rows():
    generator = np.random.default_rng(0)
    noise, of_rows = generator.normal(size=(400, 300)), generator.normal(size=300)
    assert row_variance(noise) < 0.1 / 300  # independent cells: all doubt is in the spread of the trials
    assert row_variance(noise + 2 * of_rows) == pytest.approx(4 * of_rows.var(ddof=1) / 300, rel=0.1)
    some = np.where(generator.random(noise.shape) < 0.5, noise + 2 * of_rows, np.nan)
    assert row_variance(some) == pytest.approx(4 * of_rows.var(ddof=1) / 300, rel=0.1)
    point = _point(10, 0.7, 0.8)
    sure = point.accuracy_gain[1]
    unsure = CurvePoint(10, point.accuracies, point.log_losses, row_variances={LABELS_ONLY: (3 * sure**2, 0.0)})
    assert unsure.accuracy_gain[1] == pytest.approx(2 * sure)


def test_plain_em_is_shown_beside():
    point = _point(10, 0.7, 0.8)
    told = CurvePoint(10, point.accuracies, point.log_losses, unguarded_gains=np.array([-0.1, 0.05, -0.02]))
    assert evaluation(told).sentences[1] == (
        "Without the guard (plain EM) the unlabelled rows change accuracy by -2.3 points on average, and cost more "
        "than a point in 2 of 3 fits."
    )
    assert len(evaluation(point).sentences) == 1


@pytest.mark.slow
def test_evaluation_in_python():
    table = training_table(100, 40)
    labels = pd.Series(np.where(table.labels == "", None, table.labels), name="letter")
    clf = SafeSPNClassifier(network="blocks", random_state=0, class_weight={"a": 2.0, "b": 1.0})
    found = clf.evaluate(table.features, labels, labelled=[8, 16], trials=2)
    assert not hasattr(clf, "classes_")
    frame = found.to_frame()
    assert frame.shape == (10, 6)
    assert frame["labels"].tolist() == [8] * 5 + [16] * 5
    ours, before = (frame.query(f"model == {name!r}")["accuracy"].to_numpy() for name in (ALL_ROWS, LABELS_ONLY))
    assert frame.query("model == 'labels only'")["gain_of_all_rows"].to_numpy() == pytest.approx(ours - before)
    assert found.target == "letter"
    assert all(text in str(found) and text.split("'")[0] in found._repr_html_() for text in found.sentences)
    assert len(found.sentences) == 2
    assert len(found.points[0].unguarded_gains) == 2
    again = clf.evaluate(table.features.to_numpy()[:, :2].astype(float), labels.to_list(), labelled=[8, 16], trials=2)
    assert again.target == "the class"
    assert [point.n_labelled for point in again.points] == [8, 16]


@pytest.mark.slow
def test_an_evaluation_is_drawn():
    pytest.importorskip("matplotlib").use("agg")
    axes = evaluation(_point(10, 0.7, 0.8), _point(20, 0.8, 0.85)).plot()
    drawn = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert drawn["safespn, all rows"] == pytest.approx([0.8, 0.85])
    assert len(drawn) == 5


def test_evaluations_that_make_no_sense_are_refused():
    table = training_table(40, 20)
    labels = np.where(table.labels == "", None, table.labels)
    clf = SafeSPNClassifier(network="blocks")
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        clf.evaluate(table.features, labels, trials=0)
    with pytest.raises(ValueError, match="cannot keep 1000 labels"):
        clf.evaluate(table.features, labels, labelled=[1000], trials=1)
    with pytest.raises(ValueError, match="no labelled row"):
        clf.evaluate(table.features, np.full(40, None))
    with pytest.raises(ValueError, match="one label for each of 40 rows, got 39"):
        clf.evaluate(table.features, labels[:-1])

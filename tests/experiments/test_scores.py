import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss
from sklearn.svm import LinearSVC

from safespn import SafeSPNClassifier
from safespn.experiments.protocol import draw_trial
from safespn.experiments.scores import certificate, score_model


@pytest.fixture(scope="module")
def trial():
    return draw_trial(*load_breast_cancer(return_X_y=True), 0)


def test_scores_are_scikit_learns(trial):
    model = LogisticRegression(max_iter=1000).fit(trial.labelled, trial.labelled_classes)
    scores = score_model(model, trial)
    assert trial.minority == 0
    assert scores["f1"] == f1_score(trial.test_classes, model.predict(trial.test), pos_label=0)
    assert scores["log_loss"] == pytest.approx(log_loss(trial.test_classes, model.predict_proba(trial.test)))
    assert scores["accuracy"] == model.score(trial.test, trial.test_classes)
    assert set(scores) == {"f1", "macro_f1", "accuracy", "log_loss", "f1_decision"}


def test_a_method_without_probabilities_gets_what_it_can_be_scored_by(trial):
    model = LinearSVC().fit(trial.labelled, trial.labelled_classes)
    assert set(score_model(model, trial)) == {"f1", "macro_f1", "accuracy"}


def test_more_than_two_classes_are_averaged():
    trial = draw_trial(*load_iris(return_X_y=True), 0)
    model = LogisticRegression(max_iter=1000).fit(trial.labelled, trial.labelled_classes)
    scores = score_model(model, trial)
    assert scores["f1"] == scores["macro_f1"] == scores["f1_decision"]


def test_missing_probabilities_count_as_equal_ones(trial):
    class Undecided:
        def predict(self, rows):
            return np.zeros(len(rows), dtype=int)

        def predict_proba(self, rows):
            return np.full((len(rows), 2), np.nan)

    assert score_model(Undecided(), trial)["log_loss"] == pytest.approx(np.log(2))


def test_the_certificate_is_recomputed_from_the_two_models():
    trial = draw_trial(*load_iris(return_X_y=True), 1)
    rows = np.concatenate([trial.labelled, trial.unlabelled])
    codes = np.concatenate([trial.labelled_classes, np.full(len(trial.unlabelled), -1)])
    model = SafeSPNClassifier(random_state=0).fit(rows, codes)
    found = certificate(model, rows, codes)
    assert found["worst_case"] == pytest.approx(model.safety_.worst_case)
    assert found["worst_case"] >= 0
    assert found["fallback"] == 0
    joint = model.joint_log_likelihood(trial.test)
    expected = joint[np.arange(len(trial.test)), trial.test_classes].mean()
    assert score_model(model, trial)["log_likelihood"] == pytest.approx(expected)

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import TunedThresholdClassifierCV

from safespn import SafeSPNClassifier
from safespn.decisions import decide, f1_threshold, gains_of
from safespn.model_selection import WithUnlabeledRows


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


def imbalanced(n=1500, seed=0):
    """Two overlapping classes of which the second is rare; 150 labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.12).astype(int)
    X = rng.normal(size=(n, 3)) + 1.4 * y[:, None] * [1, 0, 0]
    return X, y, np.where(np.arange(n) < 150, y, -1)


def fitted(**settings):
    X, _, labels = imbalanced()
    return SafeSPNClassifier(network="blocks", random_state=0, **settings).fit(X, labels)


@pytest.fixture(scope="module")
def probable():
    return fitted()


def test_no_rule_with_one_weight_per_class_has_a_higher_mean_f1():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet([4.0, 1.0, 0.4], size=300)

    def score(called):
        one_hot = np.eye(3)[called]
        return np.mean(2 * (one_hot * rows).sum(axis=0) / (one_hot.sum(axis=0) + rows.sum(axis=0)))

    ours = score(decide(rows, gains_of("f1", rows)))
    assert ours > score(rows.argmax(axis=1)) + 0.01
    others = [score((rows * weights).argmax(axis=1)) for weights in rng.dirichlet([1.0, 1.0, 1.0], size=500)]
    assert ours > max(others) - 0.01


def test_named_rules_and_costs_by_hand():
    rows = np.array([[0.8, 0.2], [0.6, 0.4], [0.9, 0.1], [0.5, 0.5]])
    assert decide(rows, gains_of("probable", rows)).tolist() == [0, 0, 0, 0]
    assert decide(rows, gains_of("balanced", rows)).tolist() == [0, 1, 0, 1]  # above the mean, 0.3
    threshold = f1_threshold(rows[:, 1])
    assert decide(rows, gains_of("f1", rows)).tolist() == (rows[:, 1] > threshold).astype(int).tolist()
    assert decide(rows, gains_of([[0, 1], [5, 0]], rows)).tolist() == [1, 1, 0, 1]  # above 1/6


@pytest.mark.parametrize(("rule", "score"), [("f1", f1_score), ("balanced", balanced_accuracy_score)])
def test_a_rule_raises_its_score_and_leaves_probabilities_alone(probable, rule, score):
    X, y, labels = imbalanced()
    clf, hidden = fitted(decision=rule), labels == -1
    np.testing.assert_array_equal(clf.predict_proba(X), probable.predict_proba(X))
    assert score(y[hidden], clf.predict(X[hidden])) > score(y[hidden], probable.predict(X[hidden])) + 0.03
    np.testing.assert_array_equal(clf.predict(X[:1]), clf.predict(X)[:1])
    assert "Accuracy of the most probable classes on these" in str(clf.safety_)


def test_costs_move_the_threshold(probable):
    X, _, _ = imbalanced()
    positive = probable.predict_proba(X)[:, 1]
    clf = fitted(decision=np.array([[0, 1], [4, 0]]))
    np.testing.assert_array_equal(clf.predict(X), (positive > 1 / 5).astype(int))


def test_balanced_weights_are_those_of_rows(probable):
    X, y, labels = imbalanced()
    counts = np.bincount(y[:150])
    weights = np.where(labels == -1, 1.0, (150 / (2 * counts))[y])
    by_hand = SafeSPNClassifier(network="blocks", random_state=0).fit(X, labels, sample_weight=weights)
    clf = fitted(class_weight="balanced")
    np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))
    assert clf.predict_proba(X)[:, 1].mean() > probable.predict_proba(X)[:, 1].mean() + 0.1
    named = fitted(class_weight={0: 150 / (2 * counts[0]), 1: 150 / (2 * counts[1])})
    np.testing.assert_allclose(named.predict_proba(X), clf.predict_proba(X))


def test_weights_of_classes_in_dask(probable):
    da = pytest.importorskip("dask.array")
    X, _, labels = imbalanced()
    settings = {"network": "blocks", "random_state": 0, "class_weight": "balanced"}
    lazy = SafeSPNClassifier(**settings).fit(da.from_array(X, (300, 3)), da.from_array(labels, 300))
    np.testing.assert_allclose(lazy.predict_proba(X), fitted(class_weight="balanced").predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    "settings", [{"decision": "f1"}, {"decision": np.array([[0, 1], [3, 0]])}, {"class_weight": {1: 2.0}}]
)
def test_rules_and_weights_are_saved_with_the_model(settings, tmp_path):
    X, _, _ = imbalanced()
    clf = fitted(**settings)
    clf.save(tmp_path / "model")
    loaded = SafeSPNClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))
    (name, value) = next(iter(settings.items()))
    np.testing.assert_array_equal(getattr(loaded, name), value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"decision": [[0, 1]]}, r"costs for each of 2 true classes \(rows\).* got shape \(1, 2\)"),
        ({"decision": [[0, 1], [1]]}, "costs for each of 2 true classes.* as many numbers in each row"),
        ({"decision": [[0, np.nan], [1, 0]]}, "cost in row 0, column 1 is nan"),
        ({"decision": "fair"}, "decision"),
        ({"class_weight": {7: 2.0}}, "class_weight names the class 7.* expected some of 0, 1"),
        ({"class_weight": {1: 0.0}}, "gives class 1 the weight 0.0; expected a positive number"),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_bad_rules_and_weights_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        fitted(**settings)


def test_meta_estimators_get_labelled_rows_and_the_unlabelled_ones_stay_in_every_fit():
    X, y, labels = imbalanced()
    known = labels != -1
    base = WithUnlabeledRows(SafeSPNClassifier(network="blocks", random_state=0), X[~known])
    tuned = TunedThresholdClassifierCV(base, scoring="f1", cv=3).fit(X[known], y[known])
    assert tuned.estimator_.estimator_.safety_.n_unlabelled == (~known).sum()
    plain = base.fit(X[known], y[known])
    np.testing.assert_array_equal(plain.predict_proba(X), fitted().predict_proba(X))
    hidden = y[~known]
    assert f1_score(hidden, tuned.predict(X[~known])) > f1_score(hidden, plain.predict(X[~known]))
    calibrated = CalibratedClassifierCV(base, cv=3).fit(X[known], y[known])
    assert calibrated.predict_proba(X).shape == (len(X), 2)


def test_unlabelled_rows_in_data_frames_keep_their_types():
    pandas = pytest.importorskip("pandas")
    X, y, labels = imbalanced()
    frame = pandas.DataFrame({"u": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    known = labels != -1
    clf = WithUnlabeledRows(SafeSPNClassifier(network="blocks", random_state=0), frame[~known])
    clf.fit(frame[known], y[known], sample_weight=np.ones(known.sum()))
    assert clf.estimator_.column_types_ == ["continuous", "categorical"]
    assert clf.score(frame[~known], y[~known]) > 0.8

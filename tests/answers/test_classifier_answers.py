"""The answers of fitted classifiers: committees and single networks, mixed columns, gaps, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr

from safespn import EnoughLabelsWarning, SafeSPNClassifier

pd = pytest.importorskip("pandas", reason="needs the extra [cli]")


def table(n=140, seed=0):
    generator = np.random.default_rng(seed)
    ill = generator.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "age": generator.normal(40 + 12 * ill, 8),
            "dose": generator.normal(0, 1, n),
            "smoker": np.where(generator.random(n) < 0.2 + 0.6 * ill, "yes", "no"),
        }
    )
    frame["weight"] = 2 * frame["age"] + generator.normal(0, 5, n)
    return frame, np.where(ill == 1, "ill", "well")


@pytest.fixture(scope="module", params=["blocks", ["blocks", "components"]], ids=str)
def fitted(request):
    X, y = table()
    partly = y.astype(object)
    partly[30:] = None
    weights = np.where(np.arange(len(y)) % 2, 1.0, 2.0)
    classifier = SafeSPNClassifier(network=request.param, random_state=0)
    return classifier.fit(X, partly, sample_weight=weights), X, y


@pytest.fixture(scope="module")
def single():
    X, y = table()
    return SafeSPNClassifier(network="blocks", random_state=0).fit(X, np.where(np.arange(140) < 30, y, "-1")), X, y


def test_explanations_add_up_to_the_log_odds(fitted):
    clf, X, _ = fitted
    rows = X.iloc[:4].copy()
    rows.iloc[1, 2] = None
    rows.iloc[2, 0] = np.nan
    found = clf.explain(rows)
    probability = clf.predict_proba(rows).max(axis=1)
    np.testing.assert_allclose(found.total, np.log(probability / (1 - probability)), rtol=1e-6)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), found.total, atol=1e-9)
    assert found.values[1, 2] == found.values[2, 0] == 0
    assert found.labels.tolist() == clf.predict(rows).tolist()
    assert found.columns == ["age", "dose", "smoker", "weight"]
    well, ill = clf.explain(rows, label="well"), clf.explain(rows, label="ill")
    np.testing.assert_allclose(well.values, -ill.values, atol=1e-9)


def test_probabilities_can_be_explained_too(fitted):
    clf, X, _ = fitted
    rows = X.iloc[:4]
    found = clf.explain(rows, label="ill", of="probability")
    np.testing.assert_allclose(found.total, clf.predict_proba(rows)[:, clf.classes_.tolist().index("ill")], atol=1e-9)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), found.total, atol=1e-9)
    other = clf.explain(rows, label="well", of="probability")
    np.testing.assert_allclose(other.values, -found.values, atol=1e-9)
    with pytest.raises(ValueError, match="'log odds', 'probability', got 'luck'"):
        clf.explain(rows, of="luck")


def test_sufficient_reasons_keep_the_class_probable(fitted):
    clf, X, _ = fitted
    rows = X.iloc[:6].copy()
    rows.iloc[1, 2] = None
    found = clf.sufficient_reason(rows, probability=0.7)
    assert any(reason.is_reached and reason.columns for reason in found)
    for place, reason in enumerate(found):
        alone = rows.iloc[[place]].copy()
        for name in set(rows.columns) - set(reason.columns):
            alone[name] = None if name == "smoker" else np.nan
        expected = clf.predict_proba(alone)[0, clf.classes_.tolist().index(reason.label)]
        assert reason.probability == pytest.approx(expected, abs=1e-9)
        assert reason.is_reached == (expected >= 0.7)


def test_games_have_the_explained_log_odds(fitted):
    clf, X, _ = fitted
    found = clf.explain(X.iloc[:1], label="ill")
    for game in (clf.game(X.iloc[0], label="ill"), clf.game(X.iloc[:1], label="ill")):
        worth = game(np.array([[False] * 4, [True] * 4]))
        np.testing.assert_allclose(worth, [found.base[0], found.total[0]], atol=1e-9)
        assert game.player_names == found.columns
    with pytest.raises(ValueError, match="single row, got 2 rows"):
        clf.game(X.iloc[:2])


def test_drops_of_the_probability_of_a_mistake(fitted):
    clf, X, _ = fitted
    rows = X.iloc[:3].assign(smoker=None)
    states = [rows.assign(smoker=state) for state in ("no", "yes")]
    share = np.exp([clf.score_samples(state) - clf.score_samples(rows) for state in states])
    after = sum(part * (1 - clf.predict_proba(state).max(axis=1)) for part, state in zip(share, states, strict=True))
    expected = 1 - clf.predict_proba(rows).max(axis=1) - after / share.sum(axis=0)
    found = clf.next_measurement(rows, drop_of="cost")
    np.testing.assert_allclose(found[:, 2], np.maximum(expected, 0), atol=1e-9)


def test_nothing_is_suggested_where_labels_bring_nothing(fitted):
    clf, X, _ = fitted
    with pytest.warns(EnoughLabelsWarning, match=r"5 more labels .* by \+0.3 points"):
        assert len(clf.suggest_labels(X, 5, curve={20: 0.80, 40: 0.816})) == 0
    found = clf.suggestions(X, 5, curve={20: 0.7, 40: 0.8})
    np.testing.assert_array_equal(found.rows, clf.suggest_labels(X, 5))
    assert len(found.reasons) == 5
    assert (found.labels == clf.predict(X.iloc[found.rows])).all()


def test_suggestions_for_dask_tables(single, monkeypatch):
    dd = pytest.importorskip("dask.dataframe", reason="needs the extra [dask]")
    da = pytest.importorskip("dask.array")
    clf, X, _ = single
    lazy = dd.from_pandas(X, npartitions=3)
    np.testing.assert_array_equal(clf.suggest_labels(lazy, 6), clf.suggest_labels(X, 6))
    monkeypatch.setattr("safespn.classifier.answers.MOST_ROWS", 50)
    every = np.unique(np.linspace(0, 139, 50).astype(int))
    np.testing.assert_array_equal(clf.suggest_labels(lazy, 6), every[clf.suggest_labels(X.iloc[every], 6)])
    from safespn.classifier.dask_predictions import some_rows

    array = da.from_array(np.arange(20.0).reshape(10, 2), chunks=(4, 2))
    table, rows = some_rows(array, 4)
    np.testing.assert_array_equal(table, np.arange(20.0).reshape(10, 2)[rows])


def test_a_row_without_cells_has_the_class_proportions_as_its_explanation(single):
    clf, _, _ = single
    found = clf.explain(pd.DataFrame({name: [np.nan] for name in ("age", "dose", "smoker", "weight")}))
    assert (found.values == 0).all()
    assert found.base[0] == found.total[0]


def test_the_drop_of_a_category_is_its_sum(fitted):
    clf, X, _ = fitted
    rows = X.iloc[:3].copy()
    rows["smoker"] = None
    drop = clf.next_measurement(rows)
    assert drop.shape == (3, 4)
    assert (drop[:, [0, 1, 3]] == 0).all()
    states = [rows.assign(smoker=state) for state in ("no", "yes")]
    share = np.exp([clf.score_samples(state) - clf.score_samples(rows) for state in states])
    after = sum(part * entr(clf.predict_proba(state)).sum(axis=1) for part, state in zip(share, states, strict=True))
    expected = entr(clf.predict_proba(rows)).sum(axis=1) - after / share.sum(axis=0)
    np.testing.assert_allclose(drop[:, 2], np.maximum(expected, 0), atol=1e-9)
    np.testing.assert_allclose(clf.next_measurement(rows, cost=[1, 1, 4, 1])[:, 2], drop[:, 2] / 4)


def test_age_says_more_than_noise(single):
    clf, X, _ = single
    empty = X.iloc[:1].assign(age=np.nan, dose=np.nan, weight=np.nan, smoker=None)
    drop = clf.next_measurement(empty)[0]
    assert drop[0] > drop[1]
    assert (drop >= 0).all()


def test_suggested_rows_are_distinct_and_not_outliers(fitted):
    clf, X, _ = fitted
    rows = X.iloc[30:].reset_index(drop=True).copy()
    rows.loc[7, ["age", "weight"]] = 900.0, -900.0
    rows.loc[9, "smoker"] = None
    chosen = clf.suggest_labels(rows, 12)
    assert len(set(chosen)) == 12
    assert 7 not in chosen
    np.testing.assert_array_equal(chosen, clf.suggest_labels(rows, 12))
    assert sorted(clf.suggest_labels(rows, len(rows))) == list(range(len(rows)))
    entropy = entr(clf.predict_proba(rows)).sum(axis=1)
    assert entropy[chosen].mean() > entropy.mean()


def test_rows_without_cells_can_be_asked_about(single):
    clf, X, _ = single
    rows = X.iloc[:6].reset_index(drop=True).copy()
    rows.iloc[2] = [np.nan, np.nan, None, np.nan]
    assert sorted(clf.suggest_labels(rows, 6)) == list(range(6))
    assert (clf.next_measurement(rows)[[0, 1, 3]] == 0).all()
    assert clf.next_measurement(rows)[2].max() > 0


@pytest.fixture(scope="module")
def reference():
    X, y = table(seed=5)
    return SafeSPNClassifier(network="blocks", unlabeled=None, random_state=0).fit(X[:12], y[:12])


def test_an_audit_of_all_rows_gives_the_difference_in_accuracy(single, reference):
    clf, X, y = single
    with pytest.warns(match="these are all"):
        rows = clf.audit_rows(X, 10_000, reference=reference)
    assert len(rows)
    found = clf.audit(X, rows, y[rows], reference=reference)
    expected = (clf.predict(X) == y).mean() - (reference.predict(X) == y).mean()
    assert found.interval == pytest.approx((expected, expected))
    assert found.difference == pytest.approx(expected)
    assert found.n_disagreeing == len(rows)
    few = clf.audit_rows(X, 3, random_state=1, reference=reference)
    low, high = clf.audit(X, few, y[few], reference=reference).interval
    assert low <= expected <= high


def test_the_supervised_model_is_the_reference(single):
    clf, X, y = single
    different = np.flatnonzero(clf.predict(X) != clf.supervised_.predict(X))
    if not len(different):
        with pytest.warns(match="no audit is needed"):
            assert len(clf.audit_rows(X, 5)) == 0
    found = clf.audit(X, different, y[different])
    assert found.n_disagreeing == len(different)


def test_audits_of_dask_tables(single, reference):
    dd = pytest.importorskip("dask.dataframe", reason="needs the extra [dask]")
    clf, X, y = single
    lazy = dd.from_pandas(X, npartitions=3)
    rows = clf.audit_rows(lazy, 4, reference=reference)
    np.testing.assert_array_equal(rows, clf.audit_rows(X, 4, reference=reference))
    assert clf.audit(lazy, rows, y[rows], reference=reference) == clf.audit(X, rows, y[rows], reference=reference)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda clf, X: clf.explain(X, label="dead"), "no class 'dead' to explain; expected one of 'ill', 'well'"),
        (lambda clf, X: clf.explain(X.drop(columns="dose")), "dose"),
        (lambda clf, X: clf.next_measurement(X, cost=[1, 2]), "one cost for each of 4 columns"),
        (lambda clf, X: clf.next_measurement(X, cost=[1, 2, 0, 1]), "cost of column 2 is 0"),
        (lambda clf, X: clf.next_measurement(X, drop_of="rain"), "'entropy' or 'cost', got 'rain'"),
        (lambda clf, X: clf.sufficient_reason(X, 2.0), "between 0 and 1, got 2"),
        (lambda clf, X: clf.game(X.iloc[0], label="dead"), "no class 'dead'"),
        (lambda clf, X: clf.suggest_labels(X, 5, curve={5: 0.5}), "at least two numbers"),
        (lambda clf, X: clf.suggest_labels(X, 0), "from 1 to 140, got n = 0"),
        (lambda clf, X: clf.suggest_labels(X, 141), "from 1 to 140, got n = 141"),
        (lambda clf, X: clf.audit_rows(X, 0), "at least one row"),
        (lambda clf, X: clf.audit(X, [0.5], ["ill"]), "row numbers"),
        (lambda clf, X: clf.audit(X, [3], ["ill", "well"]), "one label for each of 1 rows"),
        (lambda clf, X: clf.audit(X, [3], ["dead"]), "row 3 has the label 'dead'"),
        (lambda clf, X: clf.audit(X, [3], [None]), "row 3 has the label None"),
        (lambda clf, X: clf.audit(X.drop(columns="age"), [3], ["ill"]), "age"),
    ],
)
def test_bad_input_is_told(single, call, words):
    clf, X, _ = single
    with pytest.raises(ValueError, match=words):
        call(clf, X)

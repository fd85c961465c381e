from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from safespn import ModelFileError, SafeSPNClassifier, learn_spn
from safespn.exceptions import LabelWarning, UnseenCategoryWarning
from safespn.foundation.masked_arrays import unmask
from safespn.model_selection import SemiSupervisedSplit
from safespn.network.nodes import walk


@pytest.fixture(scope="module")
def wine():
    """Wine with three labels of four hidden."""
    X, y = load_wine(return_X_y=True)
    return X, y, np.where(np.arange(len(y)) % 4 == 0, y, -1)


@pytest.fixture(scope="module")
def fitted(wine):
    X, _, partly = wine
    return SafeSPNClassifier(random_state=0).fit(X, partly)


@pytest.fixture
def frame():
    """Numbers, a category, a boolean, a string and gaps; the class depends on all of them."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    columns = {
        "age": rng.normal(40 + 10 * y, 5),
        "colour": pd.Categorical(
            np.where(rng.random(200) < 0.2 + 0.6 * y, "red", "blue"), categories=["blue", "red", "green"]
        ),
        "smoker": rng.random(200) < 0.3 + 0.4 * y,
        "city": np.where(rng.random(200) < 0.5, "Graz", "Vienna"),
        "score": rng.normal(y, 1),
    }
    X = pd.DataFrame(columns)
    X.loc[::7, "age"] = np.nan
    X.loc[::11, "city"] = None
    return X, np.where(y == 1, "sick", "well"), rng


def test_certificate_can_be_recomputed_from_the_two_models(wine, fitted):
    X, _, partly = wine
    gain = fitted.joint_log_likelihood(X) - fitted.supervised_.joint_log_likelihood(X)
    labelled = partly >= 0
    worst_case = gain[labelled, partly[labelled]].sum() + gain[~labelled].min(axis=1).sum()
    assert fitted.safety_.worst_case == pytest.approx(worst_case)
    assert fitted.safety_.certified
    assert not fitted.safety_.fallback
    disagreement = np.mean(fitted.predict(X[~labelled]) != fitted.supervised_.predict(X[~labelled]))
    assert fitted.safety_.disagreement == pytest.approx(disagreement)


def test_classifies_well_and_reports_in_words(wine, fitted):
    X, y, _ = wine
    assert fitted.score(X, y) > 0.9
    assert "whatever the true classes of the unlabelled rows are" in str(fitted.safety_)
    assert set(fitted.safety_.to_dict()) >= {"worst_case", "contrast", "labelled_gain", "certified", "fallback"}
    assert all({"objective", "contrast", "worst_case"} <= set(entry) for entry in fitted.history_)
    assert fitted.soft_labels_.shape == (np.sum(np.arange(len(y)) % 4 != 0), 3)


def test_probabilities_densities_and_samples_agree(wine, fitted):
    X, _, _ = wine
    joint = fitted.joint_log_likelihood(X)
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(fitted.score_samples(X), np.logaddexp.reduce(joint, axis=1))
    np.testing.assert_allclose(fitted.predict_log_proba(X), joint - fitted.score_samples(X)[:, None], atol=1e-12)
    drawn, classes = fitted.sample(500, random_state=0)
    assert drawn.shape == (500, 13)
    assert np.mean(fitted.predict(drawn) == classes) > 0.9
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0.2)


@pytest.mark.parametrize("safety", ["certified", "mcp", "none"])
@pytest.mark.parametrize("objective", ["generative", "discriminative"])
def test_every_method_fits_and_repeats(wine, safety, objective):
    X, y, partly = wine
    options = {"safety": safety, "objective": objective, "max_iter": 10, "random_state": 3}
    first, second = (SafeSPNClassifier(**options).fit(X, partly) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.score(X, y) > 0.85
    if safety == "mcp":
        assert first.safety_.contrast >= -1e-6
    if safety == "certified":
        assert first.safety_.certified


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"max_depth": 3}, {"univariate": True}])
def test_other_structures(wine, options):
    """A product of single columns is naive Bayes; the paper's leaves of one column are one parameter away."""
    X, y, partly = wine
    classifier = SafeSPNClassifier(network="deep", **options, max_iter=20).fit(X, partly)
    assert classifier.safety_.certified
    assert classifier.score(X, y) > (0.9 if "max_depth" in options else 0.7)
    if options == {"univariate": True}:
        leaves = [node for node in walk(classifier.spn_.root) if not node.children]
        assert {type(leaf).__name__ for leaf in leaves} == {"Gaussian"}


def test_pessimism_of_zero_is_the_unguarded_fit(wine):
    X, _, partly = wine
    unguarded = SafeSPNClassifier(safety="none", random_state=0).fit(X, partly)
    trusting = SafeSPNClassifier(safety="certified", pessimism=0.0, random_state=0).fit(X, partly)
    np.testing.assert_array_equal(unguarded.predict_proba(X), trusting.predict_proba(X))


def test_without_unlabelled_rows_it_is_the_supervised_fit(wine):
    X, y, _ = wine
    classifier = SafeSPNClassifier().fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), classifier.supervised_.predict_proba(X))
    assert classifier.safety_.promises == ["There were no unlabelled rows: this is the supervised model."]
    assert classifier.score(X, y) >= GaussianNB().fit(X, y).score(X, y)


def test_frames_with_categories_gaps_and_string_labels(frame, tmp_path):
    X, y, rng = frame
    partly = y.astype(object)
    partly[rng.random(200) < 0.7] = -1
    classifier = SafeSPNClassifier().fit(X, partly)
    assert classifier.classes_.tolist() == ["sick", "well"]
    assert classifier.score(X, y) > 0.85
    assert classifier.score(X, partly) > 0.85
    classifier.save(tmp_path / "model.safespn")
    again = SafeSPNClassifier.load(tmp_path / "model.safespn")
    np.testing.assert_allclose(again.predict_proba(X), classifier.predict_proba(X), rtol=1e-12)
    assert again.predict(X).tolist() == classifier.predict(X).tolist()


def test_unseen_categories_are_missing(frame):
    X, y, _ = frame
    classifier = SafeSPNClassifier(unlabeled=None).fit(X, y)
    new = X.iloc[:2].copy()
    new["city"] = "Linz"
    missing = X.iloc[:2].copy()
    missing["city"] = None
    with pytest.warns(UnseenCategoryWarning, match="column 'city' holds 'Linz', which did not occur in training"):
        probabilities = classifier.predict_proba(new)
    np.testing.assert_allclose(probabilities, classifier.predict_proba(missing))


def test_saved_classifiers_are_the_same_and_damage_is_found(wine, fitted, tmp_path):
    X, _, _ = wine
    path = tmp_path / "model.safespn"
    fitted.save(path)
    again = SafeSPNClassifier.load(path)
    np.testing.assert_allclose(again.predict_proba(X), fitted.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(again.supervised_.predict_proba(X), fitted.supervised_.predict_proba(X), rtol=1e-12)
    assert again.safety_ == fitted.safety_
    assert again.get_params() == fitted.get_params()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelFileError):
        SafeSPNClassifier.load(path)


@pytest.mark.slow
def test_pickles_pipelines_searches_and_calibration(wine, fitted):
    X, y, partly = wine
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    pipeline = make_pipeline(StandardScaler(), SafeSPNClassifier()).fit(X, partly)
    assert pipeline.score(X, y) > 0.9
    one_network = SafeSPNClassifier(network="blocks", max_iter=10)
    search = GridSearchCV(one_network, {"prior_rows": [0.5, 5.0]}, cv=SemiSupervisedSplit(3))
    assert search.fit(X, partly).best_score_ > 0.85
    assert cross_val_score(one_network, X, partly, cv=SemiSupervisedSplit(3)).mean() > 0.85
    calibrated = CalibratedClassifierCV(SafeSPNClassifier(network="blocks", unlabeled=None), cv=2).fit(X, y)
    assert calibrated.score(X, y) > 0.9


def test_units_do_not_matter(wine, fitted):
    """Standardised features give the same predictions; densities differ by the log of the change of units."""
    X, _, partly = wine
    scaled = (X - 7) / X.std(axis=0)
    other = SafeSPNClassifier(random_state=0).fit(scaled, partly)
    np.testing.assert_allclose(other.predict_proba(scaled), fitted.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        other.score_samples(scaled) - fitted.score_samples(X), np.log(X.std(axis=0)).sum(), atol=1e-6
    )


def test_validation_rows_stop_early(wine):
    X, y, partly = wine
    hidden = np.nonzero(partly < 0)[0][:40]
    given = SafeSPNClassifier(safety="mcp", random_state=0).fit(X, partly, validation=(X[hidden], y[hidden]))
    assert all("validation_score" in entry for entry in given.history_)
    split = SafeSPNClassifier(safety="mcp", validation_fraction=0.3, random_state=0).fit(X, partly)
    assert split.safety_.n_labelled < np.sum(partly >= 0)
    assert all("validation_score" in entry for entry in split.history_)


def test_verbose_writes_to_standard_error(wine, capsys):
    X, _, partly = wine
    SafeSPNClassifier(verbose=1, max_iter=5).fit(X, partly)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "supervised model learned from 45 labelled rows" in captured.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.full(len(y), -1)), "y has no labelled row: all 178 entries are the marker -1"),
        (lambda X, y: (np.where(X.max() == X, np.inf, X), y), "infinity"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.inf, y.astype(float))), "infinity"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X, y + 0.5), "continuous"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
    ],
)
def test_bad_input_is_refused(wine, change, message):
    X, y, _ = wine
    with pytest.raises(ValueError, match=message):
        SafeSPNClassifier().fit(*change(X, y))


def test_bad_validation_and_widths_are_refused(wine, fitted):
    X, _, partly = wine
    with pytest.raises(ValueError, match="validation rows hold class 7, which has no labelled row"):
        SafeSPNClassifier(safety="mcp").fit(X, partly, validation=(X[:2], [0, 7]))
    with pytest.raises(ValueError, match="X has 12 features, but SafeSPNClassifier is expecting 13"):
        fitted.predict(X[:, :12])


def test_columns_of_frames_that_no_leaf_can_hold_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"when": pd.date_range("2020", periods=4), "x": [1.0, 2, 3, 4]})
    with pytest.raises(ValueError, match="column 'when' holds dates or times"):
        SafeSPNClassifier(unlabeled=None).fit(frame, [0, 1, 0, 1], column_types={"when": "continuous"})
    frame = pd.DataFrame({"x": [1.0, "a", 3, 4]})
    with pytest.raises(ValueError, match="column 'x' mixes types"):
        SafeSPNClassifier(unlabeled=None).fit(frame, [0, 1, 0, 1])


def test_a_failed_fit_leaves_the_old_model(wine):
    X, _, partly = wine
    classifier = SafeSPNClassifier(max_iter=5).fit(X, partly)
    before = classifier.predict_proba(X)
    with pytest.raises(ValueError, match="no labelled row"):
        classifier.fit(X[:, :3], np.full(len(X), -1))
    np.testing.assert_array_equal(classifier.predict_proba(X), before)


@pytest.mark.filterwarnings("ignore::safespn.FewLabelsWarning")
@pytest.mark.parametrize("labels", [[0, 0, -1, -1, 1, -1], [0, 1, -1, -1, -1, -1]])
def test_small_and_lopsided_classes_work(labels):
    """A class with one row, one row each: finite probabilities throughout."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    classifier = SafeSPNClassifier().fit(X, labels)
    assert np.isfinite(classifier.predict_proba(X)).all()
    assert classifier.safety_.certified


@pytest.mark.parametrize("unlabeled", [-1, None])
def test_a_single_class_is_refused(unlabeled):
    X = np.random.default_rng(0).normal(size=(6, 3))
    with pytest.raises(ValueError, match="only one class, 1"):
        SafeSPNClassifier(unlabeled=unlabeled).fit(X, [1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"only one class, 1; .*set unlabeled=None"):
        SafeSPNClassifier().fit(X, [-1, 1, 1, -1, 1, -1])
    assert SafeSPNClassifier(unlabeled=None).fit(X, [-1, 1, 1, -1, 1, -1]).classes_.tolist() == [-1, 1]


def test_labels_that_look_like_markers_get_a_warning(wine):
    X, _, partly = wine
    names = np.where(partly == -1, "unknown", partly.astype(str)).astype(object)
    with pytest.warns(LabelWarning, match="'unknown' is taken as a class") as caught:
        SafeSPNClassifier(max_iter=2).fit(X, names)
    assert caught[0].filename == __file__


def test_masked_cells_are_missing_and_masked_labels_are_unlabelled(wine):
    X, _, partly = wine
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    masked = np.ma.masked_array(np.where(mask, 1e6, X), mask)
    gaps = np.where(mask, np.nan, X)
    labels = np.ma.masked_array(np.where(partly == -1, 7, partly), partly == -1)
    expected = SafeSPNClassifier(network="blocks", max_iter=5, random_state=0).fit(gaps, partly)
    classifier = SafeSPNClassifier(network="blocks", max_iter=5, random_state=0).fit(masked, labels)
    np.testing.assert_array_equal(classifier.predict_proba(masked), expected.predict_proba(gaps))
    assert classifier.score(masked, labels) == expected.score(gaps, partly)
    np.testing.assert_array_equal(learn_spn(masked).log_likelihood(masked), learn_spn(gaps).log_likelihood(gaps))
    whole = np.ma.masked_array(np.arange(6).reshape(3, 2), [[0, 1], [0, 0], [0, 0]])
    assert np.isnan(unmask(whole)[0, 1])


def test_complex_columns_are_named(wine):
    pandas = pytest.importorskip("pandas")
    _, _, partly = wine
    frame = pandas.DataFrame({"x": np.arange(len(partly)) % 7, "kind": ["a", "b"] * (len(partly) // 2)})
    for wrong in (frame["x"] * 1j, (frame["x"] * 1j).astype(object)):
        with pytest.raises(ValueError, match="column 'x' holds complex numbers"):
            SafeSPNClassifier().fit(frame.assign(x=wrong), partly)
    classifier = SafeSPNClassifier(max_iter=5).fit(frame, partly)
    with pytest.raises(ValueError, match="column 'x' holds complex numbers"):
        classifier.predict(frame.assign(x=frame["x"] * 1j))


def test_marker_that_does_not_occur_and_other_markers():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_array_equal(
        SafeSPNClassifier(network="blocks", unlabeled=99, random_state=0).fit(X, y).predict_proba(X),
        SafeSPNClassifier(network="blocks", unlabeled=None, random_state=0).fit(X, y).predict_proba(X),
    )
    gaps = np.where(np.arange(150) % 5 == 0, y.astype(float), np.nan)
    marked = np.where(np.arange(150) % 5 == 0, y, -1)
    by_nan = SafeSPNClassifier(network="blocks", unlabeled=np.nan, random_state=0).fit(X, gaps)
    by_marker = SafeSPNClassifier(network="blocks", random_state=0).fit(X, marked)
    np.testing.assert_array_equal(by_nan.predict_proba(X), by_marker.predict_proba(X))


def test_degenerate_columns_and_far_rows_give_finite_probabilities(wine):
    X, _, partly = wine
    X = np.column_stack([X, np.ones(len(X)), np.full(len(X), np.nan)])
    X[:, 0] = np.where(np.arange(len(X)) % 3 == 0, np.nan, X[:, 0])
    classifier = SafeSPNClassifier().fit(X, partly)
    far = np.full((2, X.shape[1]), 1e200)
    far[1] = np.nan
    assert np.isfinite(classifier.predict_proba(np.vstack([X, far]))).all()


@pytest.mark.parametrize("constant", [0.1, 1.0, 123.456, 1e6 + 0.1])
def test_constant_columns_change_nothing(wine, constant):
    """Also where the mean of equal numbers is not exactly that number."""
    X, y, partly = wine
    plain = SafeSPNClassifier(network="blocks", random_state=0).fit(X, partly)
    padded = SafeSPNClassifier(network="blocks", random_state=0).fit(
        np.column_stack([X, np.full(len(X), constant)]), partly
    )
    shifted = np.column_stack([X, np.full(len(X), constant * 1.01)])
    assert padded.score(shifted, y) == pytest.approx(plain.score(X, y), abs=0.02)
    assert abs(padded.score_samples(shifted).mean() - plain.score_samples(X).mean()) < 2 + 1e-4 * constant**2


def test_probabilities_sum_to_one_far_out(wine, fitted):
    X, _, _ = wine
    np.testing.assert_allclose(fitted.predict_proba(X * 1e4).sum(axis=1), 1, rtol=1e-12)


def test_weights_of_labelled_rows_are_repetitions(wine):
    X, _, partly = wine
    labelled = np.nonzero(partly >= 0)[0]
    weighted = SafeSPNClassifier(max_iter=20, random_state=0).fit(
        X, partly, sample_weight=np.where(partly >= 0, 2.0, 1.0)
    )
    repeated = SafeSPNClassifier(max_iter=20, random_state=0)
    repeated.fit(np.vstack([X, X[labelled]]), np.append(partly, partly[labelled]))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


def test_score_counts_wrong_labels_as_wrong(wine, fitted):
    X, y, _ = wine
    assert fitted.score(X[:5], fitted.predict(X[:5]) + 0.9) == 0
    names = SafeSPNClassifier(unlabeled=None, max_iter=5).fit(X, np.array(["a", "b", "c"])[y])
    assert names.score(X[:5], ["abba"] * 5) == 0
    with pytest.raises(ValueError, match="every entry of y is the marker -1"):
        fitted.score(X, np.full(len(X), -1))


@pytest.mark.parametrize("safety", ["certified", "mcp"])
def test_never_worse_than_supervised_on_validation_rows(wine, safety):
    X, y, partly = wine
    hidden = np.nonzero(partly < 0)[0][::4]
    rows = (X[hidden], y[hidden])
    options = {"safety": safety, "objective": "discriminative", "soft_label_init": "dirichlet", "max_iter": 10}
    for seed in range(3):
        model = SafeSPNClassifier(**options, random_state=seed).fit(X, partly, validation=rows)
        scores = []
        for one in (model, model.supervised_):
            scores.append(one.predict_log_proba(rows[0])[np.arange(len(hidden)), rows[1]].mean())
        assert scores[0] >= scores[1] - 1e-9
        assert all("validation_score" in entry for entry in model.history_)
    with pytest.raises(ValueError, match="X has 3 features"):
        SafeSPNClassifier().fit(X, partly, validation=(X[:, :3], y))


@pytest.mark.parametrize(
    ("entries", "marker"),
    [
        ([0, 1, -1], -1),
        (["a", "b", -1], -1),
        ([0.0, 1.0, float("nan")], float("nan")),
        (["a", "b", None], float("nan")),
        ([False, True, -1], -1),
    ],
)
def test_object_labels_with_gaps(entries, marker):
    X = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.array(entries * 10, dtype=object)
    assert len(SafeSPNClassifier(unlabeled=marker, max_iter=5).fit(X, labels).classes_) == 2


def test_labels_with_gaps_of_pandas():
    labels = np.array(["a", "b", pytest.importorskip("pandas").NA] * 10, dtype=object)
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert len(SafeSPNClassifier(unlabeled=float("nan"), max_iter=5).fit(X, labels).classes_) == 2


def test_gaps_are_unlabelled_unless_every_row_is_said_to_have_a_label():
    X = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.array([0, 1, None] * 10, dtype=object)
    assert SafeSPNClassifier(max_iter=5).fit(X, labels).safety_.n_unlabelled == 10
    with pytest.raises(ValueError, match="Input y contains NaN or None, first in row 2, but unlabeled=None"):
        SafeSPNClassifier(unlabeled=None).fit(X, labels)


def test_calibration_of_a_fitted_model(wine, fitted):
    X, y, partly = wine
    calibrated = CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X[partly >= 0], y[partly >= 0])
    assert calibrated.classes_.tolist() == [0, 1, 2]


def test_the_supervised_model_is_a_whole_classifier(fitted, tmp_path):
    fitted.supervised_.save(tmp_path / "supervised.safespn")
    again = SafeSPNClassifier.load(tmp_path / "supervised.safespn")
    assert again.safety_.n_unlabelled == 0
    drawn, _ = again.sample(3)
    np.testing.assert_allclose(drawn, again.sample(3)[0])


def test_splits_keep_unlabelled_rows_in_training(wine):
    X, _, partly = wine
    splitter = SemiSupervisedSplit(4)
    folds = list(splitter.split(X, partly))
    assert splitter.get_n_splits() == len(folds) == 4
    unlabelled = np.nonzero(partly < 0)[0]
    for train, test in folds:
        assert set(unlabelled) <= set(train)
        assert (partly[test] >= 0).all()
        assert not set(train) & set(test)
    assert sorted(np.concatenate([test for _, test in folds])) == np.nonzero(partly >= 0)[0].tolist()
    with pytest.raises(ValueError, match="no labelled row"):
        next(splitter.split(X, np.full(len(X), -1)))

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf as reference_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from safespn import SPN
from safespn.learning.structure import learn_class_spn, learn_classes
from safespn.learning.structure.gaussian_classes import GAUSSIAN_STRUCTURES, ledoit_wolf, softmax_regression
from safespn.network.leaves import MultivariateGaussian
from safespn.network.nodes import walk


def three_classes(n_rows=600, seed=0, spread=1.0):
    generator = np.random.default_rng(seed)
    classes = generator.integers(3, size=n_rows)
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.4], [0.0, 0.0, 0.5]])
    noise = generator.normal(size=(n_rows, 3)) @ mixing * np.where(classes == 2, spread, 1.0)[:, None]
    return np.array([[0, 0, 0], [2, 0, 1], [0, 1.5, -1]])[classes] + noise, classes


def posterior(spn, rows):
    joint = spn.log_joint(rows)
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


def test_shrinkage_is_that_of_ledoit_and_wolf():
    rows = np.random.default_rng(0).normal(size=(20, 6)) @ np.diag([1, 2, 3, 4, 5, 6.0])
    centred = rows - rows.mean(axis=0)
    deviation = centred.std(axis=0)
    expected = reference_shrinkage(centred / deviation, assume_centered=True)[0] * np.outer(deviation, deviation)
    np.testing.assert_allclose(ledoit_wolf(centred, np.ones(20)), expected, rtol=1e-10)


def test_a_weight_of_two_is_a_row_twice():
    centred = np.random.default_rng(0).normal(size=(8, 3))
    weights = np.array([1.0, 2, 1, 1, 2, 1, 1, 1])
    twice = np.repeat(centred, weights.astype(int), axis=0)
    np.testing.assert_allclose(ledoit_wolf(centred, weights), ledoit_wolf(twice, np.ones(10)), rtol=1e-10)


@pytest.mark.parametrize(
    ("structure", "peer"),
    [("linear", LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")), ("naive", GaussianNB())],
)
def test_without_pseudo_rows_they_are_the_classical_methods(structure, peer):
    table, classes = three_classes()
    new, _ = three_classes(seed=1)
    options = {"leaves": "gaussian", "pseudo_rows": 0.0, "weight_prior": 0.0}
    spn = learn_class_spn(table, classes, 3, structure=structure, **options)
    np.testing.assert_allclose(posterior(spn, new), peer.fit(table, classes).predict_proba(new), atol=1e-6)


def test_quadratic_covariances_differ_and_linear_ones_are_tied():
    table, classes = three_classes(spread=3.0)
    widths = {}
    for structure in ("quadratic", "linear"):
        spn = learn_class_spn(table, classes, 3, structure=structure, leaves="gaussian")
        leaves = [node for node in walk(spn.root) if isinstance(node, MultivariateGaussian)]
        widths[structure] = [leaf.covariance[0][0] for leaf in leaves]
    assert len(set(widths["linear"])) == 1
    assert widths["quadratic"][2] == pytest.approx(9 * widths["quadratic"][0], rel=0.3)


def test_discriminative_network_is_a_softmax_regression():
    table, classes = three_classes(spread=3.0)
    new, _ = three_classes(seed=1)
    spn = learn_class_spn(table, classes, 3, structure="discriminative", leaves="gaussian", weight_prior=0.0)
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    peer = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit((table - mean) / deviation, classes)
    np.testing.assert_allclose(posterior(spn, new), peer.predict_proba((new - mean) / deviation), atol=2e-3)
    np.testing.assert_allclose(spn.root.weights, np.bincount(classes) / len(classes), rtol=1e-6)


def test_more_classes_than_columns_keep_the_regression_exact():
    generator = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 50)
    table = classes[:, None] + 0.5 * generator.normal(size=(200, 1))
    spn = learn_class_spn(table, classes, 4, structure="discriminative", leaves="gaussian")
    z = (table - table.mean()) / table.std()
    weights = np.eye(4)[classes].T
    slope, intercept = softmax_regression(z, weights, np.zeros((200, 4)), 1.0)
    logits = z @ slope.T + intercept
    expected = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior(spn, table), expected, atol=1e-4)


@pytest.mark.parametrize("structure", GAUSSIAN_STRUCTURES)
def test_one_row_per_class_and_missing_cells_work(structure):
    table, classes = three_classes(100)
    table[np.random.default_rng(2).random(table.shape) < 0.2] = np.nan
    few = np.full(100, -1)
    for number in range(3):
        few[np.nonzero(classes == number)[0][0]] = number
    spn = learn_class_spn(table, few, 3, structure=structure, leaves="gaussian")
    SPN(spn.root)
    assert np.isfinite(spn.log_joint(table)).all()


def choice_of(table, classes, monkeypatch, **options):
    chosen = []
    choose = learn_classes._best_structure
    monkeypatch.setattr(learn_classes, "_best_structure", lambda *args: chosen.append(choose(*args)) or chosen[-1])
    learn_class_spn(table, classes, int(classes.max()) + 1, structure="auto", leaves="gaussian", **options)
    return chosen[0]


def test_auto_finds_classes_that_differ_in_correlation_alone(monkeypatch):
    generator = np.random.default_rng(0)
    classes = np.arange(300) % 2
    common = generator.normal(size=300)
    table = np.column_stack([common, np.where(classes, common, -common) + 0.3 * generator.normal(size=300)])
    assert choice_of(table, classes, monkeypatch) in ("quadratic", "per_class", "copied")


def test_auto_without_multivariate_leaves_has_none(monkeypatch):
    table, classes = three_classes(150)
    assert choice_of(table, classes, monkeypatch, multivariate=False) in learn_classes.UNIVARIATE_CANDIDATES


def test_race_drops_what_is_clearly_behind_and_keeps_equals():
    def scores(*right):
        return [np.array([value, 0.0]) for value in right]

    race = {"good": scores(9, 8, 9), "equal": scores(8, 9, 9), "bad": scores(4, 5, 4)}
    assert list(learn_classes._survivors(race)) == ["good", "equal"]

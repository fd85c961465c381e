from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from safespn import SPN, Gaussian, Product, Sum
from safespn.engine.evidence import Evidence
from safespn.learning.gradient import objective_and_gradient
from safespn.learning.parameters import Prior, PseudoDataPrior, UnconstrainedParameters
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves import LeafPrior
from tests.networks import random_problem


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(
    "rule", ["likelihood", "soft", "complete", "worst case", "conditional", "complete conditional"]
)
def test_gradient_equals_finite_differences(seed, rule, backend):
    spn, table, rng = random_problem(seed, n_rows=20)
    soft = np.log(rng.dirichlet(np.ones(spn._structure.n_root_edges), len(table)))
    tilt = {"complete": 0.0, "worst case": -0.5, "complete conditional": 0.0}.get(rule, 1.0)
    evidence = Evidence(None if rule == "likelihood" else soft, tilt, conditional="conditional" in rule)
    counts = tuple(rng.uniform(0, 3, group.n_leaves) for group in spn._structure.groups)
    pseudo_data = PseudoDataPrior(spn._parameters, rng.uniform(0, 3, spn._structure.n_edges), counts)
    prior = Prior(0.3, LeafPrior(0, 0.2), pseudo_data if seed % 2 else None)
    rows = TableSource(spn._structure, table, evidence, rng.uniform(size=len(table)))
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    vector = coordinates.pack(spn._parameters) + rng.normal(0, 0.1, len(coordinates.scale))
    _, slope = objective_and_gradient(coordinates, vector, rows, prior)
    numerical = approx_fprime(vector, lambda v: objective_and_gradient(coordinates, v, rows, prior)[0], 1e-6)
    np.testing.assert_allclose(slope, numerical, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_hard_gradient_equals_finite_differences_of_max_product(seed, backend):
    spn, table, _ = random_problem(seed, n_rows=20)
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    vector = coordinates.pack(spn._parameters)
    rows = TableSource(spn._structure, table, hard=True)
    _, slope = objective_and_gradient(coordinates, vector, rows)
    numerical = approx_fprime(vector, lambda v: objective_and_gradient(coordinates, v, rows)[0], 1e-7)
    np.testing.assert_allclose(slope, numerical, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_packing_is_invertible(seed):
    spn, table, _ = random_problem(seed)
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    again = SPN._from_parameters(spn._structure, coordinates.unpack(coordinates.pack(spn._parameters)))
    np.testing.assert_allclose(again.log_likelihood(table), spn.log_likelihood(table), rtol=1e-12, atol=1e-12)


def test_lbfgs_finds_what_em_finds():
    rng = np.random.default_rng(0)
    table = np.concatenate([rng.normal(1000, 50, 100), rng.normal(2000, 80, 200)])[:, None]
    start = SPN(Sum([Gaussian(0, 900, 1e4), Gaussian(0, 2200, 1e4)], [0.5, 0.5]))
    by_em = start.fit_em(table, tol=1e-10)
    by_gradient = start.fit_gradient(table, tol=1e-10, max_iter=500)
    assert by_gradient.log_likelihood(table).mean() == pytest.approx(by_em.log_likelihood(table).mean(), abs=1e-6)


def class_network(X, y):
    """One product of Gaussians per class: naive Bayes."""
    parts = [
        Product([Gaussian(d, X[y == k, d].mean(), X[y == k, d].var() + 0.1) for d in range(X.shape[1])])
        for k in range(3)
    ]
    return SPN(Sum(parts, np.bincount(y) / len(y)))


@pytest.mark.parametrize(("solver", "hard"), [("lbfgs", False), ("lbfgs", True), ("adam", False), ("adam", True)])
def test_conditional_fit_raises_the_conditional_likelihood(solver, hard, backend):
    X, y = load_iris(return_X_y=True)
    start = class_network(X, y)

    def conditional(spn):
        joint = spn.log_joint(X)
        return np.mean(joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1))

    fitted = start.fit_gradient(X, y, solver=solver, hard=hard, max_iter=200, tol=1e-3, batch_size=50, random_state=0)
    assert conditional(fitted) > conditional(start) + 0.02


def test_adam_raises_the_likelihood_and_repeats_with_its_seed():
    rng = np.random.default_rng(0)
    table = rng.normal(5, 3, (3000, 2))
    start = SPN(Product([Gaussian(0, 0, 1), Gaussian(1, 0, 1)]))
    options = {"solver": "adam", "max_iter": 100, "tol": 1e-3, "learning_rate": 0.2}
    fitted = start.fit_gradient(table, **options, random_state=0)
    best = start.fit_em(table).log_likelihood(table).mean()
    assert fitted.log_likelihood(table).mean() == pytest.approx(best, abs=0.02)
    assert str(start.fit_gradient(table, **options, random_state=0)) == str(fitted)


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.filterwarnings("ignore:Adam did not converge")
def test_gradient_fits_respect_the_variance_floor(solver):
    options = {"solver": solver, "min_variance": 0.25, "max_iter": 60, "learning_rate": 0.5, "random_state": 0}
    assert SPN(Gaussian(0, 0, 1)).fit_gradient(np.ones((10, 1)), **options).root.variance == pytest.approx(0.25)


def test_not_converging_is_a_typed_warning():
    spn, table, _ = random_problem(6, depth=6)
    for solver in ("lbfgs", "adam"):
        with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=2"):
            spn.fit_gradient(table, solver=solver, max_iter=2, tol=0, random_state=0)


def test_adam_names_the_row_of_a_bad_cell():
    table = np.zeros((50, 1))
    table[37] = np.inf
    with pytest.raises(ValueError, match="row 37, column 0: inf"):
        SPN(Gaussian(0, 0, 1)).fit_gradient(table, solver="adam", batch_size=10)


def test_zero_weights_and_probabilities_survive():
    spn = SPN(Sum([Gaussian(0, 0, 1), Gaussian(0, 5, 1)], [1.0, 0.0]))
    fitted = spn.fit_gradient([[0.5], [0.7]], min_variance=0.1)
    assert fitted.root.weights[1] < 1e-300
    assert np.isfinite(fitted.log_likelihood([[0.5]])).all()


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([0, 5], "class 5 of row 1: expected 0 to 1"),
        ([0], "one integer class for each of 2 rows"),
        ([0.5, 1.0], "dtype float64"),
    ],
)
def test_bad_classes_are_refused(classes, message):
    spn = SPN(Sum([Gaussian(0, 0, 1), Gaussian(0, 5, 1)], [0.5, 0.5]))
    with pytest.raises(ValueError, match=message):
        spn.fit_gradient([[0.0], [1.0]], classes)
    with pytest.raises(ValueError, match="solver must be"):
        spn.fit_gradient([[0.0], [1.0]], solver="sgd")

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from safespn.baselines import TSVM, box_quadratic
from safespn.baselines.box_quadratic import BoxQuadratic, solve_box_quadratic


@pytest.fixture(scope="module")
def cancer():
    """Breast cancer with seven labels of eight hidden."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y, np.where(np.arange(len(y)) % 8 == 0, y, -1)


@settings(max_examples=60)
@given(st.integers(0, 100_000), st.booleans(), st.sampled_from([1e-2, 1.0, 1e2]))
@example(459, True, 1e2)  # Mehrotra's correction alone goes in circles here.
def test_solution_meets_the_optimality_conditions(seed, balanced, cost):
    rng = np.random.default_rng(seed)
    n, n_features = rng.integers(3, 30), rng.integers(1, 8)
    features, linear = rng.normal(size=(n, n_features)), rng.normal(size=n)
    lower = -cost * rng.random(n)
    upper = lower + cost * (0.1 + rng.random(n))
    if balanced:
        upper[0], lower[1] = cost * n, -cost * n
    problem = BoxQuadratic(features, np.arange(n), linear, lower, upper, balanced)
    solution, multiplier = solve_box_quadratic(problem)
    slope = features @ (features.T @ solution) + multiplier - linear
    small = 1e-5 * (1 + np.abs(slope).max())
    assert (solution >= lower - 1e-12 * cost).all()
    assert (solution <= upper + 1e-12 * cost).all()
    if balanced:
        assert solution.sum() == pytest.approx(0, abs=1e-6)
    near = 1e-5 * cost
    assert (slope[solution > lower + near] <= small).all()
    assert (slope[solution < upper - near] >= -small).all()


def test_variables_of_one_row_add_up():
    features = np.array([[1.0], [2.0]])
    single, _ = solve_box_quadratic(
        BoxQuadratic(features, np.arange(2), np.ones(2), np.zeros(2), np.array([1.0, 0.2]), False)
    )
    double, _ = solve_box_quadratic(
        BoxQuadratic(features, np.array([0, 1, 1]), np.ones(3), np.zeros(3), np.array([1.0, 0.1, 0.1]), False)
    )
    np.testing.assert_allclose(double, single, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_without_unlabelled_rows_it_is_a_support_vector_machine(cancer, kernel, C):
    X, y, _ = cancer
    theirs = SVC(C=C, kernel=kernel, tol=1e-8).fit(X, y)
    # libsvm keeps its kernel in single precision.
    np.testing.assert_allclose(
        TSVM(C=C, kernel=kernel).fit(X, y).decision_function(X), theirs.decision_function(X), atol=1e-4
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_balance_fixes_the_mean_decision(cancer, kernel):
    X, _, partly = cancer
    fitted = TSVM(kernel=kernel).fit(X, partly)
    labels = np.where(partly == 1, 1, -1)[partly >= 0]
    assert fitted.decision_function(X)[partly < 0].mean() == pytest.approx(labels.mean(), abs=1e-7)


def objective(fitted, X, partly, C=1.0, C_unlabeled=0.1, s=-0.3):
    decision = fitted.decision_function(X)
    labelled = np.maximum(0, 1 - np.where(partly == 1, 1, -1) * decision)[partly >= 0]
    free = decision[partly < 0]
    ramps = np.minimum(1 - s, np.maximum(0, 1 - free)) + np.minimum(1 - s, np.maximum(0, 1 + free))
    return 0.5 * (fitted.coef_**2).sum() + C * labelled.sum() + C_unlabeled * ramps.sum()


def test_procedure_descends_from_the_supervised_machine_to_a_local_minimum(cancer):
    X, _, partly = cancer
    labelled = partly >= 0
    fitted = TSVM(balance=False).fit(X, partly)
    supervised = TSVM().fit(X[labelled], partly[labelled])
    least = objective(fitted, X, partly)
    assert least < objective(supervised, X, partly)
    rng = np.random.default_rng(0)
    coefficients, intercept = fitted.coef_.copy(), fitted.intercept_.copy()
    for _ in range(200):
        fitted.coef_ = coefficients + 1e-3 * rng.normal(size=coefficients.shape)
        fitted.intercept_ = intercept + 1e-3 * rng.normal(size=1)
        assert objective(fitted, X, partly) > least


def test_swapping_the_classes_swaps_the_decision(cancer):
    X, _, partly = cancer
    swapped = np.where(partly >= 0, 1 - partly, -1)
    np.testing.assert_allclose(
        TSVM().fit(X, swapped).decision_function(X), -TSVM().fit(X, partly).decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_more_classes_are_each_set_against_the_rest(load):
    X, y = load(return_X_y=True)
    X = scale(X)
    partly = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    fitted = TSVM().fit(X, partly)
    alone = TSVM().fit(X, np.where(partly < 0, -1, partly == 2))
    np.testing.assert_allclose(fitted.decision_function(X)[:, 2], alone.decision_function(X), atol=1e-6)


def test_a_programme_that_is_not_solved_gives_a_warning(cancer, monkeypatch):
    X, y, _ = cancer
    monkeypatch.setattr(box_quadratic, "MAX_ITER", 3)
    with pytest.warns(ConvergenceWarning, match="standardise the columns"):
        TSVM().fit(X, y)

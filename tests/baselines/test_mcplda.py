from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from safespn.baselines import MCPLDA
from safespn.baselines.simplex_descent import minimise_over_simplices


def draw(seed, n_labelled=12, n_unlabelled=7, n_classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n_labelled + n_unlabelled) % n_classes
    X = rng.normal(size=(len(y), 3)) + y[:, None]
    return X, y, np.where(np.arange(len(y)) < n_labelled, y, -1)


def test_without_unlabelled_rows_it_is_linear_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    ours, theirs = MCPLDA().fit(X, y), LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_)
    assert ours.worst_case_ == 0


@pytest.mark.parametrize("solver", ["loog", "exact"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_worst_case_is_the_least_gain_of_all_labellings(solver, n_classes):
    X, _, partly = draw(0, n_unlabelled=5, n_classes=n_classes)
    labelled = partly >= 0
    supervised = MCPLDA().fit(X[labelled], partly[labelled])
    fitted = MCPLDA(solver).fit(X, partly)
    rows = np.arange(len(X))
    gain = fitted.joint_log_likelihood(X) - supervised.joint_log_likelihood(X)
    each = [gain[rows, [*partly[labelled], *rest]].sum() for rest in product(range(n_classes), repeat=5)]
    assert fitted.worst_case_ == pytest.approx(min(each))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_exact_worst_case_is_bounded_by_the_best_answer_to_any_soft_labels(seed, n_classes):
    X, _, partly = draw(seed, n_classes=n_classes)
    labelled = partly >= 0
    exact = MCPLDA("exact").fit(X, partly)
    assert exact.worst_case_ >= max(MCPLDA("loog").fit(X, partly).worst_case_, 0.0) - 1e-6
    # A hard labelling is one of the soft labels, and linear discriminant analysis is the best answer to it.
    supervised = MCPLDA().fit(X[labelled], partly[labelled])
    guess = np.where(labelled, partly, exact.predict(X))
    answer = MCPLDA().fit(X, guess)
    gain = (answer.joint_log_likelihood(X) - supervised.joint_log_likelihood(X))[np.arange(len(X)), guess].sum()
    assert exact.worst_case_ <= gain + 1e-6


def test_joint_density_integrates_to_one_and_follows_the_units():
    X, _, partly = draw(1)
    X = X[:, :1]
    grid = np.linspace(-20, 20, 20_001)[:, None]
    fitted = MCPLDA("exact").fit(X, partly)
    density = np.exp(fitted.joint_log_likelihood(grid)).sum(axis=1)
    assert density.sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1)
    in_millis = MCPLDA("exact").fit(1000 * X, partly)
    np.testing.assert_allclose(
        in_millis.joint_log_likelihood(1000 * X), fitted.joint_log_likelihood(X) - np.log(1000), atol=1e-9
    )


@pytest.mark.parametrize("solver", ["loog", "exact"])
def test_degenerate_tables(solver):
    X, _, partly = draw(2)
    with_constant = np.column_stack([X, np.full(len(X), 7.0)])
    np.testing.assert_allclose(
        MCPLDA(solver).fit(with_constant, partly).joint_log_likelihood(with_constant),
        MCPLDA(solver).fit(X, partly).joint_log_likelihood(X),
    )
    twice = MCPLDA(solver).fit(np.column_stack([X, X]), partly)
    assert np.isfinite(twice.joint_log_likelihood(np.column_stack([X, X]))).all()
    one_each = np.where(np.arange(len(X)) < 2, partly, -1)
    assert np.isfinite(MCPLDA(solver).fit(X, one_each).joint_log_likelihood(X)).all()


def test_descent_finds_the_projection_on_the_simplex():
    wanted = np.array([[0.2, 0.3], [2.0, 0.0]])
    descent = minimise_over_simplices(
        lambda q: (float(((q - wanted) ** 2).sum()), 2 * (q - wanted)), np.full((2, 2), 0.5), tol=1e-10, max_iter=100
    )
    assert descent.converged
    np.testing.assert_allclose(descent.soft_labels, [[0.45, 0.55], [1, 0]], atol=1e-6)

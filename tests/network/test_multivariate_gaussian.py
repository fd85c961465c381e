from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.covariance import empirical_covariance
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture

from safespn import SPN, Gaussian, MultivariateGaussian, Product, Sum
from safespn.engine.evidence import class_evidence
from safespn.learning.em import fit_em
from safespn.learning.gradient import objective_and_gradient
from safespn.learning.parameters import Prior, UnconstrainedParameters
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves import LeafPrior


def classes_of_iris(tie):
    X, y = load_iris(return_X_y=True)
    leaves = [MultivariateGaussian(range(4), X[y == k].mean(axis=0) + 0.1, np.cov(X.T), tie=tie) for k in range(3)]
    return X, y, SPN(Sum(leaves, [1 / 3] * 3))


def test_tied_covariances_with_all_labels_are_linear_discriminant_analysis(backend):
    X, y, spn = classes_of_iris(tie=0)
    result = fit_em(TableSource(spn._structure, X, class_evidence(y, len(y), 3)), spn._parameters, tol=1e-10)
    fitted = SPN._from_parameters(spn._structure, result.parameters)
    peer = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    joint = fitted.log_joint(X)
    np.testing.assert_allclose(
        joint - np.logaddexp.reduce(joint, axis=1)[:, None], peer.predict_log_proba(X), atol=1e-6
    )
    assert spn.n_parameters == 2 + 3 * 4 + 10
    assert {leaf.covariance for leaf in fitted.root.children} == {fitted.root.children[0].covariance}


def test_untied_covariances_are_those_of_the_classes(backend):
    X, y, spn = classes_of_iris(tie=None)
    result = fit_em(TableSource(spn._structure, X, class_evidence(y, len(y), 3)), spn._parameters, tol=1e-10)
    root = SPN._from_parameters(spn._structure, result.parameters).root
    for k, leaf in enumerate(root.children):
        np.testing.assert_allclose(leaf.covariance, empirical_covariance(X[y == k]), atol=1e-10)
    assert spn.n_parameters == 2 + 3 * 14


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("spread", [1.0, 1e5], ids=["near", "far"])
@pytest.mark.parametrize("n_leaves", [7, 12])
def test_a_step_of_many_leaves_of_one_covariance_is_that_of_a_tied_mixture(n_leaves, spread, backend):
    rng = np.random.default_rng(0)
    centres = spread * rng.normal(size=(n_leaves, 3))
    X = centres[rng.integers(n_leaves, size=900)] + rng.normal(size=(900, 3)) @ [[1, 0.5, 0], [0, 1, 0], [0, 0, 2]]
    start, weights = centres + 0.3, np.full(n_leaves, 1 / n_leaves)
    spn = SPN(Sum([MultivariateGaussian(range(3), mean, np.eye(3), tie=0) for mean in start], weights))
    peer = GaussianMixture(
        n_leaves,
        covariance_type="tied",
        weights_init=weights,
        means_init=start,
        precisions_init=np.eye(3),
        reg_covar=0.0,
        max_iter=1,
    ).fit(X)
    fitted = spn.fit_em(X, max_iter=1).root
    np.testing.assert_allclose(fitted.weights, peer.weights_)
    np.testing.assert_allclose([leaf.mean for leaf in fitted.children], peer.means_, rtol=1e-9)
    np.testing.assert_allclose(fitted.children[0].covariance, peer.covariances_, rtol=1e-6 if spread == 1 else 1e-3)


def test_covariance_prior_pulls_towards_its_target(backend):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) * [1, 2, 3]
    target = np.diag([1.0, 4.0, 9.0])
    spn = SPN(MultivariateGaussian(range(3), np.zeros(3), np.eye(3)))
    prior = Prior(leaves=LeafPrior(covariance_prior=4.0, covariance_target=target))
    result = fit_em(TableSource(spn._structure, X), spn._parameters, prior=prior, tol=1e-12)
    expected = (6 * empirical_covariance(X) + 4 * target) / 10
    root = SPN._from_parameters(spn._structure, result.parameters).root
    np.testing.assert_allclose(root.covariance, expected)


@pytest.mark.parametrize("tie", [None, 3])
def test_gradient_with_prior_missing_cells_and_ties(tie, backend):
    X, y, spn = classes_of_iris(tie=tie)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X = X[::5]
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    vector = coordinates.pack(spn._parameters)
    rows = TableSource(spn._structure, X, class_evidence(y[::5], len(X), 3, conditional=True))
    prior = Prior(0.1, LeafPrior(covariance_prior=2.0, covariance_target=np.diag([1.0, 2, 3, 4])))
    _, slope = objective_and_gradient(coordinates, vector, rows, prior)
    # Steps are taken in the tied subspace: project the numerical gradient on it, too.
    numerical = approx_fprime(vector, lambda v: objective_and_gradient(coordinates, v, rows, prior)[0], 1e-6)
    if tie is not None:
        per_leaf = numerical[3:].reshape(3, 14)
        per_leaf[:, 4:] = per_leaf[:, 4:].mean(axis=0)
        numerical[3:] = per_leaf.ravel()
    np.testing.assert_allclose(slope, numerical, rtol=1e-3, atol=1e-3)


def test_tied_leaves_stay_tied_under_gradient_fits():
    X, y, spn = classes_of_iris(tie=1)
    fitted = spn.fit_gradient(X, y, tol=1e-3)
    covariances = np.array([leaf.covariance for leaf in fitted.root.children])
    np.testing.assert_allclose(covariances, np.broadcast_to(covariances[0], covariances.shape), atol=1e-9)


def test_conditional_completion_is_regression():
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    spn = SPN(MultivariateGaussian([0, 1], [1, -1], covariance))
    row = np.array([[3.0, np.nan]])
    assert spn.mpe(row)[0, 1] == pytest.approx(-1 + 1.2 / 2 * 2)
    draws = spn.conditional_sample(np.tile(row, (20_000, 1)), random_state=0)[:, 1]
    assert draws.mean() == pytest.approx(0.2, abs=0.02)
    assert draws.var() == pytest.approx(1 - 1.2**2 / 2, abs=0.02)


def test_floor_bounds_the_eigenvalues(backend):
    X = np.outer(np.arange(20.0), [1, 1])
    spn = SPN(MultivariateGaussian([0, 1], [0, 0], np.eye(2))).fit_em(X, min_variance=0.25)
    assert np.linalg.eigvalsh(spn.root.covariance)[0] == pytest.approx(0.25)


def test_mixed_blocks_and_single_leaves_save_and_load(tmp_path):
    tied = [MultivariateGaussian([0, 2], m, np.eye(2), tie=5) for m in ([0, 0], [1, 1])]
    spn = SPN(Sum([Product([tied[0], Gaussian(1, 0, 1)]), Product([tied[1], Gaussian(1, 2, 1)])], [0.5, 0.5]))
    spn.save(tmp_path / "a")
    loaded = SPN.load(tmp_path / "a")
    assert loaded.n_parameters == spn.n_parameters == 1 + 2 * 2 + 3 + 2 * 2
    rows = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(loaded.log_likelihood(rows), spn.log_likelihood(rows))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 0], [0, 0], np.eye(2)), "each only once"),
        (([], [], np.eye(0)), "at least one column"),
        (([0, 1], [0], np.eye(2)), r"expected a mean of shape \(2,\)"),
        (([0, 1], [0, 0], [[1, 2], [2, 1]]), "positive definite, its smallest eigenvalue is -1"),
        (([0, 1], [0, 0], [[1, 0.5], [0.2, 1]]), "symmetric"),
        (([0, 1], [0, np.nan], np.eye(2)), "finite"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultivariateGaussian(*arguments)


def test_ties_must_agree():
    leaves = [MultivariateGaussian([0, 1], [0, 0], c * np.eye(2), tie=1) for c in (1.0, 2.0)]
    with pytest.raises(ValueError, match=r"at root/1 and MultivariateGaussian at root/0 have tie 1 but differ"):
        SPN(Sum(leaves, [0.5, 0.5]))


@pytest.mark.parametrize("seed", range(12))
def test_columns_that_are_constant_among_the_rows_leave_a_covariance_that_can_be_factored(seed):
    """Strongly correlated columns, and rows that agree in all of them but one: no floor was asked for."""
    rng = np.random.default_rng(seed)
    table = np.round(100 + 20 * rng.normal(size=(40, 3)) @ rng.normal(size=(3, 10)))
    rows = np.repeat(table[:1], 6, axis=0)
    rows[:, 9] += np.arange(6)
    start = MultivariateGaussian(range(10), table.mean(axis=0), np.cov(table.T) + 0.1 * np.eye(10))
    fitted = SPN(start).fit_em(rows, max_iter=30, tol=-1)
    assert np.isfinite(fitted.log_likelihood(rows)).all()
    SPN(fitted.root)  # a covariance that is not positive definite would be refused

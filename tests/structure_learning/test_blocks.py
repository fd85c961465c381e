import numpy as np
import pytest

from safespn import Gaussian, MultivariateGaussian, Poisson, Product, Sum, learn_spn
from safespn.network.nodes import walk
from safespn.structure_learning import learnspn


def correlated(n_rows, seed=0):
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(n_rows, 1))
    return (factor + 0.3 * generator.normal(size=(n_rows, 4))) * [1.0, 10.0, 0.1, 1e3] + [5.0, 0.0, -1.0, 1e4]


def test_columns_that_stay_dependent_end_in_one_leaf():
    table = correlated(300)
    spn = learn_spn(table)
    assert isinstance(spn.root, MultivariateGaussian)
    np.testing.assert_allclose(spn.root.mean, table.mean(axis=0), rtol=1e-6)
    correlation = np.corrcoef(table, rowvar=False)
    deviation = np.sqrt(np.diag(spn.root.covariance))
    np.testing.assert_allclose(spn.root.covariance / np.outer(deviation, deviation), correlation, atol=0.05)


def test_it_predicts_new_rows_better_than_univariate_leaves():
    table, new = correlated(300), correlated(1000, seed=1)
    univariate = learn_spn(table, multivariate=False)
    assert all(not isinstance(node, MultivariateGaussian) for node in walk(univariate.root))
    assert learn_spn(table).log_likelihood(new).mean() > univariate.log_likelihood(new).mean() + 0.3


def test_clusters_have_leaves_of_their_own():
    generator = np.random.default_rng(0)
    first = generator.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 200)
    second = generator.multivariate_normal([8, -8], [[1, -0.9], [-0.9, 1]], 200)
    root = learn_spn(np.vstack([first, second])).root
    assert isinstance(root, Sum)
    signs = sorted(np.sign(child.covariance[0][1]) for child in root.children)
    assert signs == [-1.0, 1.0]


def test_other_columns_keep_univariate_leaves():
    generator = np.random.default_rng(0)
    table = correlated(300)
    counts = generator.poisson(np.exp(1 + (table[:, 0] - 5) / 3))
    root = learn_spn(np.column_stack([table, counts]), leaves=["gaussian"] * 4 + ["poisson"], max_depth=1).root
    families = {type(node) for node in walk(root) if not node.children}
    assert MultivariateGaussian in families
    assert Poisson in families


def test_independent_columns_stay_apart():
    table = np.random.default_rng(0).normal(size=(300, 3))
    root = learn_spn(table).root
    assert isinstance(root, Product)
    assert all(isinstance(child, Gaussian) for child in root.children)


@pytest.mark.parametrize("missing", [0.1, 0.4])
def test_missing_cells(missing):
    table, new = correlated(400), correlated(500, seed=1)
    table[np.random.default_rng(2).random(table.shape) < missing] = np.nan
    complete = learn_spn(correlated(400)).log_likelihood(new).mean()
    assert learn_spn(table).log_likelihood(new).mean() > complete - 0.15


def test_more_columns_than_rows():
    table = np.random.default_rng(0).normal(size=(12, 1)) + 0.1 * np.random.default_rng(1).normal(size=(12, 30))
    assert np.isfinite(learn_spn(table).log_likelihood(table)).all()


def test_a_block_is_given_up_for_clusters_that_pay_only_after_several_splits(monkeypatch):
    generator = np.random.default_rng(0)
    centres, loadings = generator.normal(0, 2, (8, 12)), generator.normal(size=(3, 12))
    rows = np.arange(2000)
    table = centres[rows % 8] + generator.normal(size=(2000, 3)) @ loadings + generator.normal(size=(2000, 12))
    spn = learn_spn(table, refine_iterations=0)
    monkeypatch.setattr(learnspn, "PATIENCE", 100)
    assert learn_spn(table, refine_iterations=0).n_nodes == spn.n_nodes > 8
    monkeypatch.setattr(learnspn, "PATIENCE", 1)
    assert isinstance(learn_spn(table, refine_iterations=0).root, MultivariateGaussian)

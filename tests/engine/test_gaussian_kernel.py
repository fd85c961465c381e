"""Compiled Gaussian blocks against scipy, against their definition, and against the family's own computation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from safespn import SPN, Gaussian, MultivariateGaussian, Product, Sum
from safespn.engine import gaussian_kernel, passes
from safespn.network.leaves.family import Block
from safespn.network.leaves.multivariate_gaussian import FEW_COLUMNS, MANY_LEAVES


def random_leaves(rng, n_leaves, d):
    factor = rng.normal(size=(n_leaves, d, d)) + 2 * np.eye(d)
    return rng.normal(size=(n_leaves, d)), factor @ factor.mT


def block_of(mean, covariance) -> Block:
    parameters = np.concatenate([mean, covariance.reshape(len(mean), -1)], axis=1)
    (block,) = MultivariateGaussian.family.terms(parameters)
    assert isinstance(block, Block)
    return block


# Rows that fill no vector, one block exactly, and more than one.
@pytest.mark.parametrize("n_rows", [1, 15, 96, 97, 200])
@pytest.mark.parametrize(("n_leaves", "d"), [(1, 1), (2, 3), (3, 8)])
def test_densities_and_statistics_are_those_of_the_definition(n_rows, n_leaves, d):
    rng = np.random.default_rng(100 * n_rows + d)
    mean, covariance = random_leaves(rng, n_leaves, d)
    table = rng.normal(size=(n_rows, d + 3))
    columns = np.array([rng.permutation(d + 3)[:d] for _ in range(n_leaves)])
    flow = rng.uniform(size=(n_leaves, n_rows))
    flow[0, 0] = 0.0
    gaussians = block_of(mean, covariance).gaussians
    density = gaussian_kernel.log_density(gaussians, columns, table)
    statistics = gaussian_kernel.statistics(gaussians, columns, table, flow)
    for leaf in range(n_leaves):
        cells = table[:, columns[leaf]]
        expected = multivariate_normal(mean[leaf], covariance[leaf]).logpdf(cells)
        np.testing.assert_allclose(density[leaf], np.atleast_1d(expected), rtol=1e-9)
        z = np.linalg.solve(np.linalg.cholesky(covariance[leaf]), (cells - mean[leaf]).T).T
        second = np.einsum("r,ri,rj->ij", flow[leaf], z, z)
        expected = np.concatenate([[flow[leaf].sum()], flow[leaf] @ z, second.ravel()])
        np.testing.assert_allclose(statistics[leaf], expected, rtol=1e-9, atol=1e-9)


def test_a_missing_cell_anywhere_is_left_to_the_family():
    rng = np.random.default_rng(0)
    gaussians, columns = block_of(*random_leaves(rng, 2, 3)).gaussians, np.tile(np.arange(3), (2, 1))
    table = rng.normal(size=(150, 3))
    table[140, 1] = np.nan
    assert gaussian_kernel.log_density(gaussians, columns, table) is None
    assert gaussian_kernel.statistics(gaussians, columns, table, np.ones((2, 150))) is None


def test_rows_that_may_not_be_written_to_are_read():
    rng = np.random.default_rng(1)
    gaussians, columns = block_of(*random_leaves(rng, 2, 3)).gaussians, np.tile(np.arange(3), (2, 1))
    table = rng.normal(size=(20, 3))
    expected = gaussian_kernel.log_density(gaussians, columns, table)
    table.flags.writeable = False
    np.testing.assert_array_equal(gaussian_kernel.log_density(gaussians, columns, table), expected)


def test_many_columns_and_many_leaves_of_one_covariance_are_left_to_linear_algebra():
    rng = np.random.default_rng(2)
    mean, covariance = random_leaves(rng, MANY_LEAVES, 2)
    assert block_of(mean, covariance).gaussians is not None
    assert block_of(mean, np.broadcast_to(covariance[:1], covariance.shape)).gaussians is None
    assert block_of(np.zeros((1, FEW_COLUMNS + 1)), np.eye(FEW_COLUMNS + 1)[None]).gaussians is None


@pytest.mark.parametrize("share_missing", [0.0, 0.05])
def test_whole_networks_agree_with_the_numpy_engine(share_missing):
    import safespn

    rng = np.random.default_rng(3)
    mean, covariance = random_leaves(rng, 4, 3)
    leaves = [MultivariateGaussian([3, 0, 2], mean[k], covariance[k]) for k in range(4)]
    classes = [Product([Gaussian(1, k, 1.5), Sum([leaves[2 * k], leaves[2 * k + 1]], [0.3, 0.7])]) for k in range(2)]
    spn = SPN(Sum(classes, [0.4, 0.6]))
    table = rng.normal(size=(12_000, 4))
    table[rng.uniform(size=table.shape) < share_missing] = np.nan
    of_engine = {}
    for engine in ("numpy", "compiled"):
        with safespn.use_engine(engine):
            of_engine[engine] = passes.log_joint(spn._network, table), passes.statistics(spn._network, table)
    (joint, statistics), (expected, expected_statistics) = of_engine["compiled"], of_engine["numpy"]
    np.testing.assert_allclose(joint, expected, rtol=1e-10)
    np.testing.assert_allclose(statistics.edge_flow, expected_statistics.edge_flow, rtol=1e-10)
    np.testing.assert_allclose(statistics.blocks[0], expected_statistics.blocks[0], rtol=1e-8, atol=1e-8)

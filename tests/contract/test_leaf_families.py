"""What every leaf family must obey; a new family joins by its entry in LEAVES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from safespn import SPN, Categorical, DensityTree, Gaussian, MultivariateGaussian, Poisson, Sum
from safespn.engine import passes
from safespn.learning.parameters import Prior, UnconstrainedParameters, m_step
from safespn.network.leaves import LEAF_TYPES, LeafPrior
from safespn.network.nodes import Leaf
from safespn.typing import FloatArray

COVARIANCE = np.array([[2.0, 0.9, -0.3], [0.9, 1.0, 0.2], [-0.3, 0.2, 0.5]])
RNG = np.random.default_rng(0)
TREE = DensityTree(
    [0, 1],
    nodes=[[0, -np.inf, 0.4, 1, -3], [1, 0.5, 1.5, -1, -2]],
    probabilities=[0.2, 0.3, 0.5],
    base=[[0.1, 2.0], [3, 0]],
)


def log_density_of_tree(x):
    below = stats.norm(0.1, 2**0.5).cdf(0.4)
    in_box = np.where(x[:, 1] == 1, 0.2, 0.3 / 2) / below
    return stats.norm(0.1, 2**0.5).logpdf(x[:, 0]) + np.log(np.where(x[:, 0] <= 0.4, in_box, 0.5 / 3 / (1 - below)))


def draws_of_tree(rng, n):
    box = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    below = stats.norm(0.1, 2**0.5).cdf(0.4)
    share = rng.random(n)
    real = stats.norm(0.1, 2**0.5).ppf(np.where(box == 2, below + (1 - below) * share, below * share))
    code = np.choose(box, [np.ones(n), rng.choice([0, 2], n), rng.choice(3, n)])
    return np.column_stack([real, code])


@dataclass(frozen=True)
class Example:
    """A leaf, its log density and draws by scipy and numpy, and a table of values."""

    leaf: Leaf
    log_density: Callable[[FloatArray], FloatArray]
    draws: Callable[[np.random.Generator, int], FloatArray]
    table: FloatArray


LEAVES = {
    "Gaussian": Example(
        Gaussian(0, 1.5, 0.7),
        stats.norm(1.5, 0.7**0.5).logpdf,
        lambda rng, n: rng.normal(1.5, 0.7**0.5, (n, 1)),
        np.linspace(-3, 6, 50)[:, None],
    ),
    "Categorical": Example(
        Categorical(0, [0.2, 0.5, 0.3]),
        lambda x: np.log([0.2, 0.5, 0.3])[x.astype(int)],
        lambda rng, n: rng.choice(3, (n, 1), p=[0.2, 0.5, 0.3]),
        np.arange(3.0)[:, None],
    ),
    "Poisson": Example(
        Poisson(0, 2.3),
        stats.poisson(2.3).logpmf,
        lambda rng, n: rng.poisson(2.3, (n, 1)),
        np.arange(30.0)[:, None],
    ),
    "MultivariateGaussian": Example(
        MultivariateGaussian([0, 1, 2], [1, -2, 0.5], COVARIANCE),
        stats.multivariate_normal([1, -2, 0.5], COVARIANCE).logpdf,
        lambda rng, n: rng.multivariate_normal([1, -2, 0.5], COVARIANCE, n),
        RNG.normal(0, 2, (60, 3)),
    ),
    "DensityTree": Example(
        TREE,
        log_density_of_tree,
        draws_of_tree,
        np.column_stack([np.append(RNG.normal(0, 2, 57), [0.4, 0.4, 0.1]), np.arange(60) % 3]),
    ),
}


@pytest.fixture(params=[leaf_type.__name__ for leaf_type in LEAF_TYPES])
def leaf(request):
    """A leaf, its log density by scipy, and a table of values."""
    example = LEAVES[request.param]
    return example.leaf, example.log_density(example.table).reshape(len(example.table)), example.table


def with_missing(table, seed=0):
    rng = np.random.default_rng(seed)
    table = table[rng.integers(len(table), size=40)]
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


def assert_in_domains(node, table):
    for column, domain in enumerate(node.family.domains(node.parameters)):
        assert not domain.refuses(table[:, column]).any()


def test_log_density_is_that_of_scipy(leaf, backend):
    node, reference, table = leaf
    np.testing.assert_allclose(SPN(node).log_likelihood(table), reference, rtol=1e-12, atol=1e-12)
    of_family = node.family.log_density(np.tile(node.parameters, (len(table), 1)), table)
    np.testing.assert_allclose(of_family, reference, rtol=1e-12, atol=1e-12)


def test_description_and_parameters_are_inverse(leaf):
    node, *_ = leaf
    again = node.family.node(node.columns, node.parameters)
    assert repr(again) == repr(node)
    np.testing.assert_array_equal(again.parameters, node.parameters)
    assert len(node.family.domains(node.parameters)) == len(node.columns)


def test_em_finds_a_maximum_of_the_likelihood(leaf, backend):
    """No small step away from the fixed point is better; weights and missing cells included."""
    node, _, table = leaf
    table = with_missing(table)
    rng = np.random.default_rng(0)
    weights = rng.uniform(size=len(table))
    spn = SPN(node).fit_em(table, weights, max_iter=10_000, tol=1e-13)
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    vector = coordinates.pack(spn._parameters)

    def value(vector):
        return SPN._from_parameters(spn._structure, coordinates.unpack(vector)).log_likelihood(table) @ weights

    top = value(vector)
    for _ in range(30):
        assert value(vector + rng.normal(0, 0.02, len(vector))) <= top


def test_unconstrained_parameters_are_invertible(leaf):
    node, *_ = leaf
    structure = SPN(node)._structure
    parameters = node.parameters[None]
    free = node.family.to_unconstrained(parameters)
    np.testing.assert_allclose(node.family.from_unconstrained(free, parameters), parameters)
    assert node.family.unconstrained_scale(parameters).shape == free.shape
    assert (node.family.unconstrained_lower_bound(free, structure.groups[0].leaves, LeafPrior(0.1)) <= free).all()


def test_completion_by_mode_is_the_most_probable_value(leaf):
    node, reference, _ = leaf
    unknown = np.full((1, len(node.columns)), np.nan)
    mode = SPN(node).mpe(unknown)
    assert SPN(node).log_likelihood(mode)[0] >= reference.max() - 1e-12
    assert_in_domains(node, mode)


def test_draws_follow_the_density(leaf):
    """By the density's own value: among draws, log densities have the distribution that they have among fresh draws."""
    node, *_ = leaf
    draws = SPN(node).sample(20_000, random_state=0)
    assert_in_domains(node, draws)
    expected = LEAVES[node.family.name].draws(np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(draws.mean(axis=0), expected.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(expected.T), atol=0.1)
    # Of each column, of sums of columns, and of the log density: the largest distance of two distribution functions.
    spn, directions = SPN(node), np.random.default_rng(2).normal(size=(draws.shape[1], 5))
    ours = np.column_stack([draws, draws @ directions, spn.log_likelihood(draws)])
    theirs = np.column_stack([expected, expected @ directions, spn.log_likelihood(expected)])
    for one, other in zip(ours.T, theirs.T, strict=True):
        assert stats.ks_2samp(one.round(9), other.round(9)).statistic < 0.02


def test_a_leaf_that_no_row_reaches_keeps_its_parameters(leaf, backend):
    node, *_ = leaf
    spn = SPN(node)
    statistics = passes.statistics(spn._network, np.full((1, len(node.columns)), np.nan))
    after = m_step(spn._structure, spn._parameters, statistics, Prior())
    np.testing.assert_allclose(after.leaves[0][0], node.parameters)


def test_degenerate_rows_leave_finite_parameters(leaf, backend):
    """A single row, again and again."""
    node, _, table = leaf
    fitted = SPN(node).fit_em(np.tile(table[:1], (5, 1)), tol=1e-3)
    assert np.isfinite(fitted.root.parameters[np.isfinite(node.parameters)]).all()
    assert not np.isnan(fitted.log_likelihood(table)).any()


def test_statistics_of_shared_leaves_add_up(leaf, backend):
    """One leaf under two edges learns from both."""
    node, _, table = leaf
    shared = SPN(Sum([node, node], [0.3, 0.7])).fit_em(table, tol=1e-9)
    alone = SPN(node).fit_em(table, tol=1e-9)
    np.testing.assert_allclose(shared.log_likelihood(table), alone.log_likelihood(table))

"""Densities, marginals, samples and completions against integration, enumeration and counting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from safespn import SPN, Categorical, Gaussian, Poisson, Product, Sum
from tests.networks import random_problem, random_root


@pytest.mark.parametrize("seed", range(8))
def test_two_real_columns_integrate_to_one(seed, backend):
    spn = SPN(random_root(np.random.default_rng(seed), ["gaussian"] * 2))
    grid = np.linspace(-25, 25, 401)
    cells = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
    density = np.exp(spn.log_likelihood(cells)).reshape(401, 401)
    assert integrate.trapezoid(integrate.trapezoid(density, grid), grid) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_missing_cell_is_the_numerical_marginal(seed, backend):
    """Over a real, a categorical and a count column in turn."""
    spn = SPN(random_root(np.random.default_rng(seed), ["gaussian", "categorical", "poisson"]))
    row = np.array([0.3, 1.0, 2.0])
    supports = [np.linspace(-14, 14, 4001), np.arange(3.0), np.arange(80.0)]
    for column, support in enumerate(supports):
        rows = np.tile(row, (len(support), 1))
        rows[:, column] = support
        density = np.exp(spn.log_likelihood(rows))
        marginal = integrate.trapezoid(density, support) if column == 0 else density.sum()
        rows[0, column] = np.nan
        assert np.exp(spn.log_likelihood(rows[:1]))[0] == pytest.approx(marginal, rel=1e-8)


def test_row_without_any_cell_has_density_one(backend):
    spn, table, _ = random_problem(2)
    np.testing.assert_allclose(spn.log_likelihood(np.full_like(table, np.nan)), 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_conditional_samples_follow_the_conditional_distribution(seed):
    """Chi-square on the joint of two categorical columns given a third and a real one."""
    rng = np.random.default_rng(seed)
    spn = SPN(random_root(rng, ["categorical", "categorical", "categorical", "gaussian"], depth=6))
    evidence = np.array([np.nan, np.nan, 1.0, 0.4])
    states = np.array(list(itertools.product(range(3), range(3))), dtype=float)
    rows = np.tile(evidence, (9, 1))
    rows[:, :2] = states
    probability = np.exp(spn.log_likelihood(rows) - spn.log_likelihood(evidence[None]))
    assert probability.sum() == pytest.approx(1)
    draws = spn.conditional_sample(np.tile(evidence, (20_000, 1)), random_state=seed)
    np.testing.assert_array_equal(draws[:, 2:], np.tile(evidence[2:], (20_000, 1)))
    counts = np.bincount((draws[:, 0] * 3 + draws[:, 1]).astype(int), minlength=9)
    assert stats.chisquare(counts, 20_000 * probability).pvalue > 1e-4


def test_samples_of_real_and_count_columns_follow_their_marginals():
    """A sum with three children, of which one has no weight."""
    spn = SPN(
        Sum(
            [
                Product([Gaussian(0, m, v), Poisson(1, r)])
                for m, v, r in [(-4, 1, 1), (0, 0.25, 4), (50, 1, 90), (5, 2, 9)]
            ],
            [0.2, 0.5, 0.0, 0.3],
        )
    )
    draws = spn.sample(20_000, random_state=1)

    def distribution(x):
        return 0.2 * stats.norm.cdf(x, -4, 1) + 0.5 * stats.norm.cdf(x, 0, 0.5) + 0.3 * stats.norm.cdf(x, 5, 2**0.5)

    assert stats.kstest(draws[:, 0], distribution).pvalue > 1e-4
    expected = (
        0.2 * stats.poisson.pmf(range(16), 1)
        + 0.5 * stats.poisson.pmf(range(16), 4)
        + 0.3 * stats.poisson.pmf(range(16), 9)
    )
    counts = np.bincount(draws[:, 1].astype(int), minlength=16)
    counts = np.append(counts[:15], counts[15:].sum())
    expected = np.append(expected[:15], 1 - expected[:15].sum())
    assert stats.chisquare(counts, 20_000 * expected).pvalue > 1e-4
    assert np.corrcoef(draws[:, 0], draws[:, 1])[0, 1] > 0.5


def test_samples_repeat_with_their_seed():
    spn, table, _ = random_problem(7)
    np.testing.assert_array_equal(spn.sample(9, random_state=3), spn.sample(9, random_state=3))
    assert (spn.sample(9, random_state=3) != spn.sample(9, random_state=4)).any()
    generator = np.random.default_rng(0)
    assert (spn.sample(9, random_state=generator) != spn.sample(9, random_state=generator)).any()
    np.testing.assert_array_equal(
        spn.conditional_sample(table, random_state=1), spn.conditional_sample(table, random_state=1)
    )
    assert spn.sample(0).shape == (0, spn.n_columns)
    with pytest.raises(ValueError, match="got -1"):
        spn.sample(-1)


def selective_root(rng, columns, n_states=3):
    """A decision tree: every sum splits on the states of one column, so that one child at most is positive."""
    column, *rest = rng.permutation(columns).tolist()
    if not rest:
        return Categorical(column, rng.dirichlet(np.ones(n_states)))
    branches = []
    for state in range(n_states):
        indicator = Categorical(column, np.eye(n_states)[state])
        branches.append(Product([indicator, selective_root(rng, rest, n_states)]))
    return Sum(branches, rng.dirichlet(np.ones(n_states)))


@pytest.mark.parametrize("seed", range(10))
def test_mpe_is_exact_on_selective_networks(seed):
    rng = np.random.default_rng(seed)
    spn = SPN(selective_root(rng, range(4)))
    everything = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    value = spn.log_likelihood(everything)
    for _ in range(10):
        row = everything[rng.integers(len(everything))].copy()
        row[rng.random(4) < 0.6] = np.nan
        fits = (np.isnan(row) | (everything == row)).all(axis=1)
        assert spn.log_likelihood(spn.mpe(row[None]))[0] == pytest.approx(value[fits].max())


def best_tree(node, row):
    """Best single tree and its completion, from the definition."""
    if isinstance(node, Sum):
        options = [
            (w * value, cells)
            for w, c in zip(node.weights, node.children, strict=True)
            for value, cells in [best_tree(c, row)]
        ]
        return max(options, key=lambda option: option[0])
    if isinstance(node, Product):
        parts = [best_tree(child, row) for child in node.children]
        return np.prod([value for value, _ in parts]), dict(item for _, cells in parts for item in cells.items())
    parameters, cells = node.parameters[None], row[list(node.columns)][None]
    completed = np.where(np.isnan(cells), node.family.complete(parameters, np.array([0]), cells, None), cells)
    return np.exp(node.family.log_density(parameters, completed))[0], dict(zip(node.columns, completed[0], strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_mpe_is_the_completion_of_the_best_tree(seed):
    spn, table, _ = random_problem(seed, missing=0.5, n_rows=20)
    completed = spn.mpe(table)
    for row, ours in zip(table, completed, strict=True):
        _, cells = best_tree(spn.root, row)
        np.testing.assert_allclose(ours, [cells[column] for column in range(4)])
    observed = ~np.isnan(table)
    np.testing.assert_array_equal(completed[observed], table[observed])


def test_completion_needs_possible_evidence():
    spn = SPN(Product([Categorical(0, [1, 0]), Gaussian(1, 0, 1)]))
    for call in (spn.mpe, spn.conditional_sample):
        with pytest.raises(ValueError, match="row 1: the observed cells have zero density"):
            call([[0, np.nan], [1, np.nan]])


def test_unmodelled_column_stays_missing():
    spn = SPN(Product([Gaussian(0, 0, 1), Gaussian(2, 0, 1)]))
    assert np.isnan(spn.sample(3, random_state=0)[:, 1]).all()
    np.testing.assert_allclose(spn.log_likelihood([[0, 5.0, 0]]), -np.log(2 * np.pi))

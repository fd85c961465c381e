"""The two passes against the definition, against each other, and at the edges of floating point."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, Categorical, Gaussian, Poisson, Product, Sum
from safespn.engine import compiled_pass, numpy_pass, passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from tests.networks import brute_force, random_problem


@pytest.mark.parametrize("seed", range(30))
def test_likelihood_is_that_of_the_definition(seed, backend):
    spn, table, _ = random_problem(seed)
    expected = np.log([brute_force(spn.root, row) for row in table])
    np.testing.assert_allclose(spn.log_likelihood(table), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("rule", ["likelihood", "soft", "complete", "conditional", "worst case"])
def test_compiled_statistics_equal_numpy_statistics(seed, hard, rule):
    spn, table, rng = random_problem(seed, n_rows=130)
    n_root_edges = spn._structure.n_root_edges
    soft = np.log(rng.dirichlet(np.full(n_root_edges, 0.3), len(table)) + 1e-300)
    evidence = {
        "likelihood": Evidence(),
        "soft": Evidence(soft),
        "complete": Evidence(soft, tilt=0.0),
        "conditional": Evidence(soft, conditional=True),
        "worst case": Evidence(soft, tilt=-0.5),
    }[rule]
    weights = rng.uniform(0, 2, len(table))
    weights[:5] = 0
    features = spn._network.features(table)
    ours = compiled_pass.statistics(spn._network, features, evidence, weights, hard)
    reference = numpy_pass.statistics(spn._network, features, evidence, weights, hard)
    for name in ("objective", "edge_flow", "square", "linear", "table"):
        np.testing.assert_allclose(getattr(ours, name), getattr(reference, name), rtol=1e-9, atol=1e-9, err_msg=name)
    for of_group, expected in zip(ours.blocks, reference.blocks, strict=True):
        np.testing.assert_allclose(of_group, expected, rtol=1e-9, atol=1e-9)


def test_flows_are_posterior_probabilities(backend):
    """Worked by hand: two Gaussians at distance two, one row in the middle of nothing, one with a known component."""
    spn = SPN(Sum([Gaussian(0, 0, 1), Gaussian(0, 2, 1)], [0.25, 0.75]))
    statistics = passes.statistics(spn._network, np.array([[1.0], [0.0]]))
    second = 0.75 * np.exp(-2) / (0.75 * np.exp(-2) + 0.25)
    np.testing.assert_allclose(statistics.edge_flow, [0.25 + 1 - second, 0.75 + second])
    np.testing.assert_allclose(statistics.square[0], [1.25 - second, 0.25, 0.25])
    np.testing.assert_allclose(statistics.square[1], [0.75 + second, -0.75 - 2 * second, 0.75 + 4 * second])


def test_statistics_add_over_blocks_and_threads(backend):
    spn, table, rng = random_problem(3, n_rows=20_000)
    weights = rng.uniform(size=len(table))
    whole = passes.statistics(spn._network, table, weights=weights, n_jobs=2)
    alone = passes.statistics(spn._network, table, weights=weights, n_jobs=1)
    halves = [passes.statistics(spn._network, table[s], weights=weights[s]) for s in (slice(7000), slice(7000, None))]
    assert whole.objective == alone.objective
    np.testing.assert_array_equal(whole.edge_flow, alone.edge_flow)
    np.testing.assert_allclose((halves[0] + halves[1]).square, whole.square, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((halves[0] + halves[1]).table, whole.table, rtol=1e-9, atol=1e-9)


def test_weight_of_two_is_the_row_twice(backend):
    spn, table, _ = random_problem(5)
    doubled = passes.statistics(spn._network, table, weights=np.full(len(table), 2.0))
    twice = passes.statistics(spn._network, np.vstack([table, table]))
    np.testing.assert_allclose(doubled.edge_flow, twice.edge_flow)
    np.testing.assert_allclose(doubled.square, twice.square, atol=1e-12)


def test_thousand_columns_of_mixtures(backend):
    """The product of a thousand mixture mantissas would overflow if it were not folded back."""
    rng = np.random.default_rng(0)
    mixtures = [Sum([Gaussian(c, m, 1) for m in range(10)], rng.dirichlet(np.ones(10))) for c in range(1000)]
    spn = SPN(Product(mixtures))
    table = rng.normal(4, 3, (20, 1000))
    per_column = [SPN(Sum([Gaussian(0, g.mean, 1) for g in m.children], m.weights)) for m in mixtures]
    expected = sum(part.log_likelihood(table[:, [c]]) for c, part in enumerate(per_column))
    np.testing.assert_allclose(spn.log_likelihood(table), expected, rtol=1e-12)
    statistics = passes.statistics(spn._network, table)
    assert np.isfinite(statistics.square).all()
    np.testing.assert_allclose(statistics.edge_flow[:-1].sum(), 20 * 1000)


def test_deep_chain_of_sums(backend):
    node = Sum([Gaussian(0, 0, 1), Gaussian(0, 0, 1)], [0.5, 0.5])
    for _ in range(1500):
        node = Sum([node, node], [0.5, 0.5])
    spn = SPN(node)
    np.testing.assert_allclose(
        spn.log_likelihood([[0.3]]), Gaussian.family.log_density(np.array([[0, 1.0]]), np.array([[0.3]]))
    )
    assert np.isfinite(spn.fit_em([[0.3], [1.0]], max_iter=1, tol=np.inf).log_likelihood([[0.3]])).all()


def test_tiny_variances_and_large_values_keep_their_digits(backend):
    spn = SPN(Sum([Gaussian(0, 1e8, 1e-12), Gaussian(0, -1e8, 1.0)], [0.5, 0.5]))
    table = np.array([[1e8], [1e8 + 1.5e-8], [-1e8], [0.0], [1e300], [np.nan]])
    value = spn.log_likelihood(table)
    at_mode = np.log(0.5) - 0.5 * np.log(2 * np.pi * 1e-12)
    np.testing.assert_allclose(
        value[:3],
        [at_mode, at_mode - 0.5 * (((1e8 + 1.5e-8) - 1e8) / 1e-6) ** 2, np.log(0.5) - 0.5 * np.log(2 * np.pi)],
    )
    assert not np.isnan(value).any()
    assert value[4] == -np.inf
    assert value[5] == pytest.approx(0, abs=1e-12)


def test_rows_of_zero_density(backend):
    """A row that no branch allows has log density minus infinity, sends no flow, and harms no other row."""
    spn = SPN(
        Sum(
            [
                Product([Categorical(0, [1, 0, 0]), Sum([Gaussian(1, 0, 1), Gaussian(1, 3, 1)], [0.5, 0.5])]),
                Product([Categorical(0, [0, 1, 0]), Sum([Gaussian(1, 1, 1), Gaussian(1, 5, 1)], [1.0, 0.0])]),
            ],
            [0.5, 0.5],
        )
    )
    table = np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 1e200], [np.nan, 0.0]])
    value = spn.log_likelihood(table)
    assert value[0] == -np.inf
    assert value[2] == -np.inf
    assert np.isfinite(value[[1, 3]]).all()
    statistics = passes.statistics(spn._network, table[[0, 1, 3]])
    assert statistics.objective == -np.inf
    np.testing.assert_allclose(statistics.edge_flow[-2:].sum(), 2)
    assert np.isfinite(statistics.square).all()


def test_negative_tilt_survives_an_impossible_class(backend):
    spn = SPN(Sum([Categorical(0, [1, 0]), Categorical(0, [0.5, 0.5])], [0.5, 0.5]))
    statistics = passes.statistics(spn._network, np.array([[1.0]]), Evidence(np.zeros((1, 2)), tilt=-10.0))
    np.testing.assert_array_equal(statistics.edge_flow, [1, 0])
    assert np.isfinite(statistics.objective)


def test_zero_weight_skips_an_impossible_row(backend):
    spn = SPN(Categorical(0, [1, 0]))
    statistics = passes.statistics(spn._network, np.array([[0.0], [1.0]]), weights=np.array([1.0, 0.0]))
    assert statistics.objective == 0


def test_log_joint_adds_up_to_the_likelihood(backend):
    spn, table, _ = random_problem(11)
    np.testing.assert_allclose(np.logaddexp.reduce(spn.log_joint(table), axis=1), spn.log_likelihood(table))


@pytest.mark.parametrize("root", [Gaussian(0, 1, 2), Product([Gaussian(0, 1, 2), Poisson(1, 3)])])
def test_roots_that_are_not_sums(root, backend):
    spn = SPN(root)
    row = np.array([[0.5, 2.0]])[:, : spn.n_columns]
    np.testing.assert_allclose(np.exp(spn.log_likelihood(row)), brute_force(root, row[0]))
    assert spn.log_joint(row).shape == (1, 1)


def test_completed_modes_only_in_max_product_binding():
    spn = SPN(Gaussian(0, 1, 2))
    missing = np.array([[np.nan]])
    marginal, best = (
        numpy_pass.log_likelihood(network, network.features(missing))
        for network in (
            bind(spn._structure, spn._parameters),
            bind(spn._structure, spn._parameters, complete_by_mode=True),
        )
    )
    assert marginal == pytest.approx(0, abs=1e-15)
    assert best == pytest.approx(-0.5 * np.log(4 * np.pi))

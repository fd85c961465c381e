"""Soft labels that are updated by the class joint in the middle of a pass."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Product, Sum
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence, SoftLabelUpdate, SoftLabelUpdateRule
from safespn.foundation.posteriors import gains, pessimistic, posterior
from safespn.learning.parameters import Prior, m_step
from tests.networks import random_problem


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pessimism", [1.0, 0.4, 0.0])
def test_one_pass_equals_joint_then_update_then_statistics(seed, pessimism, backend):
    spn, table, rng = random_problem(seed, n_rows=300)
    network, n_classes = bind(spn._structure, spn._parameters), spn._structure.n_root_edges
    reference, before = rng.normal(-5, 3, (300, n_classes)), rng.dirichlet(np.ones(n_classes), 300)
    free, weights = rng.random(300) < 0.8, rng.uniform(0, 2, 300)
    update = SoftLabelUpdate(reference, before, free, SoftLabelUpdateRule(pessimism, 0.5, 0.3))
    statistics, joint, after = passes.statistics_after_update(network, table, update, weights)
    np.testing.assert_allclose(joint, passes.log_joint(network, table), rtol=1e-12)
    target = pessimism * pessimistic(gains(joint, reference), 0.5) + (1 - pessimism) * posterior(joint)
    np.testing.assert_allclose(after[free], (0.7 * before + 0.3 * target)[free], atol=1e-12)
    np.testing.assert_array_equal(after[~free], before[~free])
    with np.errstate(divide="ignore"):
        expected = passes.statistics(network, table, Evidence(np.log(after), tilt=0.0), weights)
    assert statistics.objective == pytest.approx(expected.objective)
    np.testing.assert_allclose(statistics.edge_flow, expected.edge_flow, atol=1e-9)
    np.testing.assert_allclose(statistics.square, expected.square, atol=1e-9)


def test_impossible_classes_are_no_worst_case_and_impossible_rows_have_no_opinion(backend):
    """Class 1 never has state 1, class 0 never state 2; state 3 is impossible in both."""
    spn = SPN(Sum([Categorical(0, [0.5, 0.5, 0, 0]), Categorical(0, [0.5, 0, 0.5, 0])], [0.5, 0.5]))
    network, table = bind(spn._structure, spn._parameters), np.array([[0.0], [1.0], [2.0], [3.0]])
    reference = passes.log_joint(network, table)
    before = np.full((4, 2), 0.5)
    for pessimism in (1.0, 0.0):
        update = SoftLabelUpdate(reference, before, np.ones(4, dtype=bool), SoftLabelUpdateRule(pessimism, 0.1, 1.0))
        _, _, after = passes.statistics_after_update(network, table, update)
        np.testing.assert_allclose(after, [[0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]])


@pytest.mark.parametrize("seed", range(10))
def test_restated_statistics_give_the_same_parameters(seed, backend):
    """What a pass at some parameters saw, told relative to others, is maximised by the same parameters."""
    spn, table, rng = random_problem(seed, n_rows=200)
    structure, old = spn._structure, spn._parameters
    statistics = passes.statistics(bind(structure, old), table, None, rng.uniform(0.5, 2, len(table)))
    new = m_step(structure, old, statistics.scaled(0.5), Prior(0.3))
    moved = statistics.recentred(structure, old, new)
    for ours, theirs in zip(
        m_step(structure, new, moved, Prior()).leaves,
        m_step(structure, old, statistics, Prior()).leaves,
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


def test_restated_statistics_of_a_multivariate_leaf(backend):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3)) + 4.0
    table[rng.random(table.shape) < 0.1] = np.nan
    spn = SPN(MultivariateGaussian([0, 1, 2], [1.0, 2.0, 3.0], np.diag([2.0, 1.0, 0.5])))
    structure, old = spn._structure, spn._parameters
    statistics = passes.statistics(bind(structure, old), table)
    new = SPN(MultivariateGaussian([0, 1, 2], [0.0, 5.0, -3.0], np.eye(3) + 0.3))._parameters
    moved = m_step(structure, new, statistics.recentred(structure, old, new), Prior())
    np.testing.assert_allclose(moved.leaves[0], m_step(structure, old, statistics, Prior()).leaves[0], rtol=1e-9)


def test_scaled_statistics_are_those_of_so_many_times_the_rows(backend):
    spn = SPN(Product([Gaussian(0, 0, 1), Categorical(1, [0.5, 0.5])]))
    network, table = bind(spn._structure, spn._parameters), np.array([[0.3, 1], [1.0, 0], [np.nan, 1]])
    once, thrice = passes.statistics(network, table).scaled(3), passes.statistics(network, np.tile(table, (3, 1)))
    assert once.objective == pytest.approx(thrice.objective)
    np.testing.assert_allclose(once.square, thrice.square)
    np.testing.assert_allclose(once.table, thrice.table)

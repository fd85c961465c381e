"""Expected drops of entropy against sums and integrals straight from the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum
from safespn.answers import measurement
from safespn.answers.measurement import expected_cost, expected_drop
from safespn.foundation.posteriors import log_posterior
from tests.networks import brute_force

ROOT = Sum(
    [
        Product(
            [
                MultivariateGaussian([0, 1], [0, 0], [[1, 0.99], [0.99, 1]]),
                Categorical(2, [0.7, 0.2, 0.1]),
                Poisson(3, rate=2),
            ]
        ),
        Product(
            [
                MultivariateGaussian([0, 1], [1, -1], [[2, 0], [0, 1]]),
                Categorical(2, [0.1, 0.3, 0.6]),
                Poisson(3, rate=9),
            ]
        ),
    ],
    [0.6, 0.4],
)


def drop_of(table, root=ROOT, risk=measurement.entropy):
    spn = SPN(root)
    generator = np.random.default_rng(0)

    def evaluate(cells):
        joint = spn.log_joint(cells)
        return np.logaddexp.reduce(joint, axis=1), log_posterior(joint)

    return expected_drop(
        evaluate,
        lambda cells: spn.conditional_sample(cells, random_state=generator),
        np.asarray(table, dtype=float),
        spn._structure.domains,
        risk,
    )


def joint_of(row):
    return np.array(
        [weight * brute_force(child, row) for weight, child in zip(ROOT.weights, ROOT.children, strict=True)]
    )


def entropy(joint):
    return entr(joint / joint.sum()).sum()


GAINS = -np.array([[0.0, 1.0], [5.0, 0.0]])
"""Missing the second class costs five times as much."""


def cost(joint):
    return (-joint / joint.sum() @ GAINS).min()


@pytest.mark.parametrize("row", [[0.4, np.nan, np.nan, np.nan], [np.nan] * 4])
def test_drops_of_expected_cost_from_the_definition(row):
    row = np.array(row)
    before = joint_of(row)
    drop = drop_of([row], risk=expected_cost(GAINS))[0]
    for column, states in ((2, range(3)), (3, range(60))):
        joints = []
        for state in states:
            filled = row.copy()
            filled[column] = state
            joints.append(joint_of(filled))
        expected = cost(before) - sum(joint.sum() * cost(joint) for joint in joints) / before.sum()
        assert drop[column] == pytest.approx(expected, abs=1e-6), column
    assert (drop[1:] >= 0).all()


@pytest.mark.parametrize("row", [[0.4, np.nan, np.nan, np.nan], [np.nan] * 4, [2.0, np.nan, 1.0, np.nan]])
def test_drops_are_sums_and_integrals_from_the_definition(row):
    row = np.array(row)
    before = joint_of(row)

    def after(column, value):
        filled = row.copy()
        filled[column] = value
        joint = joint_of(filled)
        return joint.sum() * entropy(joint) if joint.sum() > 0 else 0.0

    mean = {
        1: quad(lambda value: after(1, value), -8, 8, points=[-1, 0, 0.4, 1, 2], limit=200)[0],
        2: sum(after(2, state) for state in range(3)),
        3: sum(after(3, count) for count in range(60)),
    }
    drop = drop_of([row])[0]
    for column, expected in mean.items():
        if np.isnan(row[column]):
            assert drop[column] == pytest.approx(entropy(before) - expected / before.sum(), abs=5e-4), column


def test_known_cells_and_ignored_columns_have_no_drop():
    root = Sum(
        [Product([Gaussian(0, mean=m, variance=1), Gaussian(2, mean=m, variance=1)]) for m in (0, 2)], [0.5, 0.5]
    )
    drop = drop_of([[0.3, np.nan, np.nan], [0.3, 1.0, 0.1]], root)
    assert drop[0, 2] > 0.05
    assert (np.delete(drop.ravel(), 2) == 0).all()


def test_wide_counts_are_looked_at_in_steps():
    root = Sum([Product([Gaussian(0, mean=0, variance=1), Poisson(1, rate=rate)]) for rate in (3000, 5000)], [0.5, 0.5])
    assert drop_of([[0.0, np.nan]], root)[0, 1] == pytest.approx(np.log(2), abs=1e-3)


def test_rows_of_zero_density_have_no_drop():
    root = Sum([Product([Gaussian(0, mean=m, variance=1), Categorical(1, [1.0, 0.0])]) for m in (0, 2)], [0.5, 0.5])
    drop = drop_of([[np.nan, 1.0], [np.nan, 0.0]], root)
    assert drop[0, 0] == 0
    assert drop[1, 0] > 0.1

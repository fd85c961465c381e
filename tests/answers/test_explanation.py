"""Shapley values against orders of columns one by one, with conditionals from numerical integration."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Product, Sum
from safespn.answers.coalitions import RowPosteriors
from safespn.answers.explanation import IMPOSSIBLE, explain_rows, log_odds
from safespn.foundation.posteriors import log_posterior
from tests.networks import random_problem

ROOT = Sum(
    [
        Product([MultivariateGaussian([0, 1], [0, 0], [[1, 0.8], [0.8, 1]]), Categorical(2, [0.7, 0.2, 0.1])]),
        Product([MultivariateGaussian([0, 1], [1, -1], [[2, 0], [0, 1]]), Categorical(2, [0.1, 0.3, 0.6])]),
        Product([Gaussian(0, mean=-1, variance=1), Gaussian(1, mean=2, variance=0.5), Categorical(2, [0.3, 0.3, 0.4])]),
    ],
    [0.5, 0.3, 0.2],
)


def posteriors_of(spn):
    return RowPosteriors(lambda cells: log_posterior(spn.log_joint(cells)))


def integrated(row, known):
    """Density of some cells of a row with each child: the others are summed and integrated over complete rows."""
    grid = np.linspace(-10, 10, 201)
    ranges = [np.array([row[column]]) if column in known else grid for column in (0, 1)]
    ranges.append(np.array([row[2]]) if 2 in known else np.arange(3.0))
    complete = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, 3)
    # Sums over a grid integrate what vanishes at its ends to rounding.
    return np.exp(SPN(ROOT).log_joint(complete)).sum(axis=0) * (grid[1] - grid[0]) ** sum(
        c not in known for c in (0, 1)
    )


def test_values_are_those_of_all_orders_with_integrated_conditionals():
    row = np.array([0.5, -0.7, 2.0])
    worth = {}
    for members in product([False, True], repeat=3):
        known = tuple(np.flatnonzero(members))
        joint = integrated(row, known)
        worth[known] = np.log(joint[1]) - np.log(joint[0] + joint[2])
    expected = np.zeros(3)
    for order in permutations(range(3)):
        for place, column in enumerate(order):
            before, after = tuple(sorted(order[:place])), tuple(sorted(order[: place + 1]))
            expected[column] += (worth[after] - worth[before]) / 6
    found = explain_rows(posteriors_of(SPN(ROOT)), row[None], np.array([1]), np.random.default_rng(0))
    np.testing.assert_allclose(found.values[0], expected, atol=1e-6)
    np.testing.assert_allclose((found.base[0], found.total[0]), (worth[()], worth[0, 1, 2]), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_values_add_up_and_missing_cells_have_none(seed, monkeypatch):
    spn, table, rng = random_problem(seed, n_rows=12, n_columns=5, missing=0.4)
    table[0] = np.nan
    n_children = spn.log_joint(table).shape[1]
    codes = rng.integers(n_children, size=len(table))
    monkeypatch.setattr("safespn.answers.coalitions.CELLS_AT_ONCE", 185)
    monkeypatch.setattr("safespn.answers.explanation.EVALUATED_AT_ONCE", 100)
    found = explain_rows(posteriors_of(spn), table, codes, rng)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), found.total, atol=1e-9)
    assert (found.values[np.isnan(table)] == 0).all()
    assert (found.standard_error == 0).all()
    assert found.base[0] == found.total[0]


def test_a_column_that_says_nothing_has_no_value_and_twins_have_equal_ones():
    twins = [
        Product([Gaussian(0, mean=m, variance=1), Gaussian(1, mean=m, variance=1), Gaussian(2, mean=0, variance=1)])
        for m in (-1, 1)
    ]
    spn = SPN(Sum(twins, [0.4, 0.6]))
    found = explain_rows(posteriors_of(spn), np.array([[0.3, 0.3, 5.0]]), np.array([0]), np.random.default_rng(0))
    assert found.values[0, 2] == pytest.approx(0, abs=1e-12)
    assert found.values[0, 0] == pytest.approx(found.values[0, 1])


def test_a_single_known_cell_has_all_of_the_value():
    spn, table, _ = random_problem(3, n_rows=2, n_columns=4, missing=0.0)
    table[:, 1:] = np.nan
    found = explain_rows(posteriors_of(spn), table, np.zeros(2, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(found.values[:, 0], found.total - found.base, atol=1e-12)


def test_values_of_a_short_row_do_not_depend_on_the_rows_beside_it():
    spn, table, _ = random_problem(3, n_rows=12, n_columns=12, missing=0.4)
    codes = np.zeros(len(table), dtype=int)
    together = explain_rows(posteriors_of(spn), table, codes, np.random.default_rng(0), np.inf)
    short = np.flatnonzero((~np.isnan(table)).sum(axis=1) <= 10)
    assert 2 <= len(short) < len(table)
    for row in short:
        alone = explain_rows(posteriors_of(spn), table[[row]], codes[:1], np.random.default_rng(0))
        np.testing.assert_allclose(together.values[row], alone.values[0], atol=1e-9)
        assert (together.standard_error[row] == 0).all()


def two_clouds_per_class(n_columns):
    """Three classes of two clouds each: log odds that are far from additive."""
    rng = np.random.default_rng(7)
    clouds = [[Gaussian(column, mean=rng.normal(0, 1.5), variance=1) for column in range(n_columns)] for _ in range(6)]
    classes = [Sum([Product(clouds[2 * k]), Product(clouds[2 * k + 1])], [0.5, 0.5]) for k in range(3)]
    return SPN(Sum(classes, [0.5, 0.3, 0.2])), rng.normal(0, 1.5, (6, n_columns))


def drawn_values(seed, monkeypatch, **options):
    """Exact values, and those from random circles."""
    spn, table = two_clouds_per_class(6)
    table[1, 2] = np.nan
    codes = np.array([0, 1, 2, 0, 1, 2])
    exact = explain_rows(posteriors_of(spn), table, codes, np.random.default_rng(seed))
    with monkeypatch.context() as patch:
        patch.setattr("safespn.answers.explanation.MOST_EXACT_COLUMNS", 2)
        return exact, explain_rows(posteriors_of(spn), table, codes, np.random.default_rng(seed), **options)


def test_random_orders_estimate_the_exact_values(monkeypatch):
    exact, drawn = drawn_values(0, monkeypatch, tolerance=0.0, max_permutations=1200)
    np.testing.assert_allclose(drawn.base + drawn.values.sum(axis=1), drawn.total, atol=1e-9)
    assert drawn.standard_error.max() > 1e-6
    assert (np.abs(drawn.values - exact.values) <= 4 * drawn.standard_error + 1e-9).all()
    _, rough = drawn_values(0, monkeypatch, tolerance=np.inf)
    assert (rough.standard_error >= drawn.standard_error - 1e-12).mean() > 0.8


def test_single_orders_with_their_reverse_estimate_the_exact_values(monkeypatch):
    monkeypatch.setattr("safespn.answers.explanation.MOST_ON_CIRCLES", 3)
    exact, drawn = drawn_values(0, monkeypatch, tolerance=0.0, max_permutations=400)
    np.testing.assert_allclose(drawn.base + drawn.values.sum(axis=1), drawn.total, atol=1e-9)
    assert drawn.standard_error.max() > 1e-6
    assert (np.abs(drawn.values - exact.values) <= 4 * drawn.standard_error + 1e-9).all()


def test_standard_errors_are_the_spread_of_repeated_runs(monkeypatch):
    runs = [drawn_values(seed, monkeypatch, tolerance=0.0, max_permutations=192) for seed in range(60)]
    errors = np.array([drawn.values - exact.values for exact, drawn in runs])
    stated = np.sqrt(np.mean([drawn.standard_error**2 for _, drawn in runs], axis=0))
    drawn_cells = stated > 1e-9
    assert drawn_cells.sum() > 20
    ratio = np.sqrt((errors**2).mean(axis=0))[drawn_cells] / stated[drawn_cells]
    assert 0.8 < np.median(ratio) < 1.2
    assert ((ratio > 0.6) & (ratio < 1.5)).all()
    # The mean of many runs is the exact value: no run is biased.
    assert (np.abs(errors.mean(axis=0)[drawn_cells]) < 5 * stated[drawn_cells] / np.sqrt(len(runs))).all()


def test_log_odds_of_certain_classes_are_finite():
    with np.errstate(divide="ignore"):
        certain = np.log([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    np.testing.assert_array_equal(log_odds(certain, np.array([0, 0])), [IMPOSSIBLE, -IMPOSSIBLE])

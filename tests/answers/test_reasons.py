"""Sufficient reasons against all sets of columns, and the game of one row."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from safespn import SPN, Gaussian, Product, Sum
from safespn.answers.coalitions import RowPosteriors
from safespn.answers.explanation import explain_rows
from safespn.answers.reasons import CoalitionGame, find_reasons
from safespn.foundation.posteriors import log_posterior
from tests.networks import random_problem

NAMES = list("abcdefghijkl")


def posteriors_of(spn: SPN):
    return RowPosteriors(lambda cells: log_posterior(spn.log_joint(cells)))


def probability(spn, row, columns, code):
    known = np.full(len(row), np.nan)
    known[list(columns)] = row[list(columns)]
    return float(np.exp(log_posterior(spn.log_joint(known[None])))[0, code])


def smallest_size(spn, row, code, level):
    known = np.flatnonzero(~np.isnan(row))
    for size in range(len(known) + 1):
        if any(probability(spn, row, each, code) >= level for each in combinations(known, size)):
            return size
    return None


@pytest.mark.parametrize("seed", range(4))
def test_reasons_are_the_smallest_of_all_sets(seed):
    spn, table, _ = random_problem(seed, n_rows=5, n_columns=6, missing=0.2)
    posterior = np.exp(log_posterior(spn.log_joint(table)))
    codes = posterior.argmax(axis=1)
    labels = np.array([f"class {code}" for code in range(posterior.shape[1])])
    for level in (0.5, 0.8):
        found = find_reasons(posteriors_of(spn), table, codes, level, labels, NAMES)
        for reason, row, code in zip(found, table, codes, strict=True):
            columns = [NAMES.index(name) for name in reason.columns]
            assert reason.probability == pytest.approx(probability(spn, row, columns, code))
            assert not np.isnan(row[columns]).any()
            assert reason.label == labels[code]
            size = smallest_size(spn, row, code, level)
            assert reason.is_reached == (size is not None)
            if size is not None:
                assert len(columns) == size
                assert reason.is_smallest


def test_longer_rows_are_searched_greedily_and_nothing_is_superfluous():
    spn, table, _ = random_problem(3, n_rows=6, n_columns=12, missing=0.0)
    codes = np.exp(log_posterior(spn.log_joint(table))).argmax(axis=1)
    level = 0.6
    labels = np.arange(spn.log_joint(table).shape[1])
    reached = 0
    for reason, row, code in zip(
        find_reasons(posteriors_of(spn), table, codes, level, labels, NAMES), table, codes, strict=True
    ):
        assert not reason.is_smallest
        if reason.is_reached:
            reached += 1
            columns = [NAMES.index(name) for name in reason.columns]
            assert probability(spn, row, columns, code) >= level
            for column in columns:
                assert probability(spn, row, [each for each in columns if each != column], code) < level
            assert "greedy" in str(reason)
    assert reached


def test_a_probability_that_no_cells_reach_is_told():
    clouds = [Product([Gaussian(column, mean=mean, variance=1) for column in range(3)]) for mean in (0, 1)]
    spn, table = SPN(Sum(clouds, [0.5, 0.5])), np.full((1, 3), 0.5)
    (reason,) = find_reasons(posteriors_of(spn), table, np.array([0]), 0.8, np.array(["ill", "well"]), NAMES)
    assert not reason.is_reached
    assert len(reason.columns) == 3
    assert "No cells make ill as probable" in str(reason)
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        find_reasons(posteriors_of(spn), table, np.array([0]), 1.0, np.array(["ill"]), NAMES)


def test_the_game_of_a_row_has_the_values_of_its_explanation():
    spn, table, rng = random_problem(3, n_rows=1, n_columns=5, missing=0.0)
    table[0, 2] = np.nan
    game = CoalitionGame(posteriors_of(spn), table[0], 1, NAMES)
    assert game.n_players == 4
    assert game.player_names == ["a", "b", "d", "e"]
    found = explain_rows(posteriors_of(spn), table, np.array([1]), rng)
    assert game.empty_coalition_value == game.normalization_value == pytest.approx(found.base[0])
    assert game.grand_coalition_value == pytest.approx(found.total[0])
    orders = [np.array(order) for order in permutations(range(4))]
    values = np.zeros(4)
    for order in orders:
        steps = np.array([np.isin(np.arange(4), order[:size]) for size in range(5)])
        values[order] += np.diff(game(steps)) / len(orders)
    np.testing.assert_allclose(values, found.values[0, [0, 1, 3, 4]], atol=1e-9)
    with pytest.raises(ValueError, match="each of 4 players"):
        game(np.ones((2, 5)))

"""What every family of class networks must obey; a new family joins by its line in ``families.py``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp

from safespn.class_networks import forest
from safespn.class_networks.folds import draw_folds
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.learning.parameters import constrain, log_prior, m_step
from safespn.rows.memory import MemoryRows
from safespn.safety.problem import Problem, ProblemSource
from tests.class_networks.tables import ROWS, SOURCES, labelled_table, learn, table_of

sources = pytest.mark.parametrize("source", SOURCES)
tables = pytest.mark.parametrize("name", ROWS)
GRID = np.linspace(-9, 15, 6001)


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES_PER_FOLD", 2)


@cache
def built(source, name):
    """The smallest and the largest network that a source builds for a table."""
    candidates = learn(source, table_of(name))
    assert candidates, f"{source} has nothing to offer for the table {name}"
    return [candidates[0].build(), candidates[-1].build()]


def log_joint(network, cells):
    return passes.log_joint(bind(network.structure, network.parameters), np.asarray(cells, dtype=np.float64))


def values_of(table, column):
    """Values of a column to sum over, and the width that each stands for."""
    n_states = table.n_states[column]
    return (np.arange(float(n_states)), 1.0) if n_states else (GRID, GRID[1] - GRID[0])


@sources
@tables
def test_the_root_has_one_child_per_class(source, name):
    table = table_of(name)
    for network in built(source, name):
        assert network.structure.n_root_edges == table.n_classes
        np.testing.assert_allclose(logsumexp(network.parameters.log_weights[-table.n_classes :]), 0, atol=1e-12)


@sources
@tables
def test_density_integrates_to_one(source, name):
    table = table_of(name)
    for network in built(source, name):
        nothing = np.full((1, table.n_columns), np.nan)
        np.testing.assert_allclose(logsumexp(log_joint(network, nothing)), 0, atol=1e-10)
        for column in range(table.n_columns):
            values, width = values_of(table, column)
            cells = np.full((len(values), table.n_columns), np.nan)
            cells[:, column] = values
            np.testing.assert_allclose(np.exp(log_joint(network, cells)).sum() * width, 1, atol=2e-3)


@sources
@tables
def test_a_missing_cell_is_marginalised(source, name):
    """With the integral of every single column this gives that of the whole density, too."""
    table = table_of(name)
    complete = np.nonzero(~np.isnan(table.cells).any(axis=1))[0][[3, 50, -3]]
    for network in built(source, name):
        for row, column in zip(complete, [0, 1, 0], strict=True):
            values, width = values_of(table, column)
            cells = np.tile(table.cells[row], (len(values), 1))
            cells[:, column] = values
            gap = table.cells[[row]].copy()
            gap[0, column] = np.nan
            by_hand = logsumexp(log_joint(network, cells), axis=0) + np.log(width)
            np.testing.assert_allclose(log_joint(network, gap)[0], by_hand, atol=5e-3)


@sources
@tables
def test_em_never_lowers_the_objective(source, name):
    table = table_of(name)
    rows = MemoryRows(table.cells, table.codes, table.n_classes, table.weights, n_jobs=1)
    for network in built(source, name):
        problem = ProblemSource(Problem(network.structure, rows, network.prior))
        parameters = constrain(network.structure, network.parameters, network.prior)
        objective = []
        for _ in range(6):
            statistics = problem.statistics(parameters)
            objective.append(statistics.objective + log_prior(network.structure, parameters, network.prior))
            parameters = m_step(network.structure, parameters, statistics, network.prior)
        assert np.isfinite(objective).all()
        assert (np.diff(objective) >= -1e-9 * np.abs(objective[0])).all(), objective


@sources
@tables
def test_left_out_posteriors_do_not_see_the_labels(source, name):
    table = table_of(name)
    folds = draw_folds(table, np.random.default_rng(1))
    before = learn(source, table, folds)
    for fold in (0, 3):
        out = folds.number == fold
        codes = folds.codes.copy()
        codes[out] = (codes[out] + 1) % table.n_classes
        all_codes = table.codes.copy()
        all_codes[folds.rows] = codes
        after = learn(source, replace(table, codes=all_codes), replace(folds, codes=codes))
        is_of_fold = folds.number[folds.left_out] == fold
        changed = False
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(other.left_out[is_of_fold], one.left_out[is_of_fold], rtol=1e-9, atol=1e-9)
            changed |= not np.allclose(other.left_out[~is_of_fold], one.left_out[~is_of_fold])
        assert changed, "labels that were not left out say nothing"


def posteriors(candidate):
    return candidate.left_out - logsumexp(candidate.left_out, axis=1, keepdims=True)


@sources
@tables
def test_neither_order_nor_repetition_of_rows_matters(source, name):
    """A row of weight two is that row twice."""
    cells, codes, n_states = ROWS[name]
    rng = np.random.default_rng(4)
    weights = 1.0 + (np.arange(len(cells)) % 3 == 0)
    order = rng.permutation(np.repeat(np.arange(len(cells)), weights.astype(int)))
    weighted = learn(source, labelled_table(cells, codes, n_states, weights))
    repeated = learn(source, labelled_table(cells[order], codes[order], n_states))
    plain = learn(source, table_of(name))
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(posteriors(other), posteriors(one), rtol=1e-8)
    one, other = weighted[-1].build(), repeated[-1].build()
    np.testing.assert_allclose(log_joint(other, cells[:20]), log_joint(one, cells[:20]), rtol=1e-8)
    assert not all(np.allclose(posteriors(a), posteriors(b)) for a, b in zip(plain, weighted, strict=True))


@sources
@tables
def test_left_out_labels_are_predicted(source, name):
    """Better than by the class proportions, on tables whose classes overlap little."""
    table = table_of(name)
    folds = draw_folds(table, np.random.default_rng(1))
    out = folds.left_out
    losses = [-posteriors(each)[np.arange(len(out)), folds.codes[out]].mean() for each in learn(source, table, folds)]
    assert min(losses) < 0.95 * np.log(table.n_classes)

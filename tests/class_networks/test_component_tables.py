"""Class tables of shared components: closed forms against the iterations that they replace, and small cases by hand."""

from __future__ import annotations

import numpy as np

from safespn.class_networks import component_tables
from safespn.class_networks.component_tables import Responsibilities, spread_tables
from safespn.class_networks.folds import draw_folds
from tests.class_networks.tables import labelled_table


def problem(n_rows=60, n_components=6, n_labelled=9):
    generator = np.random.default_rng(3)
    codes = np.full(n_rows, -1)
    codes[:n_labelled] = np.arange(n_labelled) % 3
    table = labelled_table(generator.normal(size=(n_rows, 2)), codes)
    folds = draw_folds(table, generator)
    return table, folds, generator.dirichlet(np.full(n_components, 0.3), size=len(table.cells))


def test_spreading_ends_where_em_ends(monkeypatch):
    monkeypatch.setattr(component_tables, "PROPORTION_STEPS", 0)
    table, folds, responsibilities = problem()
    solved = spread_tables(Responsibilities(table, folds, responsibilities), folds.weights)
    indicators = (folds.codes[:, None] == np.arange(3)) * folds.weights[:, None]
    proportions = (indicators.sum(axis=0) + 1) / (indicators.sum() + 3)
    labels = responsibilities[folds.rows].T @ indicators + component_tables.PSEUDO_ROWS * proportions
    tables = np.full((6, 3), 1 / 3)
    for _ in range(5000):
        posterior = responsibilities @ tables
        # Known labels count as such, and all rows as what their components make of them.
        tables = labels + (responsibilities * table.weights[:, None]).T @ posterior
        tables /= tables.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(solved, tables, atol=1e-9)


def test_the_mean_prediction_has_the_labelled_proportions():
    table, folds, responsibilities = problem()
    tables = spread_tables(Responsibilities(table, folds, responsibilities), folds.weights)
    mean = table.weights @ responsibilities @ tables / table.weights.sum()
    np.testing.assert_allclose(mean, 1 / 3, atol=0.02)


def test_left_out_labels_leave_no_trace():
    table, folds, responsibilities = problem()
    weights = folds.kept_weights(0)
    other = table.codes.copy()
    out = folds.rows[folds.number == 0]
    other[out] = (other[out] + 1) % 3
    changed = type(folds)(folds.rows, other[folds.rows], folds.weights, folds.number)
    one, other = (spread_tables(Responsibilities(table, each, responsibilities), weights) for each in (folds, changed))
    np.testing.assert_array_equal(one, other)

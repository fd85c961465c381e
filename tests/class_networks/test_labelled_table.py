from __future__ import annotations

import numpy as np

from safespn.class_networks.labelled_table import LabelledTable
from tests.class_networks.tables import labelled_table


def test_equal_rows_of_a_class_are_merged_and_their_weights_add():
    cells = np.array([[2.0, np.nan], [1, 0], [2, np.nan], [2, np.nan]])
    table = labelled_table(cells, np.array([0, 1, 0, -1]), weights=np.array([1.0, 2, 3, 4]))
    np.testing.assert_array_equal(table.cells, [[1, 0], [2, np.nan], [2, np.nan]])
    np.testing.assert_array_equal(table.codes, [1, -1, 0])
    np.testing.assert_array_equal(table.weights, [2, 4, 4])
    np.testing.assert_array_equal(table.class_weights, [4, 2])
    np.testing.assert_array_equal(table.labelled, [0, 2])


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(0)
    cells, codes, weights = rng.integers(4, size=(50, 3)).astype(float), rng.integers(-1, 2, 50), rng.random(50)
    order = rng.permutation(50)
    one = LabelledTable.of_rows(cells, codes, weights, [0, 0, 4], 2)
    other = LabelledTable.of_rows(cells[order], codes[order], weights[order], [0, 0, 4], 2)
    np.testing.assert_array_equal(other.cells, one.cells)
    np.testing.assert_array_equal(other.codes, one.codes)
    np.testing.assert_allclose(other.weights, one.weights)


def test_moments_are_those_of_the_observed_cells():
    cells = np.array([[1.0, 7, np.nan], [3, 7, np.nan], [np.nan, 7, np.nan], [8, 7, np.nan]])
    table = labelled_table(cells, np.array([0, 1, -1, -1]), weights=np.array([1.0, 1, 5, 2]))
    assert table.mean[0] == 5
    assert table.variance[0] == (16 + 4 + 2 * 9) / 4
    np.testing.assert_array_equal(table.is_constant, [False, True, True])
    np.testing.assert_array_equal(table.variance[1:], [1, 1])
    np.testing.assert_array_equal(table.min_variance(0.5), [table.variance[0] / 2, 1, 1])
    assert np.isfinite(table.mean).all()


def test_the_design_matrix_standardises_numbers_and_spreads_states():
    cells = np.array([[1.0, 0], [3, 2], [np.nan, np.nan]])
    design = labelled_table(cells, np.array([0, 1, -1]), [0, 3]).design
    rows = [[-1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    np.testing.assert_allclose(sorted(map(list, design.values.tolist())), sorted(rows))
    np.testing.assert_array_equal(design.column, [0, 1, 1, 1])
    np.testing.assert_array_equal(design.state, [-1, 0, 1, 2])
    # Rows that differ in their state are as far apart as rows that differ by one standard deviation.
    states = np.unique(design.scaled[:, 1:], axis=0)
    np.testing.assert_allclose(np.sum((states[1] - states[2]) ** 2), 1)


def test_a_cell_far_outside_does_not_set_the_scale():
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.normal(size=300), rng.normal(size=300), rng.integers(2, size=300), np.arange(300) < 1])
    cells[5, 1] = np.nan
    plain = labelled_table(cells, np.arange(300) % 2, n_states=[0, 0, 2, 0])
    np.testing.assert_array_equal(plain.winsorised, plain.cells)
    cells[7, 1] = 1e6
    table = labelled_table(cells, np.arange(300) % 2, n_states=[0, 0, 2, 0])
    moved = (table.winsorised != table.cells) & ~np.isnan(table.cells)
    assert moved.sum() == 1
    assert table.cells[moved] == 1e6
    assert table.variance[1] < 50 * plain.variance[1]
    np.testing.assert_array_equal(table.variance[[0, 2, 3]], plain.variance[[0, 2, 3]])
    assert np.abs(table.design.values).max() < 30


def test_weights_count_where_cells_are_winsorised():
    cells = np.append(np.linspace(0, 1, 40), 1e3)[:, None]
    weights = np.append(np.full(40, 3.0), 1.0)
    codes = np.arange(41) % 2
    weighted = labelled_table(cells, codes, weights=weights)
    repeated = np.repeat(np.arange(41), weights.astype(int))
    np.testing.assert_array_equal(weighted.winsorised, labelled_table(cells[repeated], codes[repeated]).winsorised)
    assert weighted.winsorised.max() < 1e3

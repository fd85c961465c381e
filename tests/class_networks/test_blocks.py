from __future__ import annotations

import numpy as np
import pytest

from safespn.class_networks.blocks import COLUMNS_PER_BLOCK
from safespn.class_networks.copies import block_root
from safespn.class_networks.folds import draw_folds
from safespn.class_networks.weighing import log_tempered
from safespn.network.leaves import MultivariateGaussian
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import walk
from safespn.network.structure import describe
from tests.class_networks.tables import labelled_table, learn


def wide_rows(n_rows=60, n_columns=200, seed=0):
    """More columns than rows: a strong common factor, and a weak difference of classes that it hides."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % 2
    factor = 3 * rng.normal(size=(n_rows, 1)) * rng.normal(size=n_columns)
    cells = factor + rng.normal(size=(n_rows, n_columns)) + 0.7 * codes[:, None] * rng.normal(size=n_columns)
    return cells, np.where(np.arange(n_rows) < 24, codes, -1)


def test_wide_tables_get_blocks_of_few_columns_whose_covariances_see_common_factors():
    cells, codes = wide_rows()
    table = labelled_table(cells, codes)
    folds = draw_folds(table, np.random.default_rng(1))
    candidates = learn("blocks-blocks", table, folds)
    accuracy = [(each.left_out.argmax(axis=1) == folds.codes[folds.left_out]).mean() for each in candidates]
    assert max(accuracy) > 0.9
    # Nearest centroids, which know of no factor, do not get there.
    z = cells[codes >= 0] / cells.std(axis=0)
    known = codes[codes >= 0]
    distance = []
    for row in range(len(z)):
        others = np.arange(len(z)) != row
        distance.append([((z[row] - z[others & (known == code)].mean(axis=0)) ** 2).sum() for code in (0, 1)])
    assert (np.argmin(distance, axis=1) == known).mean() < max(accuracy) - 0.1
    network = candidates[0].build()
    leaves = [node for node in walk(describe(network.structure, network.parameters)) if not node.children]
    assert all(isinstance(leaf, MultivariateGaussian) and len(leaf.columns) <= COLUMNS_PER_BLOCK for leaf in leaves)


@pytest.mark.parametrize(("block_size", "sizes"), [(7, [7]), (4, [4, 3]), (3, [3, 2, 2]), (1, [1] * 7)])
def test_neighbouring_columns_share_a_block(block_size, sizes):
    table = np.random.default_rng(0).normal(size=(9, 7))
    leaves = [node for node in walk(block_root(table, [0] * 7, block_size=block_size)) if not node.children]
    assert sorted((len(leaf.columns) for leaf in leaves), reverse=True) == sizes
    assert sorted(column for leaf in leaves for column in leaf.columns) == list(range(7))
    assert all(np.diff(leaf.columns).tolist() == [1] * (len(leaf.columns) - 1) for leaf in leaves)


def test_a_diagonal_target_needs_no_matrix_of_all_columns():
    columns = np.array([[0, 3], [2, 1]])
    diagonal = np.array([1.0, 2, 3, 4])
    whole = LeafPrior(covariance_target=np.diag(diagonal)).covariance_target_of(columns)
    np.testing.assert_array_equal(LeafPrior(covariance_target=diagonal).covariance_target_of(columns), whole)


@pytest.mark.parametrize("n_labels", [2, 6])
def test_meaningless_labels_are_not_predicted(n_labels):
    """A class that loses one of two labels must not be recognised by what is left of it."""
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        codes = np.where(np.arange(200) < 8 * n_labels, np.arange(200) % 8, -1)
        table = labelled_table(rng.normal(size=(200, 6)), codes)
        folds = draw_folds(table, rng)
        of_label = [
            log_tempered(each.left_out, 4.0)[np.arange(len(folds.left_out)), folds.codes[folds.left_out]].mean()
            for each in learn("blocks-blocks", table, folds)
        ]
        losses.append(-max(of_label))
    assert np.mean(losses) > 0.95 * np.log(8)

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from safespn.class_networks import forest
from safespn.class_networks.committee import Committee, Member
from safespn.class_networks.folds import Folds, draw_folds
from safespn.network.leaves import DensityTree, Gaussian
from safespn.network.nodes import walk
from safespn.network.structure import describe
from tests.class_networks.tables import SETTINGS, labelled_table, table_of


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES_PER_FOLD", 2)


def grown(table, kind="extra trees", folds=None):
    folds = draw_folds(table, np.random.default_rng(0)) if folds is None else folds
    return forest._Forest.grown(table, folds, forest._Ranks(table), kind, seed=0), folds


def voting_posteriors(network, cells):
    member = Member("forest", "", 1.0, 1.0, 0.0, 1.0, network.structure, network.parameters, votes=True)
    return np.exp(Committee((member,)).evaluate(cells)[1])


@pytest.mark.parametrize("name", ["real", "three classes"])
def test_without_shrinkage_class_tables_are_those_of_the_tree(name, monkeypatch):
    """Of scikit-learn's own tree, where it grew on the same labels: here no fold leaves any out."""
    monkeypatch.setattr(forest, "SHRINKAGE", 0.0)
    monkeypatch.setattr(forest, "KINDS", {"tree": lambda n, bootstrap, n_jobs, **options: _OneTree(**options)})
    monkeypatch.setattr(forest, "TREES_PER_FOLD", 1)
    table = table_of(name)
    known = table.labelled
    folds = Folds(known, table.codes[known], table.weights[known], np.full(len(known), -1))
    trees, _ = grown(table, "tree", folds)
    tables = trees.class_tables(folds.codes, folds.weights)
    by_tree = tables[trees.leaf[known, 0]]
    # The root is drawn to equal classes by one row, and differences along the path are kept: compare differences.
    root = tables[trees.root[0]]
    counts = table.class_weights / table.class_weights.sum()
    np.testing.assert_allclose(by_tree - root + counts, _OneTree.last.predict_proba(_OneTree.features), atol=1e-6)
    assert by_tree.min() > 0


class _OneTree:
    """A forest of a single tree of scikit-learn."""

    def __init__(self, **options):
        self.tree = DecisionTreeClassifier(**options)

    def fit(self, features, codes, sample_weight):
        self.estimators_ = [self.tree.fit(features, codes, sample_weight)]
        _OneTree.last, _OneTree.features = self.tree, features
        return self

    def apply(self, features):
        return self.tree.apply(features)[:, None]


@pytest.mark.parametrize("name", ["real", "three classes"])
def test_posteriors_of_complete_rows_are_the_mean_of_the_leaves_tables(name):
    table = table_of(name)
    trees, folds = grown(table)
    tables = trees.class_tables(folds.codes, folds.weights)
    network = trees.network(SETTINGS)
    np.testing.assert_allclose(voting_posteriors(network, table.cells), tables[trees.leaf].mean(axis=1), atol=1e-9)


def test_box_shares_are_those_of_all_rows():
    table = table_of("real")
    trees, _ = grown(table)
    shares = trees.box_shares()
    first = slice(trees.root[0], trees.root[1])
    counts = np.bincount(trees.leaf[:, 0], table.weights, trees.root[1]) + 0.5 * (trees.left[first] < 0)
    np.testing.assert_allclose(shares[first], counts / counts.sum())


def test_columns_that_no_tree_tests_are_one_shared_part():
    """They say nothing about classes, and are not repeated for every tree."""
    rng = np.random.default_rng(0)
    codes = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    signal = rng.normal(4.0 * (np.arange(60) % 2))
    constant = np.tile(np.arange(5.0), (60, 1))
    table = labelled_table(np.column_stack([constant, signal]), codes)
    trees, _ = grown(table)
    network = trees.network(SETTINGS)
    leaves = [node for node in walk(describe(network.structure, network.parameters)) if not node.children]
    assert {leaf.columns for leaf in leaves if isinstance(leaf, DensityTree)} == {(5,)}
    assert sorted(leaf.columns[0] for leaf in leaves if isinstance(leaf, Gaussian)) == [0, 1, 2, 3, 4]
    other = table.cells.copy()
    other[:, :5] = np.nan
    np.testing.assert_allclose(voting_posteriors(network, other), voting_posteriors(network, table.cells), atol=1e-9)


def test_trees_without_any_split():
    table = labelled_table(np.tile([1.0, 2.0], (4, 1)), np.array([0, 1, -1, -1]))
    trees, _ = grown(table)
    np.testing.assert_allclose(voting_posteriors(trees.network(SETTINGS), table.cells), 0.5, atol=1e-6)

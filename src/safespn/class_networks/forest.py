"""Forest circuits: decision trees grown on the labels, each a density over the boxes that its leaves are.

On complete rows a tree's class posterior is its leaf's class table (generative forests, Correia, Peharz and de Campos
2020); rows with missing cells are marginalised over the boxes. The tables are shrunk along the path to the root
(hierarchical shrinkage, Agarwal et al. 2022); how many rows fall into a box is learned from all rows. Posteriors are
averaged over trees.

Each tree is grown without the labels of one fold, so that held-out labels cost nothing extra; afterwards all labels
fill its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import sklearn
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from safespn.class_networks.candidate import Candidate, ClassNetwork, NetworkSettings, compile_checked
from safespn.class_networks.copies import independent_columns
from safespn.class_networks.folds import N_FOLDS, Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.learning.parameters import Prior, PseudoDataPrior
from safespn.network.leaves import DensityTree
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, Product, Sum
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

KINDS = {"extra trees": ExtraTreesClassifier, "random forest": RandomForestClassifier}
TREES_PER_FOLD = 16
SHRINKAGE = 1.0
"""Pseudo-rows by which a node's class table is drawn towards its parent's."""
ROWS_PER_LEAF = 2.0
USUAL_TEMPERATURE = 0.4
FEWEST_ROWS_FOR_LEAVES = 40
"""With fewer labelled rows a leaf may hold a single one."""


def candidates(
    table: LabelledTable, folds: Folds, settings: NetworkSettings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield a forest of each kind."""
    ranks = _Ranks(table)
    for kind in KINDS:
        forest = _Forest.grown(table, folds, ranks, kind, int(generator.integers(2**31)))
        left_out = np.log(np.maximum(forest.left_out(folds), 1e-12))
        build = partial(forest.network, settings)
        yield Candidate(
            "forest", "forest", f"{forest.n_trees} {kind}", left_out[folds.left_out], USUAL_TEMPERATURE, build
        )


class _Ranks:
    """Numbers by their ranks, codes by one indicator per state: what the trees are grown on.

    Ranks are exact in the single precision of scikit-learn's trees, and random thresholds follow the quantiles of all
    rows.
    """

    def __init__(self, table: LabelledTable) -> None:
        self.column, self.state = table.design.column, table.design.state
        features: list[FloatArray] = []
        self.values: dict[int, FloatArray] = {}
        for column in table.real_columns.tolist():
            cells = table.cells[:, column]
            known = ~np.isnan(cells)
            self.values[column], ranks = np.unique(cells[known], return_inverse=True)
            # Whole ranks: between two neighbours there is no value to split at.
            feature = np.full(len(cells), np.floor(np.median(ranks)) if known.any() else 0.0)
            feature[known] = ranks
            features.append(feature)
        for column in table.code_columns.tolist():
            # A gap counts as the most frequent state: a tree must not find a box for gaps, which holds no state.
            states = table.cells[:, column, None] == np.arange(table.n_states[column])
            most_frequent = np.arange(table.n_states[column]) == (table.weights @ states).argmax()
            states = np.where(states.any(axis=1, keepdims=True), states, most_frequent)
            features.extend(states.T.astype(np.float64))
        self.features = np.column_stack(features).astype(np.float32)

    def tests(self, feature: IntArray, threshold: FloatArray) -> FloatArray:
        """Write splits as tests ``low < x <= high`` of table columns: columns, lows and highs, shape (n_splits, 3)."""
        result = np.empty((len(feature), 3))
        for number, (of_split, at) in enumerate(zip(feature.tolist(), threshold.tolist(), strict=True)):
            column, state = int(self.column[of_split]), int(self.state[of_split])
            if state >= 0:
                # An indicator of at most one half: every state but this one.
                result[number] = column, state - 0.5, state + 0.5
            else:
                values = self.values[column]
                below = min(max(int(np.floor(at)), 0), len(values) - 2)
                result[number] = column, -np.inf, (values[below] + values[below + 1]) / 2
        return result


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees in one list of nodes: node numbers run through all trees, parents before children."""

    table: LabelledTable
    ranks: _Ranks
    fold_of_tree: IntArray
    root: IntArray
    """Number of each tree's root, and last the number of nodes."""
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    leaf: IntArray
    """Leaf node of each row in each tree, shape (n_rows, n_trees)."""

    @classmethod
    def grown(cls, table: LabelledTable, folds: Folds, ranks: _Ranks, kind: str, seed: int) -> _Forest:
        """Grow the trees of every fold on the labels that it keeps."""
        options = {"bootstrap": False, "max_features": "sqrt", "n_jobs": 1}
        total = table.class_weights.sum()
        per_leaf = ROWS_PER_LEAF if total >= FEWEST_ROWS_FOR_LEAVES else 1.0
        trees, leaves, fold_of_tree = [], [], []
        labelled = ranks.features[folds.rows]
        for fold in range(N_FOLDS):
            weights = folds.kept_weights(fold)
            kept = weights > 0
            share = min(0.5, per_leaf * (1 - 1e-9) / weights.sum())
            forest = KINDS[kind](
                TREES_PER_FOLD, min_weight_fraction_leaf=share, random_state=(seed + fold) % 2**31, **options
            )
            # The table has been checked; checks of every tree would take longer than growing it.
            with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
                forest.fit(labelled[kept], folds.codes[kept], sample_weight=weights[kept])
            trees += [tree.tree_ for tree in forest.estimators_]
            leaves.append(forest.apply(ranks.features))
            fold_of_tree += [fold] * TREES_PER_FOLD
        root = np.cumsum([0] + [tree.node_count for tree in trees])
        shifts = np.repeat(root[:-1], np.diff(root))

        def joined(name: str) -> AnyArray:
            return np.concatenate([getattr(tree, name) for tree in trees])

        left, right = (np.where(joined(f"children_{side}") < 0, -1, joined(f"children_{side}") + shifts)
                       for side in ("left", "right"))  # fmt: skip
        leaf = np.concatenate(leaves, axis=1) + root[:-1]
        return cls(
            table, ranks, np.array(fold_of_tree), root, joined("feature"), joined("threshold"), left, right, leaf
        )

    @property
    def n_trees(self) -> int:
        return len(self.fold_of_tree)

    @cached_property
    def _levels(self) -> list[IntArray]:
        """Inner nodes by depth, from the roots down."""
        levels, nodes = [], self.root[:-1]
        while len(nodes := nodes[self.left[nodes] >= 0]):
            levels.append(nodes)
            nodes = np.concatenate([self.left[nodes], self.right[nodes]])
        return levels

    def left_out(self, folds: Folds) -> FloatArray:
        """Mean posterior of each labelled row over the trees without its label, shape (n_labelled, n_classes)."""
        result = np.zeros((len(folds.rows), self.table.n_classes))
        for fold in range(N_FOLDS):
            out = folds.number == fold
            if out.any():
                tables = self.class_tables(folds.codes, folds.kept_weights(fold))
                of_rows = self.leaf[np.ix_(folds.rows[out], np.nonzero(self.fold_of_tree == fold)[0])]
                result[out] = tables[of_rows].mean(axis=1)
        return result

    def class_tables(self, codes: IntArray, weights: FloatArray) -> FloatArray:
        """Class table of every node, drawn towards its parent's, shape (n_nodes, n_classes)."""
        n_classes = self.table.n_classes
        counts = np.zeros((self.root[-1], n_classes))
        leaf = self.leaf[self.table.labelled]
        np.add.at(counts, (leaf, codes[:, None]), weights[:, None])
        for nodes in reversed(self._levels):
            counts[nodes] = counts[self.left[nodes]] + counts[self.right[nodes]]
        total = counts.sum(axis=1, keepdims=True)
        own = counts / np.maximum(total, 1e-300)
        tables = np.empty_like(counts)
        roots = self.root[:-1]
        tables[roots] = (counts[roots] + 1 / n_classes) / (total[roots] + 1)
        for nodes in self._levels:
            for children in (self.left[nodes], self.right[nodes]):
                step = (own[children] - own[nodes]) / (1 + SHRINKAGE / np.maximum(total[nodes], 1e-9))
                tables[children] = tables[nodes] + np.where(total[children] > 0, step, 0.0)
        tables = np.maximum(tables, 1e-9)
        return np.asarray(tables / tables.sum(axis=1, keepdims=True))

    def box_shares(self) -> FloatArray:
        """Share of all rows in each leaf's box, shape (n_nodes,); boxes of a tree sum to one."""
        weights = np.repeat(self.table.weights, self.n_trees)
        counts = np.bincount(self.leaf.ravel(), weights, self.root[-1]).astype(np.float64)
        counts[self._is_leaf] += 0.5
        return counts / np.add.reduceat(counts, self.root[:-1]).repeat(np.diff(self.root))

    @cached_property
    def _is_leaf(self) -> BoolArray:
        return np.asarray(self.left < 0)

    def network(self, settings: NetworkSettings) -> ClassNetwork:
        """Make a class network: each class a sum over the trees, with box probabilities of its own.

        Columns that no tree tests are the same sub-network for all classes and trees: in wide tables, nearly all.
        """
        table = self.table
        tables = self.class_tables(table.codes[table.labelled], table.weights[table.labelled])
        joint = self.box_shares()[:, None] * tables
        base = np.column_stack([table.mean, table.variance])
        for column in table.code_columns:
            base[column] = table.n_states[column], 0.0
        n_boxes = int(np.add.reduceat(self._is_leaf, self.root[:-1]).max())
        trees = [self._tree(number, n_boxes) for number in range(self.n_trees)]
        others = np.setdiff1d(np.arange(table.n_columns), self._tested).tolist()
        rest = [independent_columns(table, others)] if others else []
        classes, of_class = [], np.zeros(table.n_classes)
        for code in range(table.n_classes):
            parts: list[Node] = []
            shares = []
            for nodes, boxes in trees:
                mass = np.zeros(n_boxes)
                mass[: len(boxes)] = joint[boxes, code]
                shares.append(mass.sum())
                leaf = DensityTree(self._tested.tolist(), nodes, mass / mass.sum(), base[self._tested])
                parts.append(Product([leaf, *rest]) if rest else leaf)
            of_class[code] = sum(shares)
            classes.append(Sum(parts, np.array(shares) / of_class[code]))
        structure, parameters = compile_checked(Sum(classes, (of_class / of_class.sum()).tolist()))
        counts = tuple(np.full(len(values), 1.0) for values in parameters.leaves)
        pseudo_data = PseudoDataPrior(parameters, np.zeros(structure.n_edges), counts)
        leaves = LeafPrior(table.min_variance(settings.variance_floor))
        return ClassNetwork(structure, parameters, Prior(0.0, leaves, pseudo_data), votes=True)

    @cached_property
    def _tested(self) -> IntArray:
        """Columns of the table that some tree tests, at least one."""
        tested = np.unique(self.ranks.column[self.feature[~self._is_leaf]])
        return tested if len(tested) else np.zeros(1, dtype=np.intp)

    def _tree(self, number: int, n_boxes: int) -> tuple[FloatArray, IntArray]:
        """Nodes of a tree as a density tree has them, padded to so many boxes, and its leaves in their order."""
        span = np.arange(self.root[number], self.root[number + 1])
        inner, leaves = span[~self._is_leaf[span]], span[self._is_leaf[span]]
        place = np.empty(len(span), dtype=np.intp)
        place[inner - span[0]] = np.arange(len(inner))
        place[leaves - span[0]] = -1 - np.arange(len(leaves))
        tests = self.ranks.tests(self.feature[inner], self.threshold[inner])
        inside, outside = place[self.left[inner] - span[0]], place[self.right[inner] - span[0]]
        # A split on an indicator has its state on the right.
        is_state = np.isfinite(tests[:, 1])
        inside, outside = np.where(is_state, outside, inside), np.where(is_state, inside, outside)
        nodes = np.zeros((n_boxes - 1, 5))
        column = np.searchsorted(self._tested, tests[:, 0])
        nodes[: len(inner)] = np.column_stack([column, tests[:, 1:], inside, outside])
        if len(inner) == 0 and n_boxes > 1:
            # A tree that is a single leaf: every value is inside.
            nodes[0] = 0, -np.inf, np.inf, -1, -2
        return nodes, leaves

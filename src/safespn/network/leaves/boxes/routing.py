"""Many trees over the same columns: which boxes of every tree the observed cells of a row allow.

A set of boxes is a bit mask. For every column, thresholds of all trees cut the line into intervals, and a table holds
the boxes of each tree that an interval allows; a missing cell allows all. The boxes that a row allows are the
intersection over its columns: one box of each tree for a complete row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from safespn.network.leaves.boxes.tree import Tree, tree_of
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

TREES_PER_BUNDLE = 64
"""Tables grow with the thresholds of a bundle times its trees."""
ROWS_AT_ONCE = 256
"""Rows whose bit masks stay in cache while the columns go over them."""
CACHED_GROVES = 4


class Forest:
    """Trees with equally many boxes and columns."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.trees = tuple(trees)
        self.n_words = trees[0].n_words
        starts = range(0, len(trees), TREES_PER_BUNDLE)
        self._bundles = [_Bundle(trees[start : start + TREES_PER_BUNDLE]) for start in starts]
        self._bases = {tree.base.key: tree.base for tree in trees}
        number = {key: position for position, key in enumerate(self._bases)}
        self._base_of_tree = np.array([number[tree.base.key] for tree in trees], dtype=np.intp)

    def allowed(self, cells: FloatArray) -> AnyArray:
        """Boxes that the observed cells of each row allow, as bits, shape (n_trees, n_rows, n_words)."""
        result = np.empty((len(self.trees), len(cells), self.n_words), dtype=np.uint64)
        first = 0
        for bundle in self._bundles:
            stop = first + bundle.n_trees
            codes = [column.codes(cells) for column in bundle.columns]
            for start in range(0, len(cells), ROWS_AT_ONCE):
                rows = slice(start, start + ROWS_AT_ONCE)
                words = bundle.intersection([code[rows] for code in codes], len(cells[rows]))
                result[first:stop, rows] = words.transpose(1, 0, 2)
            first = stop
        return result

    def boxes(self, cells: FloatArray) -> IntArray:
        """Box of each complete row in each tree, shape (n_trees, n_rows); ``n_bits`` where none is possible."""
        return box_of_bit(self.allowed(cells))

    @property
    def n_bits(self) -> int:
        """Bits of a set of boxes, at least one for each box."""
        return 64 * self.n_words

    def log_base(self, cells: FloatArray) -> FloatArray:
        """Log of the base density of the observed cells for each tree, shape (n_trees, n_rows)."""
        distinct = np.array([base.log_density_of_rows(cells) for base in self._bases.values()])
        return np.asarray(distinct[self._base_of_tree])


def box_of_bit(words: AnyArray) -> IntArray:
    """Position of the only bit set in the words along the last axis, or their number of bits if none is."""
    below = np.bitwise_count(words - np.uint64(1))
    box = below[..., 0].astype(np.intp)
    for word in range(1, words.shape[-1]):
        box = np.where(box == 64 * word, 64 * word + below[..., word].astype(np.intp), box)
    return box


def unpacked(words: AnyArray, n_boxes: int) -> BoolArray:
    """Turn words (n_rows, n_words) into one truth value for each box, shape (n_rows, n_boxes)."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_boxes, bitorder="little").view(np.bool_)


@dataclass(frozen=True, eq=False)
class _ColumnTable:
    position: int
    cuts: FloatArray
    words: AnyArray
    """Boxes that each interval allows, shape (n_cuts + 2, n_trees * n_words); the last row is for missing cells."""

    def codes(self, cells: FloatArray) -> IntArray:
        """Return the row of the table for each cell."""
        x = cells[:, self.position]
        code = np.searchsorted(self.cuts, x, side="left")
        missing = np.isnan(x)
        return np.where(missing, len(self.cuts) + 1, code) if missing.any() else code


class _Bundle:
    """Some trees with the tables of their columns."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.n_trees, self.n_words = len(trees), trees[0].n_words
        self.start = np.concatenate([tree.bits(tree.possible[None])[0] for tree in trees])
        positions = sorted({position for tree in trees for position in tree.tested})
        self.columns = [self._table(position, trees) for position in positions]

    def _table(self, position: int, trees: Sequence[Tree]) -> _ColumnTable:
        cuts = np.unique([cut for tree in trees for cut in tree.cuts[position]])
        upper = np.append(cuts, np.inf)
        words = np.full((len(cuts) + 2, self.n_trees, self.n_words), np.iinfo(np.uint64).max, dtype=np.uint64)
        for number, tree in enumerate(trees):
            if tree.cuts[position]:
                allowed = tree.bits(tree.member[:, slice(*tree.start[position : position + 2])].T)
                words[:-1, number] = allowed[np.searchsorted(tree.cuts[position], upper, side="left")]
        return _ColumnTable(position, cuts, words.reshape(len(words), -1))

    def intersection(self, codes: Sequence[IntArray], n_rows: int) -> AnyArray:
        """Boxes allowed by all columns, shape (n_rows, n_trees, n_words)."""
        result = np.tile(self.start, (n_rows, 1))
        allowed = np.empty_like(result)
        for column, code in zip(self.columns, codes, strict=True):
            np.take(column.words, code, axis=0, out=allowed, mode="clip")
            result &= allowed
        return result.reshape(n_rows, self.n_trees, self.n_words)


@dataclass(frozen=True, eq=False)
class Grove:
    """The distinct trees of a group of leaves, and which leaf has which."""

    trees: tuple[Tree, ...]
    tree_of_leaf: IntArray

    @cached_property
    def forest(self) -> Forest:
        return Forest(self.trees)

    @cached_property
    def leaves_of_trees(self) -> list[IntArray]:
        """Leaves that have each tree."""
        order = np.argsort(self.tree_of_leaf, kind="stable")
        return np.split(order, np.searchsorted(self.tree_of_leaf[order], np.arange(1, len(self.trees))))

    @cached_property
    def possible(self) -> BoolArray:
        """Boxes that may have a probability, shape (n_leaves, n_boxes)."""
        return np.array([tree.possible for tree in self.trees])[self.tree_of_leaf]

    @cached_property
    def log_volume(self) -> FloatArray:
        """Log of the base's mass of each box, shape (n_leaves, n_boxes)."""
        return np.array([tree.log_mass.sum(axis=1) for tree in self.trees])[self.tree_of_leaf]

    def box_of_leaves(self, cells: FloatArray) -> Iterator[tuple[slice, IntArray]]:
        """Yield some complete rows at a time, and the box of each leaf that each row is in.

        Boxes, shape (n_leaves, n_rows), are numbered through all leaves; each leaf has one for every bit, and one more
        for rows that are in none.
        """
        boxes, size = self.forest.boxes(cells), self.forest.n_bits + 1
        offset = size * np.arange(len(self.tree_of_leaf))[:, None]
        for start in range(0, len(cells), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            yield rows, boxes[:, rows][self.tree_of_leaf] + offset

    def of_leaf(self, leaf: int) -> Grove:
        """One leaf alone."""
        return _lone(self.trees[self.tree_of_leaf[leaf]])


@lru_cache(maxsize=CACHED_GROVES)
def _grove(structures: bytes, n_leaves: int, n_columns: int) -> Grove:
    size = len(structures) // n_leaves
    parts = [structures[start : start + size] for start in range(0, len(structures), size)] or [b""]
    number: dict[bytes, int] = {}
    tree_of_leaf = np.array([number.setdefault(part, len(number)) for part in parts], dtype=np.intp)
    return Grove(tuple(tree_of(part, n_columns) for part in number), tree_of_leaf)


@lru_cache(maxsize=256)
def _lone(tree: Tree) -> Grove:
    return Grove((tree,), np.zeros(1, dtype=np.intp))


def grove_of(structures: FloatArray, n_columns: int) -> Grove:
    """Return the trees of leaves, given nodes and base of each as one row; EM asks for the same ones at every step."""
    return _grove(structures.tobytes(), len(structures), n_columns)

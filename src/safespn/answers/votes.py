"""Class posteriors of a forest given many subsets of the cells of each row, without a pass over each.

In a tree, what is known of a row only changes which boxes remain and how much each of them counts::

    p(k, x_S)  is proportional to  sum over boxes b that x_S allows of  probability_kb / prod over d in S of mass_bd

with the mass of what box b allows of column d. Weights of boxes depend on the subset alone, boxes that remain are an
intersection of bit masks, and only the columns that a tree tests matter: of all subsets few are distinct to it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np

from safespn.class_networks.committee import Member
from safespn.engine import backends
from safespn.engine.threads import in_order, n_threads
from safespn.foundation.distinct import distinct_rows
from safespn.network.leaves import DensityTree
from safespn.network.leaves.boxes.tree import Tree, tree_of
from safespn.network.nodes import Node, Product, Sum
from safespn.network.structure import describe
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

FEWEST_VOTES = 50_000
"""Rows times subsets times trees that repay loading compiled code, which takes half a second."""
SMALLEST_POSTERIOR = 1e-300


@dataclass(frozen=True, eq=False)
class Voter:
    """One tree, and the probability of each of its boxes together with each class, shape (n_boxes, n_classes)."""

    tree: Tree
    columns: IntArray
    """Columns of the table that the tree's own are."""
    joint: FloatArray

    @cached_property
    def tested(self) -> IntArray:
        return np.array(self.tree.tested, dtype=np.intp)

    @cached_property
    def possible(self) -> AnyArray:
        return np.asarray(self.tree.bits(self.tree.possible[None])[0])

    @cached_property
    def _allowed(self) -> list[AnyArray]:
        """Boxes that each interval of each tested column allows, and last those that a missing cell does: all."""
        everything = np.full((1, self.tree.n_words), np.iinfo(np.uint64).max, dtype=np.uint64)
        parts = [self.tree.member[:, slice(*self.tree.start[at : at + 2])].T for at in self.tested.tolist()]
        return [np.concatenate([self.tree.bits(part), everything]) for part in parts]

    def words(self, cells: FloatArray) -> AnyArray:
        """Boxes that each tested cell allows, as bits, shape (n_rows, n_tested, n_words)."""
        result = np.empty((len(cells), len(self.tested), self.tree.n_words), dtype=np.uint64)
        for number, (at, allowed) in enumerate(zip(self.tested.tolist(), self._allowed, strict=True)):
            x = cells[:, self.columns[at]]
            interval = np.searchsorted(self.tree.cuts[at], x, side="left")
            result[:, number] = allowed[np.where(np.isnan(x), len(allowed) - 1, interval)]
        return result

    def weights(self, members: BoolArray) -> FloatArray:
        """Weight of each box with each class given subsets of the tested cells, (n_subsets, n_boxes, n_classes).

        Scaled for each subset, which its posteriors do not see.
        """
        log_weight = -(members.astype(np.float64) @ self.tree.log_mass[:, self.tested].T)
        log_weight -= np.max(log_weight, axis=1, where=self.tree.possible, initial=-np.inf, keepdims=True)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(log_weight)[:, :, None] * self.joint)


@dataclass(frozen=True, eq=False)
class Votes:
    """A member of a committee whose classes are sums over the same trees."""

    member: Member
    voters: tuple[Voter, ...]
    n_jobs: int | None

    def __call__(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        """Log class posteriors given subsets of the cells of each row, shape (n_subsets, n_rows, n_classes).

        Parameters
        ----------
        cells : array of shape (n_rows, n_columns)
        subsets : array of shape (n_subsets, n_columns)
        """
        n_votes = len(cells) * len(subsets) * len(self.voters)
        total = np.zeros((len(cells), len(subsets), self.member.n_classes))
        if backends.may_compile() and n_votes >= FEWEST_VOTES:
            for voter in self.voters:
                _add(voter, cells, subsets, total, self.n_jobs)
        total = np.ascontiguousarray(total.transpose(1, 0, 2))
        # Cells that the network makes impossible, and digits lost to small numbers, are left to a pass.
        doubtful = ~(total.max(axis=2) > 0)
        doubtful[:, ~np.isfinite(self.member.evaluate(cells, self.n_jobs)[0])] = True
        result = normalised(np.log(np.maximum(total, SMALLEST_POSTERIOR)) / self.member.temperature)
        if doubtful.any():
            subset, row = np.nonzero(doubtful)
            known = np.where(subsets[subset], cells[row], np.nan)
            result[doubtful] = self.member.evaluate(known, self.n_jobs)[1]
        return result


def _add(voter: Voter, cells: FloatArray, subsets: BoolArray, total: FloatArray, n_jobs: int | None) -> None:
    from safespn.answers.votes_kernel import add_votes

    columns = voter.columns[voter.tested]
    patterns, pattern = distinct_rows(np.isnan(cells[:, columns]))
    of_patterns = subsets[None, :, columns] & ~patterns[:, None]
    members, which = distinct_rows(of_patterns.reshape(-1, len(columns)))
    which = which.reshape(len(patterns), len(subsets))
    weights, words = voter.weights(members), voter.words(cells)

    def run(rows: slice) -> None:
        add_votes(words[rows], voter.possible, members, weights, pattern[rows], which, total[rows])

    threads = n_threads(len(cells) * len(subsets), n_jobs)
    ends = np.linspace(0, len(cells), threads + 1).astype(np.intp)
    deque(in_order(run, threads, [slice(*pair) for pair in pairwise(ends.tolist())]), maxlen=0)


def normalised(log_weights: FloatArray) -> FloatArray:
    """Logs of shares: ``log_weights`` up to a constant along the last axis, which is short."""
    # Class by class: numpy is slow at sums over an axis of two.
    classes = np.moveaxis(log_weights, -1, 0)
    top = reduce(np.maximum, classes)
    total = reduce(np.add, (np.exp(each - top) for each in classes))
    return np.asarray(log_weights - (top + np.log(total))[..., None])


def votes_of(member: Member, n_jobs: int | None) -> Votes | None:
    """Find the trees of a member, None if it is no forest or its classes differ in more than the boxes' shares."""
    root = describe(member.structure, member.parameters)
    if not (member.votes and isinstance(root, Sum)):
        return None
    classes = [child for child in root.children if isinstance(child, Sum)]
    if len(classes) < len(root.children) or len({len(each.children) for each in classes}) > 1:
        return None
    parts = [[_split(child) for child in each.children] for each in classes]
    leaves = [[leaf for leaf, _ in each] for each in parts]
    if len({rest for each in parts for _, rest in each}) > 1:
        return None
    voters = []
    for number, of_tree in enumerate(zip(*leaves, strict=True)):
        first = of_tree[0]
        if first is None or any(leaf is None or not _same_boxes(leaf, first) for leaf in of_tree):
            return None
        shares = [w * each.weights[number] for w, each in zip(root.weights, classes, strict=True)]
        joint = np.column_stack([s * leaf.probabilities for s, leaf in zip(shares, of_tree, strict=True) if leaf])
        tree = tree_of(_structure(first), len(first.columns))
        voters.append(Voter(tree, np.array(first.columns), np.ascontiguousarray(joint)))
    return Votes(member, tuple(voters), n_jobs)


def _split(node: Node) -> tuple[DensityTree | None, frozenset[int]]:
    """The tree of a node, and the identities of what it is multiplied with."""
    factors = node.children if isinstance(node, Product) else (node,)
    trees = [factor for factor in factors if isinstance(factor, DensityTree)]
    rest = frozenset(id(factor) for factor in factors if not isinstance(factor, DensityTree))
    return (trees[0] if len(trees) == 1 else None), rest


def _structure(leaf: DensityTree) -> bytes:
    return leaf.parameters[len(leaf.probabilities) : -1].tobytes()


def _same_boxes(leaf: DensityTree, other: DensityTree) -> bool:
    return leaf.columns == other.columns and _structure(leaf) == _structure(other)

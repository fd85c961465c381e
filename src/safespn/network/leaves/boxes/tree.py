"""One decision tree: the checks of its nodes, and for each of its boxes the values that every column may take."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np

from safespn.network.leaves.boxes.base import BaseDensity
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

CACHED_TREES = 4096


class Tree:
    """Structure of a tree, without probabilities.

    The thresholds of a column cut it into *intervals* ``lower < x <= upper``, and what a box allows of a column is a
    union of them. Intervals are numbered through all columns; a column that is not tested has a single one.

    Parameters
    ----------
    nodes : array of shape (n_boxes - 1, 5)
    base : array of shape (n_columns, 2)
        Both as for :class:`safespn.DensityTree`.
    """

    def __init__(self, nodes: FloatArray, base: FloatArray) -> None:
        self.n_boxes, self.n_columns = len(nodes) + 1, len(base)
        self.base = BaseDensity(base)
        rows = {number: nodes[number].tolist() for number in _reached(nodes, self.n_columns)}
        self.cuts = _cuts(list(rows.values()), self.n_columns)
        self.start: IntArray = np.cumsum([0] + [len(at) + 1 for at in self.cuts])
        """Where the intervals of each column start."""
        self.position: IntArray = np.repeat(np.arange(self.n_columns), np.diff(self.start))
        self.lower: FloatArray = np.concatenate([[-np.inf, *at] for at in self.cuts])
        self.upper: FloatArray = np.concatenate([[*at, np.inf] for at in self.cuts])
        self.is_reached, self.member = self._members(rows)
        log_mass = np.logaddexp.reduceat(np.where(self.member, self._log_mass, -np.inf), self.start[:-1], axis=1)
        is_whole = np.logical_and.reduceat(self.member, self.start[:-1], axis=1)
        log_mass = np.where(is_whole, 0.0, log_mass)
        self.has_mass: BoolArray = np.isfinite(log_mass)
        """Whether the base can take a value of a column in a box, shape (n_boxes, n_columns)."""
        self.possible: BoolArray = self.is_reached & self.has_mass.all(axis=1)
        """Boxes that may have a probability."""
        self.log_mass: FloatArray = np.where(self.possible[:, None], log_mass, 0.0)
        """Log of the base's mass of what each box allows of a column, shape (n_boxes, n_columns); zero for boxes that
        are not possible, so that no infinity meets a zero."""

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Log of the base's mass of each interval."""
        return self.base.log_mass(self.position, self.lower, self.upper)

    def _members(self, rows: dict[int, list[float]]) -> tuple[BoolArray, BoolArray]:
        """Which boxes the root reaches, and which intervals each box allows, shape (n_boxes, n_intervals)."""
        is_reached = np.zeros(self.n_boxes, dtype=np.bool_)
        member = np.zeros((self.n_boxes, len(self.position)), dtype=np.bool_)
        waiting = {0: np.ones(len(self.position), dtype=np.bool_)}
        if not rows:
            is_reached[0] = member[0] = True
        for number, (column, low, high, *children) in rows.items():
            allowed = waiting.pop(number)
            of_column = slice(*self.start[int(column) : int(column) + 2].tolist())
            inside = (self.lower[of_column] >= low) & (self.upper[of_column] <= high)
            for child, passes in zip(children, (inside, ~inside), strict=True):
                below = allowed.copy()
                below[of_column] &= passes
                if child >= 0:
                    waiting[int(child)] = below
                else:
                    is_reached[-1 - int(child)], member[-1 - int(child)] = True, below
        return is_reached, member

    @property
    def tested(self) -> list[int]:
        """Positions of the columns that the tree tests."""
        return [position for position, at in enumerate(self.cuts) if len(at)]

    @cached_property
    def modes(self) -> tuple[FloatArray, FloatArray]:
        """Most probable value of each column in each box, and its truncated log density, shapes (n_boxes, n_columns).

        The log density is zero in boxes that are not possible.
        """
        values = self.base.mode(self.position, self.lower, self.upper)
        heights = np.where(np.isfinite(self._log_mass), self.base.log_density(self.position, values), -np.inf)
        heights = np.where(self.member, heights, -np.inf)
        highest = np.maximum.reduceat(heights, self.start[:-1], axis=1)
        best = [heights[:, a:b].argmax(axis=1) + a for a, b in zip(self.start[:-1], self.start[1:], strict=True)]
        density = np.where(self.possible[:, None], highest, 0.0) - self.log_mass
        return values[np.column_stack(best)], density

    def draw(self, position: int, box: IntArray, generator: np.random.Generator) -> FloatArray:
        """One draw of a column from the base, truncated to what each of the boxes ``box`` allows."""
        intervals = slice(*self.start[position : position + 2].tolist())
        log_mass = np.where(self.member[:, intervals], self._log_mass[intervals], -np.inf)
        chosen = intervals.start + draw_by_log_weight(log_mass[box], generator)
        return self.base.draw(self.position[chosen], self.lower[chosen], self.upper[chosen], generator)

    @property
    def n_words(self) -> int:
        """Words of 64 bits with one bit for each box."""
        return -(-self.n_boxes // 64)

    def bits(self, boxes: BoolArray) -> AnyArray:
        """Pack sets of boxes, shape (n_sets, n_boxes), into words, shape (n_sets, n_words)."""
        padded = np.zeros((len(boxes), 64 * self.n_words), dtype=np.bool_)
        padded[:, : self.n_boxes] = boxes
        return np.packbits(padded, axis=1, bitorder="little").view("<u8")


@lru_cache(maxsize=CACHED_TREES)
def tree_of(structure: bytes, n_columns: int) -> Tree:
    """Return the tree whose nodes and base make up ``structure``; fits ask for the same trees again and again."""
    values = np.frombuffer(structure)
    end = len(values) - 2 * n_columns
    return Tree(values[:end].reshape(-1, 5), values[end:].reshape(-1, 2))


def draw_by_log_weight(log_weights: FloatArray, generator: np.random.Generator) -> IntArray:
    """Draw one column of each row with probability proportional to the exponential of its entry."""
    largest = log_weights.max(axis=1, keepdims=True)
    cumulative = np.exp(log_weights - np.where(np.isfinite(largest), largest, 0.0)).cumsum(axis=1)
    threshold = generator.random((len(log_weights), 1)) * cumulative[:, -1:]
    return np.asarray(np.minimum((cumulative <= threshold).sum(axis=1), log_weights.shape[1] - 1))


def _cuts(rows: list[list[float]], n_columns: int) -> list[list[float]]:
    """Finite thresholds of each column, increasing."""
    cuts: list[set[float]] = [set() for _ in range(n_columns)]
    for position, low, high, *_ in rows:
        cuts[int(position)].update(bound for bound in (low, high) if math.isfinite(bound))
    return [sorted(at) for at in cuts]


def _reached(nodes: FloatArray, n_columns: int) -> list[int]:
    """Check the nodes that the root reaches, and return their numbers, parents first."""
    if np.isnan(nodes).any():
        raise ValueError(f"node {int(np.argmax(np.isnan(nodes).any(axis=1)))} holds NaN")
    waiting = {0} if len(nodes) else set()
    boxes: set[int] = set()
    reached = []
    for number, (position, low, high, *children) in enumerate(nodes.tolist()):
        if number not in waiting:
            continue
        reached.append(number)
        if not (0 <= position < n_columns and position == int(position)):
            raise ValueError(f"node {number} tests column {position:g} of the leaf; expected 0 to {n_columns - 1}")
        if not low < high:
            raise ValueError(f"node {number} tests {low:g} < x <= {high:g}, which no value passes")
        for child in children:
            _check_child(number, child, len(nodes))
            seen, name = (waiting, int(child)) if child >= 0 else (boxes, -1 - int(child))
            if name in seen:
                raise ValueError(f"node {number} has child {child:g}, which has a parent already")
            seen.add(name)
    return reached


def _check_child(number: int, child: float, n_nodes: int) -> None:
    if not (-1 - n_nodes <= child < n_nodes and child == int(child)):
        raise ValueError(
            f"node {number} has child {child:g}; expected a node from {number + 1} to {n_nodes - 1} or a box from -1 "
            f"to {-1 - n_nodes}"
        )
    if 0 <= child <= number:
        raise ValueError(f"node {number} has child {child:g}, which does not come after it")

"""Density trees: a decision tree over several columns as a density, with a probability for each of its boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import softmax, xlogy

from safespn.network.columns import Domain
from safespn.network.leaves.boxes.base import BaseDensity
from safespn.network.leaves.boxes.routing import Forest, Grove, grove_of, unpacked
from safespn.network.leaves.boxes.tree import Tree, draw_by_log_weight, tree_of
from safespn.network.leaves.family import Block, LeafFamily, LeafPrior, Leaves, Term
from safespn.network.nodes import Leaf, check_column
from safespn.typing import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray

SMALLEST_TOTAL = 1e-200
"""Sums over boxes below this are computed again by logarithms."""


class DensityTreeFamily(LeafFamily):
    """Parameters: probabilities, nodes row by row, base row by row, number of columns. Unconstrained: logits.

    Only the probabilities are learned. Statistics, per leaf, are flow and flow into each box; a row with missing cells
    is shared among the boxes by their posterior probabilities, and a row without any of the leaf's cells adds nothing.
    """

    name = "DensityTree"

    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        d = _n_columns(parameters)
        base = parameters[parameters.size - 1 - 2 * d : -1].reshape(d, 2)
        return BaseDensity(base).domains

    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> DensityTree:
        d, n_boxes = _n_columns(parameters), _n_boxes(parameters[None])
        nodes, base = np.split(parameters[n_boxes:-1], [5 * (n_boxes - 1)])
        return DensityTree(columns, nodes.reshape(-1, 5), parameters[:n_boxes], base.reshape(d, 2))

    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        densities = _Densities(parameters[:, : _n_boxes(parameters)], _grove_of(parameters))
        return (Block(densities.log_density, densities.statistics),)

    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        counts = self._counts(statistics, parameters, prior)
        total = counts.sum(axis=1, keepdims=True)
        result = parameters.copy()
        np.divide(counts, total, out=result[:, : counts.shape[1]], where=total > 0)
        return result

    def log_prior(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> float:
        if prior.category_prior == 0:
            return 0.0
        return prior.category_prior * float(
            np.log(parameters[:, : _n_boxes(parameters)][self._possible(parameters)]).sum()
        )

    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        return (np.concatenate([np.ones((len(source), 1)), source[:, : _n_boxes(source)]], axis=1),)

    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        n_boxes = _n_boxes(source)
        return np.asarray(xlogy(source[:, :n_boxes], parameters[:, :n_boxes]).sum(axis=1))

    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(parameters[:, : _n_boxes(parameters)]))

    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        result = origin.copy()
        result[:, : free.shape[1]] = softmax(np.where(self._possible(origin), free, -np.inf), axis=1)
        return result

    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        counts = self._counts(statistics, parameters, prior)
        return np.asarray(counts - parameters[:, : counts.shape[1]] * counts.sum(axis=1, keepdims=True))

    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        return int(self._possible(parameters).sum()) - len(parameters)

    def complete(
        self, parameters: FloatArray, which: IntArray, cells: FloatArray, generator: np.random.Generator | None
    ) -> FloatArray:
        n_boxes, grove = _n_boxes(parameters), _grove_of(parameters)
        result = cells.copy()
        for leaf in np.unique(which):
            rows = np.nonzero(which == leaf)[0]
            result[rows] = _completed(cells[rows], parameters[leaf, :n_boxes], grove.of_leaf(leaf).forest, generator)
        return result

    def log_density(self, parameters: FloatArray, values: FloatArray) -> FloatArray:
        (block,) = self.terms(parameters)
        assert isinstance(block, Block)
        return block.log_density(values[:, None, :], False)[:, 0]

    def _counts(self, statistics: Sequence[FloatArray], parameters: FloatArray, prior: LeafPrior) -> FloatArray:
        counts = statistics[0][:, 1:]
        return counts + prior.category_prior * self._possible(parameters) if prior.category_prior else counts

    def _possible(self, parameters: FloatArray) -> BoolArray:
        return _grove_of(parameters).possible


def _n_columns(parameters: FloatArray) -> int:
    """Return the number of columns of a leaf with these parameters, which is the last of them."""
    d = float(parameters[-1]) if parameters.size else 0.0
    rest = parameters.size - 2 * d + 4
    if not (d >= 1 and d == np.floor(d) and rest >= 6 and rest % 6 == 0):
        raise ValueError(f"DensityTree: {parameters.size} parameters, {d:g} of them columns, do not make up a tree")
    return int(d)


def _n_boxes(parameters: FloatArray) -> int:
    """Return the number of boxes of leaves with these parameters, shape (n_leaves, n_parameters)."""
    return int(parameters.shape[1] - 2 * parameters[0, -1] + 4) // 6


def _grove_of(parameters: FloatArray) -> Grove:
    return grove_of(parameters[:, _n_boxes(parameters) : -1], int(parameters[0, -1]))


class _Densities:
    """Trees with their probabilities; ``cells`` has shape (n_leaves, n_rows, n_columns)."""

    def __init__(self, probabilities: FloatArray, grove: Grove) -> None:
        self.probabilities, self.grove = probabilities, grove

    def log_density(self, cells: FloatArray, complete_by_mode: bool) -> FloatArray:
        """Log density of the observed cells, shape (n_leaves, n_rows); missing cells marginalised or at their best."""
        parts = [densities._log_density(rows, complete_by_mode) for _, densities, rows in self._parts(cells)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def statistics(self, cells: FloatArray, flow: FloatArray) -> FloatArray:
        """Flow, and flow into each box, of each leaf; ``flow`` has shape (n_leaves, n_rows)."""
        parts = [densities._statistics(rows, flow[leaves]) for leaves, densities, rows in self._parts(cells)]
        return np.concatenate(parts)

    def _parts(self, cells: FloatArray) -> Iterator[tuple[slice, _Densities, FloatArray]]:
        """Yield leaves that read the same cells: all of them, or else one by one."""
        if len(cells) == 1 or cells.strides[0] == 0:
            yield slice(None), self, cells[0]
            return
        for leaf in range(len(cells)):
            one = slice(leaf, leaf + 1)
            yield one, _Densities(self.probabilities[one], self.grove.of_leaf(leaf)), cells[leaf]

    def _log_density(self, cells: FloatArray, complete_by_mode: bool) -> FloatArray:
        forest = self.grove.forest
        is_complete = ~np.isnan(cells).any(axis=1)
        if is_complete.all():
            return self._of_complete(cells)
        result = np.empty((len(self.probabilities), len(cells)))
        result[:, is_complete] = self._of_complete(cells[is_complete])
        rest = cells[~is_complete]
        log_base = forest.log_base(rest)
        missing = np.isnan(rest)
        for number, words in enumerate(forest.allowed(rest)):
            weights = _log_weights(forest.trees[number], words, missing, complete_by_mode)
            leaves = self.grove.leaves_of_trees[number]
            combine = _best if complete_by_mode else _log_total
            result[np.ix_(leaves, ~is_complete)] = combine(weights, self.probabilities[leaves]) + log_base[number]
        return result

    def _of_complete(self, cells: FloatArray) -> FloatArray:
        forest, grove = self.grove.forest, self.grove
        log_base = forest.log_base(cells)
        result = np.empty((len(self.probabilities), len(cells)))
        for rows, index in grove.box_of_leaves(cells):
            result[:, rows] = self._log_values.take(index)
            result[:, rows] += log_base[:, rows][grove.tree_of_leaf]
        return result

    @cached_property
    def _log_values(self) -> FloatArray:
        """Log density in each box, relative to the base's; indexed as by ``Grove.box_of_leaves``."""
        n_leaves, n_boxes = self.probabilities.shape
        values = np.full((n_leaves, self.grove.forest.n_bits + 1), -np.inf)
        with np.errstate(divide="ignore"):
            values[:, :n_boxes] = np.log(self.probabilities) - self.grove.log_volume
        return values.ravel()

    def _statistics(self, cells: FloatArray, flow: FloatArray) -> FloatArray:
        forest, grove = self.grove.forest, self.grove
        n_leaves, n_boxes = self.probabilities.shape
        missing = np.isnan(cells)
        is_complete, is_partial = ~missing.any(axis=1), missing.any(axis=1) & ~missing.all(axis=1)
        total = np.zeros(n_leaves * (forest.n_bits + 1))
        seen = flow if is_complete.all() else flow[:, is_complete]
        for rows, index in grove.box_of_leaves(cells if is_complete.all() else cells[is_complete]):
            total += np.bincount(index.ravel(), seen[:, rows].ravel(), len(total))
        counts = total.reshape(n_leaves, -1)[:, :n_boxes]
        if is_partial.any():
            for number, words in enumerate(forest.allowed(cells[is_partial])):
                weights = _log_weights(forest.trees[number], words, missing[is_partial], False)
                leaves = grove.leaves_of_trees[number]
                counts[leaves] += _shared(weights, self.probabilities[leaves], flow[np.ix_(leaves, is_partial)])
        return np.concatenate([flow[:, ~missing.all(axis=1)].sum(axis=1)[:, None], counts], axis=1)


def _log_weights(tree: Tree, words: AnyArray, missing: BoolArray, complete_by_mode: bool) -> FloatArray:
    """Log density of observed cells in each box relative to the base's, minus infinity in boxes that they rule out.

    Missing cells drop out, or are at the mode of the box. Shape (n_rows, n_boxes).
    """
    weights = (~missing).astype(np.float64) @ -tree.log_mass.T
    if complete_by_mode:
        weights += missing.astype(np.float64) @ tree.modes[1].T
    return np.where(unpacked(words, tree.n_boxes), weights, -np.inf)


def _log_total(weights: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Log of the sum over boxes of probability times weight, shape (n_leaves, n_rows)."""
    _, shift, total = _totals(weights, probabilities)
    with np.errstate(divide="ignore"):
        result = np.log(total) + shift
        leaf, row = np.nonzero(total < SMALLEST_TOTAL)
        result[leaf, row] = np.logaddexp.reduce(weights[row] + np.log(probabilities[leaf]), axis=1)
    return result


def _shared(weights: FloatArray, probabilities: FloatArray, flow: FloatArray) -> FloatArray:
    """Flow into each box, each row shared by the posterior probabilities of the boxes, shape (n_leaves, n_boxes)."""
    scaled, _, total = _totals(weights, probabilities)
    is_small = total < SMALLEST_TOTAL
    result = probabilities * (np.divide(flow, total, out=np.zeros_like(flow), where=~is_small) @ scaled)
    with np.errstate(divide="ignore"):
        for leaf, row in zip(*np.nonzero(is_small & (flow != 0)), strict=True):
            posterior = weights[row] + np.log(probabilities[leaf])
            if np.isfinite(posterior).any():
                result[leaf] += flow[leaf, row] * softmax(posterior)
    return result


def _totals(weights: FloatArray, probabilities: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights scaled to at most one in each row, logs of the scales, and totals (n_leaves, n_rows) in that scale."""
    shift = weights.max(axis=1)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    scaled = np.exp(weights - shift[:, None])
    return scaled, shift, probabilities @ scaled.T


def _best(weights: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Log of the largest probability times weight, shape (n_leaves, n_rows)."""
    with np.errstate(divide="ignore"):
        return np.array([(weights + np.log(values)).max(axis=1) for values in probabilities])


def _completed(
    cells: FloatArray, probabilities: FloatArray, forest: Forest, generator: np.random.Generator | None
) -> FloatArray:
    """Choose a box for each row of one leaf, the best or one drawn, and fill the missing cells from it."""
    tree, missing = forest.trees[0], np.isnan(cells)
    weights = _log_weights(tree, forest.allowed(cells)[0], missing, generator is None)
    with np.errstate(divide="ignore"):
        weights += np.log(probabilities)
    if generator is None:
        return np.where(missing, tree.modes[0][weights.argmax(axis=1)], cells)
    box = draw_by_log_weight(weights, generator)
    result = cells.copy()
    for position in np.nonzero(missing.any(axis=0))[0].tolist():
        rows = missing[:, position]
        result[rows, position] = tree.draw(position, box[rows], generator)
    return result


@dataclass(frozen=True, eq=False)
class DensityTree(Leaf):
    """A density over several columns with a probability for every box of a decision tree.

    Inside a box, columns are independent, each with its base density truncated to the values that the box allows.

    Parameters
    ----------
    columns : sequence of int
    nodes : array-like of shape (n_boxes - 1, 5)
        One row for each internal node: position of the tested column in ``columns``, low, high, child inside, child
        outside. A row goes inside if ``low < x <= high``. Child ``c >= 0`` is node ``c``, which must come after its
        parent; child ``c < 0`` is box ``-1 - c``. Node 0 is the root. Nodes that it does not reach change nothing.
    probabilities : array-like of shape (n_boxes,)
        Non-negative, adding up to one; zero for boxes that the root does not reach or that hold no value.
    base : array-like of shape (n_columns, 2)
        Mean and variance of the normal base density of a column of real numbers; the number of states and 0 for a
        column of codes, whose base is uniform.
    """

    columns: tuple[int, ...]
    _parameters: FloatArray
    family: ClassVar[DensityTreeFamily] = DensityTreeFamily()

    def __init__(self, columns: Sequence[int], nodes: ArrayLike, probabilities: ArrayLike, base: ArrayLike) -> None:
        names = tuple(check_column("DensityTree", column) for column in columns)
        where, d = f"DensityTree on columns {list(names)}", len(names)
        if d == 0 or len(set(names)) != d:
            raise ValueError(f"{where}: expected at least one column, each only once")
        nodes, base = np.asarray(nodes, dtype=np.float64), np.asarray(base, dtype=np.float64)
        probabilities = np.asarray(probabilities, dtype=np.float64)
        nodes = nodes.reshape(0, 5) if nodes.size == 0 else nodes
        if nodes.ndim != 2 or nodes.shape[1] != 5 or probabilities.shape != (len(nodes) + 1,) or base.shape != (d, 2):
            raise ValueError(
                f"{where}: expected nodes of shape (n, 5), n + 1 probabilities and a base of shape ({d}, 2), "
                f"got shapes {nodes.shape}, {probabilities.shape} and {base.shape}"
            )
        parameters = np.concatenate([probabilities, nodes.ravel(), base.ravel(), [d]])
        try:
            tree = tree_of(parameters[len(probabilities) : -1].tobytes(), d)
            _check_probabilities(probabilities, tree, names)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        parameters.flags.writeable = False
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "_parameters", parameters)

    def __repr__(self) -> str:
        n_boxes = int((self.probabilities > 0).sum())
        return f"DensityTree({list(self.columns)}, {n_boxes} box{'es' if n_boxes > 1 else ''})"

    @property
    def parameters(self) -> FloatArray:
        return self._parameters

    @property
    def probabilities(self) -> FloatArray:
        return self.parameters[: _n_boxes(self.parameters[None])]

    @property
    def nodes(self) -> FloatArray:
        n_boxes = _n_boxes(self.parameters[None])
        return self.parameters[n_boxes : 6 * n_boxes - 5].reshape(-1, 5)

    @property
    def base(self) -> FloatArray:
        return self.parameters[-1 - 2 * len(self.columns) : -1].reshape(-1, 2)


def _check_probabilities(probabilities: FloatArray, tree: Tree, columns: Sequence[int]) -> None:
    refused = ~(np.isfinite(probabilities) & (probabilities >= 0))
    if refused.any():
        box = int(np.argmax(refused))
        raise ValueError(f"box {box} has probability {probabilities[box]:g}; expected a number that is not negative")
    if abs(probabilities.sum() - 1) > 1e-8:
        raise ValueError(f"the probabilities add up to {probabilities.sum():.10g}; expected 1")
    wrong = (probabilities > 0) & ~tree.possible
    if wrong.any():
        box = int(np.argmax(wrong))
        reason = "the root does not reach it"
        if tree.is_reached[box]:
            reason = f"it holds no value of column {columns[int(np.argmin(tree.has_mass[box]))]} that the base can take"
        raise ValueError(f"box {box} has probability {probabilities[box]:g}, but {reason}: expected 0")

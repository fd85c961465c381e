"""The two passes in plain numpy: up for log values, down for flows. No compiler, every case, every query.

Arrays have shape (nodes or terms, rows), so that every operation runs along contiguous rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from safespn.engine.bound import BoundNetwork, Features
from safespn.engine.evidence import SMALLEST_LOG_JOINT, Evidence, SoftLabelUpdate
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure, TermList
from safespn.typing import BoolArray, FloatArray, IntArray

ELEMENTS_PER_BLOCK = 100_000

is_compiled = False


_ROOT = np.zeros(1, dtype=np.intp)
"""Where the edges of a single sum start."""


class Choice(Enum):
    """How a row that reaches a sum goes on to its children."""

    SHARE = "by their posterior probabilities: expectation"
    BEST = "to the best child alone: max-product"
    DRAW = "to one child drawn by posterior probability: sampling"


@dataclass(frozen=True, eq=False)
class Upward:
    """What the upward pass leaves for the downward one."""

    joint: FloatArray
    """Log value of each edge of the root, shape (n_root_edges, n_rows)."""
    edge_share: FloatArray
    """Share of its sum's flow that each edge gets, shape (n_edges, n_rows); unused for the root's edges."""
    z: FloatArray
    """Standardised cells of the square terms, NaN where missing, shape (n_square_terms, n_rows)."""
    table_index: IntArray
    """Entry of ``table_values`` that each table term read, shape (n_table_terms, n_rows)."""


def block_rows(structure: Structure) -> int:
    """Return a number of rows whose intermediate arrays stay in cache."""
    return max(64, min(8192, ELEMENTS_PER_BLOCK // max(1, structure.n_terms + structure.n_edges)))


def log_likelihood(network: BoundNetwork, features: Features) -> FloatArray:
    """Log density of each row, shape (n_rows,)."""
    value, _ = mix(upward(network, features).joint, _ROOT, Choice.SHARE, None)
    return np.asarray(value[0])


def log_joint(network: BoundNetwork, features: Features) -> FloatArray:
    """Log values of the root's edges, shape (n_rows, n_root_edges)."""
    return upward(network, features).joint.T


def upward(
    network: BoundNetwork,
    features: Features,
    choice: Choice = Choice.SHARE,
    generator: np.random.Generator | None = None,
) -> Upward:
    """Compute all log values."""
    structure = network.structure
    columns = features.columns()
    unit_value, z, table_index = _leaf_values(network, columns)
    sum_value = np.empty((structure.n_sums, columns.shape[1]))
    edge_share = np.empty((structure.n_edges, columns.shape[1]))
    for level in _plan(structure).levels:
        if level.children_of_units is not None:
            unit_value[level.units] += level.children_of_units @ sum_value
        edge_value = unit_value[level.edge_unit] + network.log_weights[level.edges, None]
        if level.is_last:
            return Upward(edge_value, edge_share, z, table_index)
        sum_value[level.sums], edge_share[level.edges] = mix(edge_value, level.edge_starts, choice, generator)
    raise AssertionError("a structure has at least one level")


def mix(
    edge_value: FloatArray, starts: IntArray, choice: Choice, generator: np.random.Generator | None
) -> tuple[FloatArray, FloatArray]:
    """Log values of sums and the shares of their edges; sum s has the edges from ``starts[s]`` to the next start."""
    counts = np.diff(np.append(starts, len(edge_value)))
    largest = np.maximum.reduceat(edge_value, starts, axis=0)
    reference = np.where(np.isfinite(largest), largest, 0.0)
    if choice is Choice.BEST:
        return largest, _first(edge_value == np.repeat(reference, counts, axis=0), starts, counts)
    share = edge_value - np.repeat(reference, counts, axis=0)
    np.exp(share, out=share)
    total = np.add.reduceat(share, starts, axis=0)
    with np.errstate(divide="ignore"):
        value = reference + np.log(total)
    share /= np.repeat(np.where(total > 0, total, 1.0), counts, axis=0)
    if choice is Choice.DRAW:
        assert generator is not None
        cumulative = np.cumsum(share, axis=0)
        before = (cumulative - share)[starts]
        threshold = before + generator.random(before.shape) * np.add.reduceat(share, starts, axis=0)
        passed = (cumulative > np.repeat(threshold, counts, axis=0)) & (share > 0)
        share = _first(passed, starts, counts)
    return value, share


def _first(chosen: BoolArray, starts: IntArray, counts: IntArray) -> FloatArray:
    """Keep only the first True of each sum's edges, per row, as ones among zeros."""
    number = np.arange(len(chosen))[:, None]
    first = np.minimum.reduceat(np.where(chosen, number, len(chosen)), starts, axis=0)
    return np.asarray(number == np.repeat(first, counts, axis=0), dtype=np.float64)


def _leaf_values(network: BoundNetwork, columns: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Add up the leaves of every unit; also return what the statistics need of the leaves."""
    structure = network.structure
    square, linear, table = structure.square, structure.linear, structure.table
    value = np.repeat(network.unit_constant[:, None], columns.shape[1], axis=1)

    has_missing = bool(np.isnan(columns).any())
    z = columns[square.feature[square.slot]]
    z -= network.square_centre[square.slot, None]
    z *= network.square_scale[square.slot, None]
    if square.n_slots:
        with np.errstate(over="ignore"):
            squares = z * z
        if has_missing:
            squares = np.where(np.isnan(z), -2 * network.square_missing[square.slot, None], squares)
        value -= 0.5 * (_plan(structure).square @ squares)
    if linear.n_slots:
        lines = columns[linear.feature[linear.slot]] * network.linear_slope[linear.slot, None]
        if has_missing:
            lines = np.where(np.isnan(lines), network.linear_missing[linear.slot, None], lines)
        value += _plan(structure).linear @ lines
    if structure.block.n_slots:
        value += _plan(structure).block @ columns[structure.block.feature[structure.block.slot]]
    codes = columns[table.feature[table.slot]]
    n_states = np.diff(structure.table_offset)[table.slot, None] - 1
    index = np.where(np.isnan(codes), n_states, codes).astype(np.intp) + structure.table_offset[table.slot, None]
    if table.n_slots:
        value += _plan(structure).table @ network.table_values[index]
    return value, z, index


def _sum_by_unit(terms: TermList) -> sparse.csr_array:
    n_terms = len(terms.slot)
    return sparse.csr_array((np.ones(n_terms), np.arange(n_terms), terms.start), shape=(len(terms.start) - 1, n_terms))


def root_flow(
    joint: FloatArray, evidence: Evidence, weights: FloatArray | None, hard: bool
) -> tuple[float, FloatArray]:
    """Objective of the rows and their flow into the root's edges; both arrays of shape (n_root_edges, n_rows)."""
    log_factor = 0.0 if evidence.log_factor is None else evidence.log_factor.T
    choice = Choice.BEST if hard else Choice.SHARE
    if evidence.tilt:
        # A negative tilt seeks the least likely class; one that is impossible counts as very unlikely, not as NaN.
        bounded = np.maximum(joint, SMALLEST_LOG_JOINT) if evidence.tilt < 0 else joint
        value, flow = mix(bounded * evidence.tilt + log_factor, _ROOT, choice, None)
        value = value / evidence.tilt
    else:
        _, flow = mix(np.zeros_like(joint) + log_factor, _ROOT, choice, None)
        value = np.where(flow > 0, flow * np.where(flow > 0, joint, 0.0), 0.0).sum(axis=0, keepdims=True)
    if evidence.conditional:
        free_value, free_flow = mix(joint, _ROOT, choice, None)
        value, flow = value - free_value, flow - free_flow
    if weights is None:
        return float(value.sum()), flow
    return float(value[0, weights > 0] @ weights[weights > 0]), flow * weights


def downward(structure: Structure, up: Upward, flow_into_root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Send flow from the root down; return that through every edge and unit, shapes (edges or units, rows)."""
    n_rows = flow_into_root.shape[1]
    unit_flow = np.zeros((structure.n_units, n_rows))
    sum_flow = np.zeros((structure.n_sums, n_rows))
    edge_flow = up.edge_share
    for level in reversed(_plan(structure).levels):
        if level.is_last:
            edge_flow[level.edges] = flow_into_root
        else:
            edge_flow[level.edges] *= sum_flow[level.edge_sum]
        level.into_units.add(unit_flow, edge_flow[level.edges])
        if level.children_of_units is not None:
            level.into_children.add(sum_flow, unit_flow[level.child_unit])
    return edge_flow, unit_flow


class _AddRows:
    """``target[rows] += values``, also where a row is named twice."""

    def __init__(self, rows: IntArray) -> None:
        self.rows, inverse = np.unique(rows, return_inverse=True)
        self.gather: sparse.csr_array | None = None
        if len(self.rows) == len(rows):
            self.rows = rows
        else:
            places = (inverse, np.arange(len(rows)))
            self.gather = sparse.csr_array((np.ones(len(rows)), places), shape=(len(self.rows), len(rows)))

    def add(self, target: FloatArray, values: FloatArray) -> None:
        target[self.rows] += values if self.gather is None else self.gather @ values


@dataclass(frozen=True, eq=False)
class _Level:
    """The units and sums of one level, and how they hang together."""

    is_last: bool
    units: slice
    sums: slice
    edges: slice
    edge_unit: IntArray
    edge_sum: IntArray
    edge_starts: IntArray
    """Where each sum's edges start, counted from the first edge of the level."""
    child_unit: IntArray
    """Unit of each child of the level's units."""
    children_of_units: sparse.csr_array | None
    """Adds up the values of each unit's children, shape (units of the level, n_sums); None if there are none."""
    into_units: _AddRows
    into_children: _AddRows


@dataclass(frozen=True, eq=False)
class _Plan:
    """Index arrays that every pass over a structure needs."""

    levels: tuple[_Level, ...]
    square: sparse.csr_array
    linear: sparse.csr_array
    table: sparse.csr_array
    block: sparse.csr_array
    """Each adds up the terms of a kind by unit, shape (n_units, n_terms)."""
    into_blocks: _AddRows


_PLANS: WeakKeyDictionary[Structure, _Plan] = WeakKeyDictionary()


def _plan(structure: Structure) -> _Plan:
    """Plan the passes over a structure, once."""
    if structure not in _PLANS:
        _PLANS[structure] = _Plan(
            tuple(_make_level(structure, level) for level in range(structure.n_levels)),
            _sum_by_unit(structure.square),
            _sum_by_unit(structure.linear),
            _sum_by_unit(structure.table),
            _sum_by_unit(structure.block),
            _AddRows(structure.block.slot),
        )
    return _PLANS[structure]


def _make_level(structure: Structure, level: int) -> _Level:
    units = slice(*structure.unit_level_start[level : level + 2])
    sums = slice(*structure.sum_level_start[level : level + 2])
    edges = slice(structure.edge_start[sums.start], structure.edge_start[sums.stop])
    child_start = structure.child_start[units.start : units.stop + 1]
    children = structure.child[child_start[0] : child_start[-1]]
    children_of_units = None
    if len(children):
        children_of_units = sparse.csr_array(
            (np.ones(len(children)), children, child_start - child_start[0]),
            shape=(units.stop - units.start, structure.n_sums),
        )
    return _Level(
        is_last=level == structure.n_levels - 1,
        units=units,
        sums=sums,
        edges=edges,
        edge_unit=structure.edge_unit[edges],
        edge_sum=structure.edge_sum[edges],
        edge_starts=structure.edge_start[sums] - edges.start,
        child_unit=np.repeat(np.arange(units.start, units.stop), np.diff(child_start)),
        children_of_units=children_of_units,
        into_units=_AddRows(structure.edge_unit[edges]),
        into_children=_AddRows(children),
    )


def statistics(
    network: BoundNetwork, features: Features, evidence: Evidence, weights: FloatArray | None, hard: bool
) -> Statistics:
    """Both passes over a block of rows, summed into expected statistics."""
    up = upward(network, features, Choice.BEST if hard else Choice.SHARE)
    return _statistics(network, features, up, *root_flow(up.joint, evidence, weights, hard))


def statistics_after_update(
    network: BoundNetwork,
    features: Features,
    update: SoftLabelUpdate,
    weights: FloatArray | None,
    log_joint: FloatArray,
    soft_labels: FloatArray,
) -> Statistics:
    """Both passes, with soft labels updated from the class joint in between; see :class:`SoftLabelUpdate`."""
    up = upward(network, features)
    log_joint[:] = up.joint.T
    soft_labels[:] = update.updated_labels(log_joint)
    with np.errstate(divide="ignore"):
        evidence = Evidence(np.log(soft_labels), tilt=0.0)
    return _statistics(network, features, up, *root_flow(up.joint, evidence, weights, False))


def _statistics(
    network: BoundNetwork, features: Features, up: Upward, objective: float, into_root: FloatArray
) -> Statistics:
    """Send the flow from the root down and add up what leaves see of it."""
    structure = network.structure
    edge_flow, unit_flow = downward(structure, up, into_root)
    square, linear, table = structure.square, structure.linear, structure.table

    square_total = np.zeros((square.n_slots, 3))
    flow, z = _observed(unit_flow[square.unit], up.z)
    square_total[:, 0] = np.bincount(square.slot, flow.sum(axis=1), square.n_slots)
    square_total[:, 1] = np.bincount(square.slot, np.einsum("tn,tn->t", flow, z), square.n_slots)
    square_total[:, 2] = np.bincount(square.slot, np.einsum("tn,tn,tn->t", flow, z, z), square.n_slots)

    linear_total = np.zeros((linear.n_slots, 2))
    flow, x = _observed(unit_flow[linear.unit], features.cells.T[linear.feature[linear.slot]])
    linear_total[:, 0] = np.bincount(linear.slot, flow.sum(axis=1), linear.n_slots)
    linear_total[:, 1] = np.bincount(linear.slot, np.einsum("tn,tn->t", flow, x), linear.n_slots)

    table_total = np.bincount(up.table_index.ravel(), unit_flow[table.unit].ravel(), len(network.table_values))
    block_flow = np.zeros((structure.block.n_slots, len(features)))
    _plan(structure).into_blocks.add(block_flow, unit_flow[structure.block.unit])
    return Statistics(
        objective,
        edge_flow.sum(axis=1),
        square_total,
        linear_total,
        table_total.astype(np.float64),
        network.block_statistics(features, block_flow),
    )


def _observed(flow: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    missing = np.isnan(x)
    return (np.where(missing, 0.0, flow), np.where(missing, 0.0, x)) if missing.any() else (flow, x)

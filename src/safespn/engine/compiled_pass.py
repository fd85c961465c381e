"""The two passes as compiled kernels: the fastest way through many rows, once they are compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from safespn.engine import kernels
from safespn.engine.backends import BLOCK_VALUES_PER_CALL, KERNEL_BLOCK, ROWS_PER_CALL
from safespn.engine.bound import BoundNetwork, Features
from safespn.engine.evidence import Evidence, SoftLabelUpdate
from safespn.engine.kernel_arguments import Numbers, Totals, UpdateArguments, Wiring
from safespn.engine.kernel_arithmetic import CONSTANTS
from safespn.engine.kernel_vectors import LANES
from safespn.engine.schedule import Schedule, make_schedule
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure
from safespn.typing import FloatArray, IntArray

TERMS_OF_LARGE_NETWORK, COLUMNS_OF_LONG_BLOCK, LONG_BLOCK = 10_000, 16, 192
"""Each block reads all numbers of the network once, and adds its sums to the totals; where the former fit into no cache
of their own, or the cells of a longer block still fit into the smallest one, blocks are longer."""

is_compiled = True


def block_rows(structure: Structure) -> int:
    """Rows per call of a kernel; the kernel itself works through them in smaller blocks."""
    return min(ROWS_PER_CALL, max(KERNEL_BLOCK, BLOCK_VALUES_PER_CALL // max(1, structure.block.n_slots)))


def log_likelihood(network: BoundNetwork, features: Features) -> FloatArray:
    """Log density of each row."""
    result = np.empty(len(features))
    _run(network, features, log_likelihood=result)
    return result


def log_joint(network: BoundNetwork, features: Features) -> FloatArray:
    """Log values of the root's edges, shape (n_rows, n_root_edges)."""
    result = np.empty((len(features), network.structure.n_root_edges))
    _run(network, features, log_joint=result)
    return result


def statistics(
    network: BoundNetwork, features: Features, evidence: Evidence, weights: FloatArray | None, hard: bool
) -> Statistics:
    """Both passes over a block of rows, summed into expected statistics."""
    totals = _totals(network.structure, len(features))
    _run(network, features, evidence=evidence, weights=weights, hard=hard, totals=totals)
    return _statistics(network, features, totals)


def statistics_after_update(
    network: BoundNetwork,
    features: Features,
    update: SoftLabelUpdate,
    weights: FloatArray | None,
    log_joint: FloatArray,
    soft_labels: FloatArray,
) -> Statistics:
    """Both passes, with soft labels updated from the class joint in between; see :class:`SoftLabelUpdate`."""
    totals = _totals(network.structure, len(features))
    soft_labels[:] = update.soft_labels
    arguments = UpdateArguments(
        kernels.writeable(update.reference),
        soft_labels,
        update.is_free,
        update.rule.pessimism,
        update.rule.temperature,
        update.rule.rate,
    )
    _run(network, features, log_joint=log_joint, evidence=_COMPLETE, weights=weights, totals=totals, update=arguments)
    return _statistics(network, features, totals)


def _totals(structure: Structure, n_rows: int) -> Totals:
    n_entries = len(structure.square.slot)
    shapes = {
        "objective": (1,),
        "edge_flow": (structure.n_edges, LANES),
        "unit_flow": (structure.n_units, LANES),
        "square_flow": (n_entries, LANES),
        "square": (n_entries, 2 * LANES),
        "linear": (structure.linear.n_slots, 2),
        "table": (structure.table_offset[-1],),
        "block_flow": (structure.block.n_slots, n_rows),
    }
    # One array for all: whenever numpy asks for memory it lets other threads go first.
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    parts = np.split(np.zeros(ends[-1]), ends[:-1])
    named = zip(shapes.items(), parts, strict=True)
    return Totals(**{name: part.reshape(shape) for (name, shape), part in named})


def _statistics(network: BoundNetwork, features: Features, totals: Totals) -> Statistics:
    return Statistics(
        float(totals.objective[0]),
        _add_lanes(totals.edge_flow),
        _square_statistics(network, totals),
        totals.linear,
        totals.table,
        network.block_statistics(features, totals.block_flow, compiled=True),
    )


def _square_statistics(network: BoundNetwork, totals: Totals) -> FloatArray:
    """Bring the kernel's sums over distances from cells to centres into units of the scale, slot by slot."""
    terms, scale = network.structure.square, network.square_scale
    flow = _add_lanes(totals.square_flow) + _add_lanes(totals.unit_flow)[terms.unit]
    first, second = _add_lanes(totals.square).reshape(-1, 2).T
    sums = [np.bincount(terms.slot, of_entry, terms.n_slots) for of_entry in (flow, first, second)]
    return np.column_stack([sums[0], -scale * sums[1], scale**2 * sums[2]])


def _add_lanes(sums: FloatArray) -> FloatArray:
    return np.asarray(sums.reshape(-1, LANES) @ np.ones(LANES))


_NONE, _NONE_2D = np.empty(0), np.empty((0, 0))
_NO_TOTALS = Totals(_NONE, _NONE_2D, _NONE_2D, _NONE_2D, _NONE_2D, _NONE_2D, _NONE, _NONE_2D)
_NO_EVIDENCE, _COMPLETE = Evidence(), Evidence(tilt=0.0)
_NO_UPDATE = UpdateArguments(_NONE_2D, _NONE_2D, np.empty(0, dtype=np.bool_), 0.0, 1.0, 0.0)


def _run(
    network: BoundNetwork,
    features: Features,
    *,
    log_likelihood: FloatArray = _NONE,
    log_joint: FloatArray = _NONE_2D,
    evidence: Evidence = _NO_EVIDENCE,
    weights: FloatArray | None = None,
    hard: bool = False,
    totals: Totals = _NO_TOTALS,
    update: UpdateArguments = _NO_UPDATE,
) -> None:
    wants_statistics = len(totals.objective) > 0
    plan = _plan(network.structure)
    kernels.run(
        plan.both_ways if wants_statistics else plan.upward,
        _numbers(network),
        plan.schedule.n_unit_rows,
        network.structure.n_sums if wants_statistics else plan.schedule.n_sum_rows,
        plan.schedule.first_shared_row,
        kernels.writeable(features.cells),
        kernels.writeable(features.blocks),
        _rows_per_block(network.structure, features),
        log_likelihood,
        log_joint,
        _NONE_2D if evidence.log_factor is None else kernels.writeable(evidence.log_factor),
        float(evidence.tilt),
        evidence.conditional,
        hard,
        _NONE if weights is None else kernels.writeable(weights),
        update,
        totals,
        CONSTANTS,
    )


def _rows_per_block(structure: Structure, features: Features) -> int:
    is_long = structure.n_terms >= TERMS_OF_LARGE_NETWORK or features.cells.shape[1] <= COLUMNS_OF_LONG_BLOCK
    return LONG_BLOCK if is_long else KERNEL_BLOCK


def _numbers(network: BoundNetwork) -> Numbers:
    slot = network.structure.square.slot
    return Numbers(
        network.log_weights,
        network.unit_constant,
        network.square_centre[slot],
        network.square_scale[slot],
        network.square_missing[slot],
        network.linear_slope,
        network.linear_missing,
        network.table_values,
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """A schedule as the kernel reads it, for an upward pass alone and for both passes."""

    schedule: Schedule
    upward: Wiring
    both_ways: Wiring


_PLANS: WeakKeyDictionary[Structure, _Plan] = WeakKeyDictionary()


def _plan(structure: Structure) -> _Plan:
    """Plan the passes over a structure, once."""
    if structure not in _PLANS:
        schedule = make_schedule(structure)
        _PLANS[structure] = _Plan(
            schedule,
            upward=_wiring(structure, schedule, schedule.sum_row),
            both_ways=_wiring(structure, schedule, np.arange(structure.n_sums)),
        )
    return _PLANS[structure]


def _wiring(structure: Structure, schedule: Schedule, sum_row: IntArray) -> Wiring:
    return Wiring(
        structure.edge_start,
        structure.edge_unit,
        structure.child_start,
        sum_row[structure.child],
        sum_row,
        schedule.renormalise,
        schedule.sum_order,
        schedule.unit_order,
        schedule.unit_start,
        schedule.unit_row,
        structure.square.start,
        structure.square.feature[structure.square.slot],
        structure.linear.start,
        structure.linear.slot,
        structure.linear.feature,
        structure.table.start,
        structure.table.slot,
        structure.table.feature,
        structure.table_offset,
        structure.block.start,
        structure.block.slot,
        structure.block.feature,
    )

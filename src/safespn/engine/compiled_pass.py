"""The two passes as compiled kernels: the fastest way through many rows, once they are compiled."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from safespn.engine import kernels
from safespn.engine.bound import BoundNetwork
from safespn.engine.evidence import Evidence
from safespn.engine.schedule import Schedule, make_schedule
from safespn.engine.statistics import Statistics
from safespn.network.structure import Structure
from safespn.typing import FloatArray

ROWS_PER_CALL = 8192
CACHE_BYTES = 600_000

releases_gil = True


def block_rows(structure: Structure) -> int:
    """Rows per call of a kernel; the kernel itself works through them in smaller blocks."""
    return ROWS_PER_CALL


def log_likelihood(network: BoundNetwork, features: FloatArray) -> FloatArray:
    """Log density of each row."""
    result = np.empty(len(features))
    _run(network, features, log_likelihood=result)
    return result


def log_joint(network: BoundNetwork, features: FloatArray) -> FloatArray:
    """Log values of the root's edges, shape (n_rows, n_root_edges)."""
    result = np.empty((len(features), network.structure.n_root_edges))
    _run(network, features, log_joint=result)
    return result


def statistics(
    network: BoundNetwork, features: FloatArray, evidence: Evidence, weights: FloatArray | None, hard: bool
) -> Statistics:
    """Both passes over a block of rows, summed into expected statistics."""
    structure = network.structure
    totals = kernels.Totals(
        objective=np.zeros(1),
        edge_flow=np.zeros(structure.n_edges),
        square=np.zeros((structure.square.n_slots, 3)),
        linear=np.zeros((structure.linear.n_slots, 2)),
        table=np.zeros(structure.table_offset[-1]),
        block_flow=np.zeros((structure.block.n_slots, len(features))),
    )
    _run(network, features, evidence=evidence, weights=weights, hard=hard, totals=totals)
    return Statistics(
        float(totals.objective[0]),
        totals.edge_flow,
        totals.square,
        totals.linear,
        totals.table,
        network.block_statistics(features[:, : structure.n_columns], totals.block_flow),
    )


_NONE, _NONE_2D = np.empty(0), np.empty((0, 0))
_NO_TOTALS = kernels.Totals(_NONE, _NONE, _NONE_2D, _NONE_2D, _NONE, _NONE_2D)
_NO_EVIDENCE = Evidence()


def _run(
    network: BoundNetwork,
    features: FloatArray,
    *,
    log_likelihood: FloatArray = _NONE,
    log_joint: FloatArray = _NONE_2D,
    evidence: Evidence = _NO_EVIDENCE,
    weights: FloatArray | None = None,
    hard: bool = False,
    totals: kernels.Totals = _NO_TOTALS,
) -> None:
    schedule, wiring = _plan(network.structure)
    kernels.run(
        wiring,
        _numbers(network),
        schedule.n_unit_rows,
        schedule.first_shared_row,
        _writeable(features),
        min(_rows_in_cache(network.structure, schedule, features.shape[1]), len(features)),
        log_likelihood,
        log_joint,
        _NONE_2D if evidence.log_factor is None else _writeable(evidence.log_factor),
        float(evidence.tilt),
        evidence.conditional,
        hard,
        _NONE if weights is None else _writeable(weights),
        totals,
    )


def _writeable(array: FloatArray) -> FloatArray:
    """Kernels are compiled for writeable C-ordered arrays; a second version for others would cost seconds."""
    return np.require(array, np.float64, ["C", "A", "W"])


def _rows_in_cache(structure: Structure, schedule: Schedule, n_features: int) -> int:
    per_row = 8 * (2 * schedule.n_unit_rows + 2 * structure.n_sums + structure.n_edges + n_features)
    return int(min(max(CACHE_BYTES // per_row // 16 * 16, 64), 256))


def _numbers(network: BoundNetwork) -> kernels.Numbers:
    return kernels.Numbers(
        network.log_weights,
        network.unit_constant,
        network.square_centre,
        network.square_scale,
        network.square_missing,
        network.linear_slope,
        network.linear_missing,
        network.table_values,
    )


_PLANS: WeakKeyDictionary[Structure, tuple[Schedule, kernels.Wiring]] = WeakKeyDictionary()


def _plan(structure: Structure) -> tuple[Schedule, kernels.Wiring]:
    """Plan the pass over a structure, once."""
    if structure not in _PLANS:
        schedule = make_schedule(structure)
        wiring = kernels.Wiring(
            structure.edge_start,
            structure.edge_unit,
            structure.child_start,
            structure.child,
            schedule.renormalise,
            schedule.sum_order,
            schedule.unit_order,
            schedule.unit_start,
            schedule.unit_row,
            structure.square.start,
            structure.square.slot,
            structure.square.feature,
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
        _PLANS[structure] = schedule, wiring
    return _PLANS[structure]

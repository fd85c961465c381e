"""The downward pass of the compiled kernels: from the evidence at the root to flows and statistics."""

from __future__ import annotations

from numba import njit

from safespn.engine.evidence import SMALLEST_LOG_JOINT
from safespn.engine.kernel_arguments import Numbers, Totals, Wiring
from safespn.engine.kernel_arithmetic import ExpConstants, larger, softmax, total_of_row
from safespn.typing import BoolArray, FloatArray

SMALLEST_FLOW = 1e-100
"""Smaller flows are set to zero: denormal numbers would slow the pass down many times."""


@njit(nogil=True, error_model="numpy", forceinline=True)
def enter_at_root(
    flow: FloatArray,
    joint: FloatArray,
    work: FloatArray,
    log_factor: FloatArray,
    tilt: float,
    conditional: bool,
    hard: bool,
    weights: FloatArray,
    begin: int,
    n: int,
    constants: ExpConstants,
) -> float:
    """Compute the flow into the root's edges by :mod:`safespn.engine.evidence`; return the block's objective."""
    for k in range(len(joint)):
        for r in range(n):
            bounded = larger(joint[k, r], SMALLEST_LOG_JOINT) if tilt < 0.0 else joint[k, r]
            flow[k, r] = tilt * bounded if tilt != 0.0 else 0.0
        if len(log_factor) > 0:
            for r in range(n):
                flow[k, r] += log_factor[begin + r, k]
    softmax(flow, n, hard, work[0], work[2], constants)
    for r in range(n):
        work[0, r] = work[0, r] / tilt if tilt != 0.0 else 0.0
    if tilt == 0.0:
        for k in range(len(joint)):
            for r in range(n):
                work[0, r] += flow[k, r] * joint[k, r] if flow[k, r] > 0.0 else 0.0
    if conditional:
        softmax(joint, n, hard, work[1], work[2], constants)
        for r in range(n):
            work[0, r] -= work[1, r]
        for k in range(len(joint)):
            for r in range(n):
                flow[k, r] -= joint[k, r]
    objective = 0.0
    for r in range(n):
        weight = weights[begin + r] if len(weights) > 0 else 1.0
        if weight > 0.0:
            objective += weight * work[0, r]
    if len(weights) > 0:
        for k in range(len(joint)):
            for r in range(n):
                flow[k, r] *= weights[begin + r]
    return objective


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def share_flow(
    which: int,
    n: int,
    sum_flow: FloatArray,
    sum_mantissa: FloatArray,
    edge_mantissa: FloatArray,
    unit_flow: FloatArray,
    wiring: Wiring,
    edge_total: FloatArray,
    first_shared_row: int,
) -> None:
    """Share a sum's flow among its edges and hand it to their units."""
    for r in range(n):
        mantissa = sum_mantissa[which, r]
        sum_flow[which, r] = sum_flow[which, r] / mantissa if mantissa > 0.0 else 0.0
    for edge in range(wiring.edge_start[which], wiring.edge_start[which + 1]):
        row = wiring.unit_row[wiring.edge_unit[edge]]
        if row < first_shared_row:
            for r in range(n):
                unit_flow[row, r] = 0.0
        total = 0.0
        for r in range(n):
            flow = edge_mantissa[edge, r] * sum_flow[which, r]
            flow = flow if abs(flow) > SMALLEST_FLOW else 0.0
            unit_flow[row, r] += flow
            total += flow
        edge_total[edge] += total


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def add_square_statistics(
    unit: int,
    row: int,
    n: int,
    flow: FloatArray,
    cells: FloatArray,
    has_missing: BoolArray,
    wiring: Wiring,
    numbers: Numbers,
    square: FloatArray,
) -> None:
    """Add a unit's flow to the statistics of its square terms."""
    flow_total = total_of_row(flow, row, n)
    for entry in range(wiring.square_start[unit], wiring.square_start[unit + 1]):
        slot = wiring.square_slot[entry]
        feature = wiring.square_feature[slot]
        centre, scale = numbers.square_centre[slot], numbers.square_scale[slot]
        observed, first, second = 0.0, 0.0, 0.0
        if has_missing[feature]:
            for r in range(n):
                z = (cells[feature, r] - centre) * scale
                f = flow[row, r] if z == z else 0.0
                z = z if z == z else 0.0
                observed += f
                first += f * z
                second += f * z * z
        else:
            observed = flow_total
            for r in range(n):
                z = (cells[feature, r] - centre) * scale
                fz = flow[row, r] * z
                first += fz
                second += fz * z
        square[slot, 0] += observed
        square[slot, 1] += first
        square[slot, 2] += second


@njit(nogil=True, error_model="numpy", forceinline=True)
def add_other_statistics(
    unit: int, row: int, begin: int, n: int, flow: FloatArray, cells: FloatArray, wiring: Wiring, totals: Totals
) -> None:
    """Add a unit's flow to the statistics of its linear and table terms, and hand on that of its blocks."""
    for entry in range(wiring.linear_start[unit], wiring.linear_start[unit + 1]):
        slot = wiring.linear_slot[entry]
        feature = wiring.linear_feature[slot]
        for r in range(n):
            x = cells[feature, r]
            if x == x:
                totals.linear[slot, 0] += flow[row, r]
                totals.linear[slot, 1] += flow[row, r] * x
    for entry in range(wiring.table_start[unit], wiring.table_start[unit + 1]):
        slot = wiring.table_slot[entry]
        feature = wiring.table_feature[slot]
        offset, of_missing = wiring.table_offset[slot], wiring.table_offset[slot + 1] - 1
        for r in range(n):
            x = cells[feature, r]
            totals.table[offset + int(x) if x == x else of_missing] += flow[row, r]
    for entry in range(wiring.block_start[unit], wiring.block_start[unit + 1]):
        slot = wiring.block_slot[entry]
        for r in range(n):
            totals.block_flow[slot, begin + r] += flow[row, r]

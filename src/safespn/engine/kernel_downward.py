"""The downward pass of the compiled kernels: from the evidence at the root to flows and statistics."""

from __future__ import annotations

import numpy as np
from numba import njit

from safespn.engine.kernel_arguments import Numbers, Totals, Wiring
from safespn.engine.kernel_arithmetic import softmax
from safespn.engine.kernel_vectors import (
    LANES,
    LENGTH,
    add_up,
    fill,
    item,
    larger,
    load,
    negative_magnitude,
    store,
    where_at_least,
)
from safespn.typing import FloatArray

SMALLEST_FLOW = 1e-100
"""Smaller flows are set to zero: denormal numbers would slow the pass down many times."""


@njit(nogil=True, error_model="numpy", forceinline=True)
def enter_at_root(
    flow: FloatArray,
    joint: FloatArray,
    work: FloatArray,
    tilt: float,
    conditional: bool,
    hard: bool,
    weights: FloatArray,
    begin: int,
    n: int,
    padded: int,
    constants: FloatArray,
) -> float:
    """Make flow into the root's edges of the shares that evidence gives them; return the block's objective.

    ``work`` has the log total of the evidence in its first row. Rows from ``n`` to ``padded`` get no flow.
    """
    for r in range(n):
        work[1, r] = work[0, r] / tilt if tilt != 0.0 else 0.0
    if tilt == 0.0:
        for k in range(len(joint)):
            for r in range(n):
                work[1, r] += flow[k, r] * joint[k, r] if flow[k, r] > 0.0 else 0.0
    if conditional:
        softmax(joint, padded, hard, work, constants)
        for r in range(n):
            work[1, r] -= work[0, r]
        for k in range(len(joint)):
            for r in range(0, padded, LENGTH):
                store(flow, k, r, load(flow, k, r) - load(joint, k, r))
    objective = 0.0
    for r in range(n):
        weight = weights[begin + r] if len(weights) > 0 else 1.0
        if weight > 0.0:
            objective += weight * work[1, r]
    for k in range(len(flow)):
        if len(weights) > 0:
            for r in range(n):
                flow[k, r] *= weights[begin + r]
        flow[k, n:padded] = 0.0
    return objective


@njit(nogil=True, error_model="numpy", forceinline=True)
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
    for r in range(0, n, LENGTH):
        # A mantissa is zero where the sum is impossible, and at least one elsewhere.
        mantissa = load(sum_mantissa, which, r)
        share = load(sum_flow, which, r) / larger(mantissa, fill(1.0))
        store(sum_flow, which, r, where_at_least(mantissa, fill(1.0), share, fill(0.0)))
    for edge in range(wiring.edge_start[which], wiring.edge_start[which + 1]):
        row = item(wiring.unit_row, item(wiring.edge_unit, edge))
        through_edge = fill(0.0)
        for r in range(0, n, LENGTH):
            flow = load(edge_mantissa, edge, r) * load(sum_flow, which, r)
            flow = where_at_least(negative_magnitude(flow), fill(-SMALLEST_FLOW), fill(0.0), flow)
            through_edge = through_edge + flow
            if row >= first_shared_row:
                flow = flow + load(unit_flow, row, r)
            store(unit_flow, row, r, flow)
        add_up(edge_total, edge, 0, through_edge)


@njit(nogil=True, error_model="numpy", forceinline=True)
def add_square_statistics(
    unit: int,
    row: int,
    n: int,
    flow: FloatArray,
    cells: FloatArray,
    any_missing: bool,
    wiring: Wiring,
    numbers: Numbers,
    totals: Totals,
) -> None:
    """Add a unit's flow to the statistics of its square terms."""
    features, centres, square = wiring.square_feature, numbers.square_centre, totals.square
    first_entry, last_entry = item(wiring.square_start, unit), item(wiring.square_start, unit + 1)
    if not any_missing and first_entry < last_entry:
        arriving = fill(0.0)
        for r in range(0, n, LENGTH):
            arriving = arriving + load(flow, row, r)
        add_up(totals.unit_flow, unit, 0, arriving)
    for entry in range(first_entry, last_entry):
        feature, centre = item(features, entry), item(centres, entry)
        first, second = fill(0.0), fill(0.0)
        if any_missing:
            observed = fill(0.0)
            for r in range(0, n, LENGTH):
                distance = centre - load(cells, feature, r)
                f = where_at_least(distance, fill(-np.inf), load(flow, row, r), fill(0.0))
                distance = where_at_least(distance, fill(-np.inf), distance, fill(0.0))
                observed = observed + f
                first = first + f * distance
                second = second + f * distance * distance
            add_up(totals.square_flow, entry, 0, observed)
        else:
            for r in range(0, n, LENGTH):
                distance = centre - load(cells, feature, r)
                moved = load(flow, row, r) * distance
                first = first + moved
                second = second + moved * distance
        add_up(square, entry, 0, first)
        add_up(square, entry, LANES, second)


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

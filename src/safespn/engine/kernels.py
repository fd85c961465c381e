"""Compiled kernels: both passes over a block of rows, node by node, with rows in the inner loops.

A node's value is kept as a pair (exponent, mantissa) that stands for ``exponent + log(mantissa)``: products add
exponents and multiply mantissas, sums rescale by exponentials of exponent differences, and a log is taken at the root
only. By construction a mantissa is at least one (or zero, with exponent minus infinity); ``renormalise`` marks the
children of units after which mantissas are folded back into exponents, so that they cannot overflow.

All arrays of values have shape (nodes, rows in block), so that inner loops run along contiguous memory and vectorise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from safespn.engine.evidence import SMALLEST_LOG_JOINT
from safespn.typing import BoolArray, FloatArray, IntArray


class Wiring(NamedTuple):
    """The arrays of :class:`safespn.network.structure.Structure` and :class:`safespn.engine.schedule.Schedule`."""

    edge_start: IntArray
    edge_unit: IntArray
    child_start: IntArray
    child: IntArray
    """Row of working memory of each child of a unit, not the child's number."""
    sum_row: IntArray
    renormalise: BoolArray
    sum_order: IntArray
    unit_order: IntArray
    unit_start: IntArray
    unit_row: IntArray
    square_start: IntArray
    square_slot: IntArray
    square_feature: IntArray
    linear_start: IntArray
    linear_slot: IntArray
    linear_feature: IntArray
    table_start: IntArray
    table_slot: IntArray
    table_feature: IntArray
    table_offset: IntArray
    block_start: IntArray
    block_slot: IntArray
    block_feature: IntArray


class Numbers(NamedTuple):
    """The float arrays of a bound network, as in :class:`safespn.engine.bound.BoundNetwork`."""

    log_weights: FloatArray
    unit_constant: FloatArray
    square_centre: FloatArray
    square_scale: FloatArray
    square_missing: FloatArray
    linear_slope: FloatArray
    linear_missing: FloatArray
    table_values: FloatArray


class Totals(NamedTuple):
    """The arrays of :class:`safespn.engine.statistics.Statistics`, added to in place."""

    objective: FloatArray
    edge_flow: FloatArray
    square: FloatArray
    linear: FloatArray
    table: FloatArray
    block_flow: FloatArray
    """Flow of each row through each block slot, shape (n_slots, n_rows)."""


SMALLEST_EXPONENT = -708.0
SMALLEST_FLOW = 1e-100
"""Smaller flows are set to zero: denormal numbers would slow the pass down many times."""


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _larger(typing_context: Any, first: Any, second: Any) -> Any:
    """Larger of two numbers, without a branch."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return types.float64(types.float64, types.float64), generate


EXP_CONSTANTS = np.array(
    [
        SMALLEST_EXPONENT,
        1.4426950408889634,  # 1 / log 2
        6755399441055744.0,  # 1.5 * 2**52: adding it rounds to an integer
        6.93147180369123816490e-01,  # log 2, its leading bits
        1.90821492927058770002e-10,  # and the rest
        1.0,
        1.0,
        0.50000000000000184,  # from here on a minimax polynomial of degree 11
        0.166666666666666808,
        0.0416666666664879525,
        0.00833333333331958962,
        0.00138888889523528629,
        0.000198412698900764028,
        0.000024801485441561313,
        2.75572408872298686e-6,
        2.76326547225277919e-7,
        2.51100492048186598e-8,
    ]
)
"""Handed to the kernel as an argument: constants that the compiler knows it would load anew for every few rows."""
ExpConstants: TypeAlias = tuple[float, ...]


@njit(nogil=True, error_model="numpy", forceinline=True)
def exp_constants(c: FloatArray) -> ExpConstants:
    """Bring ``EXP_CONSTANTS`` into registers."""
    return c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15], c[16]


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def exp_of_negative(x: float, c: ExpConstants) -> float:
    """Exponential of ``x <= 0`` within 2 ulp, zero below -708; unlike a call to the C library it vectorises."""
    bounded = _larger(x, c[0])
    shifted = bounded * c[1] + c[2]
    power = shifted - c[2]
    r = bounded - power * c[3] - power * c[4]
    # The terms are paired so that they do not wait for each other.
    r2 = r * r
    r4 = r2 * r2
    low = (c[5] + c[6] * r) + r2 * (c[7] + r * c[8])
    middle = (c[9] + r * c[10]) + r2 * (c[11] + r * c[12])
    high = (c[13] + r * c[14]) + r2 * (c[15] + r * c[16])
    p = low + r4 * (middle + r4 * high)
    value = p * _float_of((_bits_of(shifted) + 1023) << 52)
    return value if x >= c[0] else 0.0


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def _total(values: FloatArray, row: int, n: int) -> float:
    total = 0.0
    for r in range(n):
        total += values[row, r]
    return total


@njit(nogil=True, error_model="numpy", forceinline=True)
def _load(cells: FloatArray, has_missing: BoolArray, features: FloatArray, begin: int, n: int) -> None:
    """Copy a block of rows, transposed, and note which features have missing cells."""
    rows = features[begin : begin + n]
    whole = n - n % 4
    for r in range(0, whole, 4):  # four rows at a time: what is read stays in cache, what is written fills a vector
        for feature in range(features.shape[1]):
            cells[feature, r] = rows[r, feature]
            cells[feature, r + 1] = rows[r + 1, feature]
            cells[feature, r + 2] = rows[r + 2, feature]
            cells[feature, r + 3] = rows[r + 3, feature]
    for r in range(whole, n):
        for feature in range(features.shape[1]):
            cells[feature, r] = rows[r, feature]
    for feature in range(features.shape[1]):
        total = _total(cells, feature, n)
        has_missing[feature] = total != total


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def _add_squares(
    value: FloatArray,
    unit: int,
    row: int,
    n: int,
    cells: FloatArray,
    has_missing: BoolArray,
    any_missing: bool,
    wiring: Wiring,
    numbers: Numbers,
) -> None:
    """Set a unit's exponent to its constant plus its square terms."""
    slots, features = wiring.square_slot, wiring.square_feature
    centres, scales, constant = numbers.square_centre, numbers.square_scale, numbers.unit_constant[unit]
    entry, stop = wiring.square_start[unit], wiring.square_start[unit + 1]
    for r in range(n):
        value[row, r] = constant
    # Four terms at a time, so that the sum is read and written once for all of them.
    while not any_missing and entry + 4 <= stop:
        slot_0, slot_1, slot_2, slot_3 = slots[entry], slots[entry + 1], slots[entry + 2], slots[entry + 3]
        feature_0, feature_1 = features[slot_0], features[slot_1]
        feature_2, feature_3 = features[slot_2], features[slot_3]
        centre_0, centre_1, centre_2, centre_3 = centres[slot_0], centres[slot_1], centres[slot_2], centres[slot_3]
        scale_0, scale_1, scale_2, scale_3 = scales[slot_0], scales[slot_1], scales[slot_2], scales[slot_3]
        for r in range(n):
            z_0 = (cells[feature_0, r] - centre_0) * scale_0
            z_1 = (cells[feature_1, r] - centre_1) * scale_1
            z_2 = (cells[feature_2, r] - centre_2) * scale_2
            z_3 = (cells[feature_3, r] - centre_3) * scale_3
            value[row, r] -= 0.5 * ((z_0 * z_0 + z_1 * z_1) + (z_2 * z_2 + z_3 * z_3))
        entry += 4
    for rest in range(entry, stop):
        slot = slots[rest]
        feature = features[slot]
        centre, scale = centres[slot], scales[slot]
        if has_missing[feature]:
            missing = numbers.square_missing[slot]
            for r in range(n):
                z = (cells[feature, r] - centre) * scale
                value[row, r] += -0.5 * (z * z) if z == z else missing
        else:
            for r in range(n):
                z = (cells[feature, r] - centre) * scale
                value[row, r] -= 0.5 * (z * z)


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def _add_other_terms(
    value: FloatArray, unit: int, row: int, n: int, cells: FloatArray, wiring: Wiring, numbers: Numbers
) -> None:
    """Add a unit's linear, table and block terms to its exponent."""
    for entry in range(wiring.linear_start[unit], wiring.linear_start[unit + 1]):
        slot = wiring.linear_slot[entry]
        feature = wiring.linear_feature[slot]
        slope, missing = numbers.linear_slope[slot], numbers.linear_missing[slot]
        for r in range(n):
            x = cells[feature, r]
            value[row, r] += slope * x if x == x else missing
    for entry in range(wiring.table_start[unit], wiring.table_start[unit + 1]):
        slot = wiring.table_slot[entry]
        feature = wiring.table_feature[slot]
        offset, of_missing = wiring.table_offset[slot], wiring.table_offset[slot + 1] - 1
        for r in range(n):
            x = cells[feature, r]
            value[row, r] += numbers.table_values[offset + int(x) if x == x else of_missing]
    for entry in range(wiring.block_start[unit], wiring.block_start[unit + 1]):
        feature = wiring.block_feature[wiring.block_slot[entry]]
        for r in range(n):
            value[row, r] += cells[feature, r]


@njit(nogil=True, error_model="numpy", forceinline=True)
def _multiply_children(
    unit: int,
    row: int,
    n: int,
    unit_exponent: FloatArray,
    unit_mantissa: FloatArray,
    sum_exponent: FloatArray,
    sum_mantissa: FloatArray,
    wiring: Wiring,
) -> None:
    """Multiply the sums below a unit into its value."""
    first, last = wiring.child_start[unit], wiring.child_start[unit + 1]
    if first == last:
        for r in range(n):
            unit_mantissa[row, r] = 1.0
    for entry in range(first, last):
        child = wiring.child[entry]
        for r in range(n):
            unit_exponent[row, r] += sum_exponent[child, r]
        if entry == first:
            for r in range(n):
                unit_mantissa[row, r] = sum_mantissa[child, r]
        else:
            for r in range(n):
                unit_mantissa[row, r] *= sum_mantissa[child, r]
        if wiring.renormalise[entry]:
            for r in range(n):
                if unit_mantissa[row, r] > 0.0:
                    unit_exponent[row, r] += math.log(unit_mantissa[row, r])
                    unit_mantissa[row, r] = 1.0


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def _mix(
    which: int,
    n: int,
    hard: bool,
    keep_parts: bool,
    unit_exponent: FloatArray,
    unit_mantissa: FloatArray,
    sum_exponent: FloatArray,
    sum_mantissa: FloatArray,
    edge_mantissa: FloatArray,
    work: FloatArray,
    wiring: Wiring,
    log_weights: FloatArray,
    constants: ExpConstants,
) -> None:
    """Compute a sum from its units; leave each edge's part of the mantissa for the downward pass."""
    first, last, own = wiring.edge_start[which], wiring.edge_start[which + 1], wiring.sum_row[which]
    for r in range(n):
        work[0, r] = -np.inf
        sum_mantissa[own, r] = 0.0
    side = 0
    for edge in range(first, last):
        row, weight = wiring.unit_row[wiring.edge_unit[edge]], log_weights[edge]
        for r in range(n):
            # Two rows take turns: writing a maximum over its own operand compiles to a masked store, slow on some
            # processors.
            work[1 - side, r] = _larger(work[side, r], unit_exponent[row, r] + weight)
        side = 1 - side
    for r in range(n):
        sum_exponent[own, r] = work[side, r]
        work[2, r] = work[side, r] if work[side, r] > -np.inf else 0.0
    for edge in range(first, last):
        row, weight = wiring.unit_row[wiring.edge_unit[edge]], log_weights[edge]
        part_row = edge if keep_parts else 0
        if hard:
            for r in range(n):
                best = unit_exponent[row, r] + weight == work[2, r] and unit_mantissa[row, r] > 0.0
                edge_mantissa[part_row, r] = 1.0 if best and sum_mantissa[own, r] == 0.0 else 0.0
                sum_mantissa[own, r] += edge_mantissa[part_row, r]
        else:
            for r in range(n):
                part = exp_of_negative(unit_exponent[row, r] + weight - work[2, r], constants) * unit_mantissa[row, r]
                edge_mantissa[part_row, r] = part
                sum_mantissa[own, r] += part


@njit(nogil=True, error_model="numpy", forceinline=True)
def _root_joint(
    joint: FloatArray,
    n: int,
    unit_exponent: FloatArray,
    unit_mantissa: FloatArray,
    wiring: Wiring,
    log_weights: FloatArray,
) -> None:
    """Take the log of the root's edges: the class joint."""
    first = wiring.edge_start[len(wiring.edge_start) - 2]
    for k in range(len(joint)):
        unit, weight = wiring.edge_unit[first + k], log_weights[first + k]
        row = wiring.unit_row[unit]
        for r in range(n):
            joint[k, r] = unit_exponent[row, r] + weight
        if wiring.child_start[unit] < wiring.child_start[unit + 1]:
            for r in range(n):
                joint[k, r] += math.log(unit_mantissa[row, r])


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def _softmax(
    values: FloatArray, n: int, hard: bool, log_total: FloatArray, total: FloatArray, constants: ExpConstants
) -> None:
    """Replace each column of ``values`` (edges, rows) by its softmax, or mark its first largest entry if ``hard``."""
    for r in range(n):
        log_total[r] = -np.inf
        total[r] = 0.0
    for k in range(len(values)):
        for r in range(n):
            log_total[r] = _larger(log_total[r], values[k, r])
    for k in range(len(values)):
        for r in range(n):
            reference = log_total[r] if log_total[r] > -np.inf else 0.0
            if hard:
                values[k, r] = 1.0 if values[k, r] == reference and total[r] == 0.0 else 0.0
            else:
                values[k, r] = exp_of_negative(values[k, r] - reference, constants)
            total[r] += values[k, r]
    for k in range(len(values)):
        for r in range(n):
            values[k, r] /= total[r] if total[r] > 0.0 else 1.0
    for r in range(n):
        log_total[r] += math.log(total[r]) if total[r] > 0.0 else 0.0


@njit(nogil=True, error_model="numpy", forceinline=True)
def _root_flow(
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
            bounded = _larger(joint[k, r], SMALLEST_LOG_JOINT) if tilt < 0.0 else joint[k, r]
            flow[k, r] = tilt * bounded if tilt != 0.0 else 0.0
        if len(log_factor) > 0:
            for r in range(n):
                flow[k, r] += log_factor[begin + r, k]
    _softmax(flow, n, hard, work[0], work[2], constants)
    for r in range(n):
        work[0, r] = work[0, r] / tilt if tilt != 0.0 else 0.0
    if tilt == 0.0:
        for k in range(len(joint)):
            for r in range(n):
                work[0, r] += flow[k, r] * joint[k, r] if flow[k, r] > 0.0 else 0.0
    if conditional:
        _softmax(joint, n, hard, work[1], work[2], constants)
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


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def _share_flow(
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
        shared = row >= first_shared_row
        for r in range(n):
            flow = edge_mantissa[edge, r] * sum_flow[which, r]
            flow = flow if abs(flow) > SMALLEST_FLOW else 0.0
            edge_mantissa[edge, r] = flow
            unit_flow[row, r] = unit_flow[row, r] + flow if shared else flow
        edge_total[edge] += _total(edge_mantissa, edge, n)


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def _square_statistics(
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
    flow_total = _total(flow, row, n)
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
def _other_statistics(
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


@njit(nogil=True, error_model="numpy", cache=True)
def run(
    wiring: Wiring,
    numbers: Numbers,
    n_unit_rows: int,
    n_sum_rows: int,
    first_shared_row: int,
    features: FloatArray,
    block: int,
    log_likelihood: FloatArray,
    log_joint: FloatArray,
    log_factor: FloatArray,
    tilt: float,
    conditional: bool,
    hard: bool,
    weights: FloatArray,
    totals: Totals,
    exp_constants_array: FloatArray,
) -> None:
    """Send all rows of ``features`` up, and down if ``totals`` has room for statistics.

    One function for every purpose, so that it is compiled once. Empty arrays stand for what is not wanted
    (``log_likelihood``, ``log_joint``, ``totals``) or not given (``log_factor``: zeros, ``weights``: ones).
    Statistics need a wiring that gives every sum the row of its own number.
    """
    n_sums, n_edges = len(wiring.edge_start) - 1, len(wiring.edge_unit)
    root, root_edge = n_sums - 1, wiring.edge_start[n_sums - 1]
    root_row = wiring.sum_row[root]
    constants = exp_constants(exp_constants_array)
    wants_statistics = len(totals.objective) > 0
    cells, has_missing = np.empty((features.shape[1], block)), np.empty(features.shape[1], np.bool_)
    unit_exponent, unit_mantissa = np.empty((n_unit_rows, block)), np.ones((n_unit_rows, block))
    sum_exponent, sum_mantissa = np.empty((n_sum_rows, block)), np.empty((n_sum_rows, block))
    edge_mantissa = np.empty((n_edges if wants_statistics else 1, block))
    joint, root_flow = np.empty((n_edges - root_edge, block)), np.empty((n_edges - root_edge, block))
    work = np.empty((3, block))

    for begin in range(0, len(features), block):
        n = min(block, len(features) - begin)
        _load(cells, has_missing, features, begin, n)
        any_missing = has_missing.any()
        for turn in range(n_sums):
            for unit in wiring.unit_order[wiring.unit_start[turn] : wiring.unit_start[turn + 1]]:
                row = wiring.unit_row[unit]
                _add_squares(unit_exponent, unit, row, n, cells, has_missing, any_missing, wiring, numbers)
                _add_other_terms(unit_exponent, unit, row, n, cells, wiring, numbers)
                _multiply_children(unit, row, n, unit_exponent, unit_mantissa, sum_exponent, sum_mantissa, wiring)
            if turn < root or len(log_likelihood) > 0:
                _mix(
                    wiring.sum_order[turn],
                    n,
                    hard,
                    wants_statistics,
                    unit_exponent,
                    unit_mantissa,
                    sum_exponent,
                    sum_mantissa,
                    edge_mantissa,
                    work,
                    wiring,
                    numbers.log_weights,
                    constants,
                )
        if len(log_likelihood) > 0:
            for r in range(n):
                log_likelihood[begin + r] = sum_exponent[root_row, r] + math.log(sum_mantissa[root_row, r])
            continue
        _root_joint(joint, n, unit_exponent, unit_mantissa, wiring, numbers.log_weights)
        if len(log_joint) > 0:
            for k in range(len(joint)):
                for r in range(n):
                    log_joint[begin + r, k] = joint[k, r]
            continue
        totals.objective[0] += _root_flow(
            root_flow, joint, work, log_factor, tilt, conditional, hard, weights, begin, n, constants
        )
        # The exponents have done their work: their memory now holds the flows of the same nodes.
        unit_flow, sum_flow = unit_exponent, sum_exponent
        unit_flow[:] = 0.0
        sum_flow[:] = 0.0
        for k in range(len(root_flow)):
            totals.edge_flow[root_edge + k] += _total(root_flow, k, n)
            row = wiring.unit_row[wiring.edge_unit[root_edge + k]]
            for r in range(n):
                unit_flow[row, r] += root_flow[k, r]
        for turn in range(n_sums - 1, -1, -1):
            if turn < root:
                _share_flow(
                    wiring.sum_order[turn],
                    n,
                    sum_flow,
                    sum_mantissa,
                    edge_mantissa,
                    unit_flow,
                    wiring,
                    totals.edge_flow,
                    first_shared_row,
                )
            for unit in wiring.unit_order[wiring.unit_start[turn] : wiring.unit_start[turn + 1]]:
                row = wiring.unit_row[unit]
                _square_statistics(unit, row, n, unit_flow, cells, has_missing, wiring, numbers, totals.square)
                _other_statistics(unit, row, begin, n, unit_flow, cells, wiring, totals)
                for child in wiring.child[wiring.child_start[unit] : wiring.child_start[unit + 1]]:
                    for r in range(n):
                        sum_flow[child, r] += unit_flow[row, r]

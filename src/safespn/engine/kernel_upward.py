"""The upward pass of the compiled kernels: from a block of rows to the values of all nodes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.engine.kernel_arguments import Numbers, Wiring
from safespn.engine.kernel_arithmetic import ExpConstants, exp_of_negative, larger, total_of_row
from safespn.typing import BoolArray, FloatArray


@njit(nogil=True, error_model="numpy", forceinline=True)
def load_block(cells: FloatArray, has_missing: BoolArray, features: FloatArray, begin: int, n: int) -> None:
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
        total = total_of_row(cells, feature, n)
        has_missing[feature] = total != total


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def add_squares(
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
def add_other_terms(
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
def multiply_children(
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
def mix_two(
    first: int,
    own: int,
    n: int,
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
    """Compute a sum of two units: the larger one needs no exponential."""
    one, other = wiring.unit_row[wiring.edge_unit[first]], wiring.unit_row[wiring.edge_unit[first + 1]]
    weight_of_one, weight_of_other = log_weights[first], log_weights[first + 1]
    part_of_one, part_of_other = (first, first + 1) if keep_parts else (0, 1)
    # Several short loops: a loop over more arrays than these is not vectorised, because they might overlap.
    for r in range(n):
        a = unit_exponent[one, r] + weight_of_one
        b = unit_exponent[other, r] + weight_of_other
        sum_exponent[own, r] = larger(a, b)
        work[0, r] = a - b
    for r in range(n):
        work[1, r] = exp_of_negative(-abs(work[0, r]), constants)
    # Where both are impossible the difference is NaN, and both comparisons fail.
    for r in range(n):
        edge_mantissa[part_of_one, r] = (1.0 if work[0, r] >= 0.0 else work[1, r]) * unit_mantissa[one, r]
    for r in range(n):
        edge_mantissa[part_of_other, r] = (1.0 if work[0, r] < 0.0 else work[1, r]) * unit_mantissa[other, r]
    for r in range(n):
        sum_mantissa[own, r] = edge_mantissa[part_of_one, r] + edge_mantissa[part_of_other, r]


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def mix(
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
    if last - first == 2 and not hard:
        mix_two(
            first,
            own,
            n,
            keep_parts,
            unit_exponent,
            unit_mantissa,
            sum_exponent,
            sum_mantissa,
            edge_mantissa,
            work,
            wiring,
            log_weights,
            constants,
        )
        return
    for r in range(n):
        work[0, r] = -np.inf
        sum_mantissa[own, r] = 0.0
    side = 0
    for edge in range(first, last):
        row, weight = wiring.unit_row[wiring.edge_unit[edge]], log_weights[edge]
        for r in range(n):
            # Two rows take turns: writing a maximum over its own operand compiles to a masked store, slow on some
            # processors.
            work[1 - side, r] = larger(work[side, r], unit_exponent[row, r] + weight)
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
def read_root_joint(
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

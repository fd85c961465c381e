"""The upward pass of the compiled kernels: from a block of rows to the values of all nodes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from safespn.engine.kernel_arguments import Numbers, Wiring
from safespn.engine.kernel_arithmetic import LOWEST, exp_of_negative, log_of_positive
from safespn.engine.kernel_vectors import (
    LENGTH,
    Vector,
    copy_four_by_four,
    fill,
    item,
    larger,
    load,
    negative_magnitude,
    store,
    total,
    where_at_least,
)
from safespn.typing import FloatArray


@njit(nogil=True, error_model="numpy", forceinline=True)
def load_block(cells: FloatArray, features: FloatArray, begin: int, n: int, padded: int) -> bool:
    """Copy ``n`` rows, transposed, repeat the last one up to ``padded``, and tell whether a cell is missing."""
    n_features = features.shape[1]
    whole, whole_features = n - n % 4, n_features - n_features % 4
    for r in range(0, whole, 4):
        for feature in range(0, whole_features, 4):
            copy_four_by_four(cells, r, features, begin + r, feature)
        for feature in range(whole_features, n_features):
            for i in range(r, r + 4):
                cells[feature, i] = features[begin + i, feature]
    for r in range(whole, padded):
        for feature in range(n_features):
            cells[feature, r] = features[begin + min(r, n - 1), feature]
    everything = fill(0.0)
    for feature in range(features.shape[1]):
        for r in range(0, padded, LENGTH):
            everything = everything + load(cells, feature, r)
    return math.isnan(total(everything))


@njit(nogil=True, error_model="numpy", forceinline=True)
def add_squares(unit: int, r: int, cells: FloatArray, any_missing: bool, wiring: Wiring, numbers: Numbers) -> Vector:
    """Add up a unit's square terms."""
    features, centres, scales = wiring.square_feature, numbers.square_centre, numbers.square_scale
    squares, missing = fill(0.0), fill(0.0)
    for entry in range(item(wiring.square_start, unit), item(wiring.square_start, unit + 1)):
        # The centre comes first, so that the cells are read by the same instruction.
        z = (item(centres, entry) - load(cells, item(features, entry), r)) * item(scales, entry)
        if any_missing:
            missing = missing + where_at_least(z, fill(-np.inf), fill(0.0), fill(item(numbers.square_missing, entry)))
            z = where_at_least(z, fill(-np.inf), z, fill(0.0))
        squares = squares + z * z
    return missing - 0.5 * squares


@njit(nogil=True, error_model="numpy", forceinline=True)
def add_leaves(
    value: FloatArray,
    unit: int,
    row: int,
    n: int,
    padded: int,
    cells: FloatArray,
    any_missing: bool,
    wiring: Wiring,
    numbers: Numbers,
) -> None:
    """Set a unit's exponent to its constant plus the terms of its leaves."""
    for r in range(0, padded, LENGTH):
        exponent = numbers.unit_constant[unit] + add_squares(unit, r, cells, any_missing, wiring, numbers)
        for entry in range(item(wiring.linear_start, unit), item(wiring.linear_start, unit + 1)):
            slot = item(wiring.linear_slot, entry)
            x = load(cells, item(wiring.linear_feature, slot), r)
            line = x * item(numbers.linear_slope, slot)
            exponent = exponent + where_at_least(x, fill(-np.inf), line, fill(item(numbers.linear_missing, slot)))
        for entry in range(item(wiring.block_start, unit), item(wiring.block_start, unit + 1)):
            exponent = exponent + load(cells, item(wiring.block_feature, item(wiring.block_slot, entry)), r)
        store(value, row, r, exponent)
    for entry in range(wiring.table_start[unit], wiring.table_start[unit + 1]):
        slot = wiring.table_slot[entry]
        feature = wiring.table_feature[slot]
        offset, of_missing = wiring.table_offset[slot], wiring.table_offset[slot + 1] - 1
        for r in range(n):
            x = cells[feature, r]
            value[row, r] += numbers.table_values[offset + int(x) if x == x else of_missing]


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
    first, last = item(wiring.child_start, unit), item(wiring.child_start, unit + 1)
    for r in range(0, n, LENGTH):
        exponent, mantissa = load(unit_exponent, row, r), fill(1.0)
        for entry in range(first, last):
            child = item(wiring.child, entry)
            exponent = exponent + load(sum_exponent, child, r)
            mantissa = mantissa * load(sum_mantissa, child, r)
            if wiring.renormalise[entry]:
                store(unit_exponent, row, r, exponent)
                store(unit_mantissa, row, r, mantissa)
                fold_mantissas(unit_exponent, unit_mantissa, row, r)
                exponent, mantissa = load(unit_exponent, row, r), load(unit_mantissa, row, r)
        store(unit_exponent, row, r, exponent)
        store(unit_mantissa, row, r, mantissa)


@njit(nogil=True, error_model="numpy")
def fold_mantissas(exponent: FloatArray, mantissa: FloatArray, row: int, start: int) -> None:
    """Move the mantissas of a vector of rows into their exponents."""
    for r in range(start, start + LENGTH):
        if mantissa[row, r] > 0.0:
            exponent[row, r] += math.log(mantissa[row, r])
            mantissa[row, r] = 1.0


@njit(nogil=True, error_model="numpy", forceinline=True)
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
    wiring: Wiring,
    log_weights: FloatArray,
    constants: FloatArray,
) -> None:
    """Compute a sum of two units: the larger one needs no exponential."""
    one, other = wiring.unit_row[wiring.edge_unit[first]], wiring.unit_row[wiring.edge_unit[first + 1]]
    weight_of_one, weight_of_other = log_weights[first], log_weights[first + 1]
    for r in range(0, n, LENGTH):
        a = load(unit_exponent, one, r) + weight_of_one
        b = load(unit_exponent, other, r) + weight_of_other
        store(sum_exponent, own, r, larger(a, b))
        # Where both are impossible the difference is NaN, whose exponential is zero.
        smaller = exp_of_negative(negative_magnitude(a - b), constants)
        part_of_one = where_at_least(a, b, fill(1.0), smaller) * load(unit_mantissa, one, r)
        part_of_other = where_at_least(a, b, smaller, fill(1.0)) * load(unit_mantissa, other, r)
        store(sum_mantissa, own, r, part_of_one + part_of_other)
        if keep_parts:
            store(edge_mantissa, first, r, part_of_one)
            store(edge_mantissa, first + 1, r, part_of_other)


@njit(nogil=True, error_model="numpy", forceinline=True)
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
    wiring: Wiring,
    log_weights: FloatArray,
    constants: FloatArray,
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
            wiring,
            log_weights,
            constants,
        )
        return
    for r in range(0, n, LENGTH):
        largest = fill(-np.inf)
        for edge in range(first, last):
            row = item(wiring.unit_row, item(wiring.edge_unit, edge))
            largest = larger(load(unit_exponent, row, r) + item(log_weights, edge), largest)
        reference = where_at_least(largest, fill(LOWEST), largest, fill(0.0))
        mantissa = fill(0.0)
        for edge in range(first, last):
            row = item(wiring.unit_row, item(wiring.edge_unit, edge))
            exponent = load(unit_exponent, row, r) + item(log_weights, edge)
            if hard:
                # The first best unit takes all, if it is possible: its mantissa is then at least one.
                best = where_at_least(exponent, reference, 1.0 - mantissa, fill(0.0))
                part = where_at_least(load(unit_mantissa, row, r), fill(1.0), best, fill(0.0))
            else:
                part = exp_of_negative(exponent - reference, constants) * load(unit_mantissa, row, r)
            mantissa = mantissa + part
            if keep_parts:
                store(edge_mantissa, edge, r, part)
        store(sum_exponent, own, r, largest)
        store(sum_mantissa, own, r, mantissa)


@njit(nogil=True, error_model="numpy", forceinline=True)
def read_root_joint(
    joint: FloatArray,
    n: int,
    unit_exponent: FloatArray,
    unit_mantissa: FloatArray,
    wiring: Wiring,
    log_weights: FloatArray,
    constants: FloatArray,
) -> None:
    """Take the log of the root's edges: the class joint."""
    first = wiring.edge_start[len(wiring.edge_start) - 2]
    for k in range(len(joint)):
        unit, weight = wiring.edge_unit[first + k], log_weights[first + k]
        row = wiring.unit_row[unit]
        has_children = wiring.child_start[unit] < wiring.child_start[unit + 1]
        for r in range(0, n, LENGTH):
            value = load(unit_exponent, row, r) + weight
            if has_children:
                value = value + log_of_positive(load(unit_mantissa, row, r), constants)
            store(joint, k, r, value)

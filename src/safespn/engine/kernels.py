"""Compiled kernels: both passes over a block of rows, node by node, with rows in the inner loops.

A node's value is kept as a pair (exponent, mantissa) that stands for ``exponent + log(mantissa)``: products add
exponents and multiply mantissas, sums rescale by exponentials of exponent differences, and a log is taken at the root
only. By construction a mantissa is at least one (or next to nothing, with exponent minus infinity); ``renormalise``
marks the children of units after which mantissas are folded back into exponents, so that they cannot overflow.

All arrays of values have shape (nodes, rows in block). A block is short enough to stay in cache; inner loops go through
it by vectors of ``LENGTH`` rows (:mod:`safespn.engine.kernel_vectors`), the last of which may hold some rows too many.
"""

from __future__ import annotations

from types import ModuleType
from zlib import crc32

import numpy as np

from safespn.engine import (
    evidence,
    kernel_arguments,
    kernel_arithmetic,
    kernel_downward,
    kernel_evidence,
    kernel_upward,
    kernel_vectors,
)
from safespn.engine.compilation import compiled
from safespn.engine.kernel_arguments import Numbers, Totals, UpdateArguments, Wiring
from safespn.engine.kernel_arithmetic import log_of_positive
from safespn.engine.kernel_downward import add_other_statistics, add_square_statistics, enter_at_root, share_flow
from safespn.engine.kernel_evidence import move_soft_labels, read_evidence
from safespn.engine.kernel_upward import add_leaves, load_block, mix, multiply_children, read_root_joint
from safespn.engine.kernel_vectors import LENGTH, add_up, empty_aligned, fill, load, store
from safespn.typing import FloatArray

MODULES = (
    evidence,
    kernel_arguments,
    kernel_arithmetic,
    kernel_downward,
    kernel_evidence,
    kernel_upward,
    kernel_vectors,
)


def _source(module: ModuleType) -> bytes:
    """Source of a module, in a folder or in a zip file; nothing where there is only its bytecode."""
    try:
        source: bytes = module.__loader__.get_data(module.__file__)  # type: ignore[union-attr]
    except OSError:
        return b""
    return source


SOURCES = crc32(b"".join(map(_source, MODULES)))
"""Checksum of the other modules that are compiled into ``run``. Numba's cache on disk compares this file's date and the
types of the arguments; as a default value, which is part of its argument's type, the checksum makes it notice edits of
the other modules, too."""


def writeable(array: FloatArray) -> FloatArray:
    """Kernels are compiled for writeable C-ordered arrays; a second version for others would cost seconds."""
    return np.require(array, np.float64, ["C", "A", "W"])


@compiled
def run(
    wiring: Wiring,
    numbers: Numbers,
    n_unit_rows: int,
    n_sum_rows: int,
    first_shared_row: int,
    features: FloatArray,
    blocks: FloatArray,
    block: int,
    log_likelihood: FloatArray,
    log_joint: FloatArray,
    log_factor: FloatArray,
    tilt: float,
    conditional: bool,
    hard: bool,
    weights: FloatArray,
    update: UpdateArguments,
    totals: Totals,
    constants: FloatArray,
    sources: int = SOURCES,
) -> None:
    """Send all rows up, and down if ``totals`` has room for statistics.

    ``features`` and ``blocks`` are the fields of :class:`safespn.engine.bound.Features`.

    One function for every purpose, so that it is compiled once. Empty arrays stand for what is not wanted
    (``log_likelihood``, ``log_joint``, ``totals``) or not given (``log_factor``: zeros, ``weights``: ones, ``update``:
    soft labels that do not change).
    Statistics need a wiring that gives every sum the row of its own number. Leave ``sources`` at its default.
    """
    n_sums, n_edges = len(wiring.edge_start) - 1, len(wiring.edge_unit)
    root, root_edge = n_sums - 1, wiring.edge_start[n_sums - 1]
    root_row = wiring.sum_row[root]
    wants_statistics = len(totals.objective) > 0
    n_features = features.shape[1]
    cells = empty_aligned(n_features + len(blocks), block)
    reads_cells = len(wiring.square_feature) + len(wiring.linear_slot) + len(wiring.table_slot) > 0
    unit_exponent, unit_mantissa = empty_aligned(n_unit_rows, block), empty_aligned(n_unit_rows, block)
    sum_exponent, sum_mantissa = empty_aligned(n_sum_rows, block), empty_aligned(n_sum_rows, block)
    edge_mantissa = empty_aligned(n_edges if wants_statistics else 0, block)
    n_root_edges = n_edges - root_edge
    joint, root_flow = empty_aligned(n_root_edges, block), empty_aligned(n_root_edges, block)
    target = empty_aligned(n_root_edges, block)
    work = empty_aligned(2, block)

    for begin in range(0, len(features), block):
        n = min(block, len(features) - begin)
        padded = -(-n // LENGTH) * LENGTH
        any_missing = reads_cells and load_block(cells, features, begin, n, padded)
        for k in range(len(blocks)):
            cells[n_features + k, :n] = blocks[k, begin : begin + n]
            cells[n_features + k, n:padded] = blocks[k, begin + n - 1]
        for turn in range(n_sums):
            for unit in wiring.unit_order[wiring.unit_start[turn] : wiring.unit_start[turn + 1]]:
                row = wiring.unit_row[unit]
                add_leaves(unit_exponent, unit, row, n, padded, cells, any_missing, wiring, numbers)
                multiply_children(unit, row, padded, unit_exponent, unit_mantissa, sum_exponent, sum_mantissa, wiring)
            if turn < root or len(log_likelihood) > 0:
                mix(
                    wiring.sum_order[turn],
                    padded,
                    hard,
                    wants_statistics,
                    unit_exponent,
                    unit_mantissa,
                    sum_exponent,
                    sum_mantissa,
                    edge_mantissa,
                    wiring,
                    numbers.log_weights,
                    constants,
                )
        if len(log_likelihood) > 0:
            for r in range(0, padded, LENGTH):
                mantissa = log_of_positive(load(sum_mantissa, root_row, r), constants)
                store(work, 0, r, load(sum_exponent, root_row, r) + mantissa)
            log_likelihood[begin : begin + n] = work[0, :n]
            continue
        read_root_joint(joint, padded, unit_exponent, unit_mantissa, wiring, numbers.log_weights, constants)
        if len(log_joint) > 0:
            for k in range(len(joint)):
                for r in range(n):
                    log_joint[begin + r, k] = joint[k, r]
        if not wants_statistics:
            continue
        if len(update.reference) > 0:
            move_soft_labels(root_flow, target, joint, work, update, begin, n, padded, constants)
        else:
            read_evidence(root_flow, joint, work, log_factor, tilt, hard, begin, n, padded, constants)
        totals.objective[0] += enter_at_root(
            root_flow, joint, work, tilt, conditional, hard, weights, begin, n, padded, constants
        )
        # The exponents have done their work: their memory now holds the flows of the same nodes.
        unit_flow, sum_flow = unit_exponent, sum_exponent
        unit_flow[first_shared_row:] = 0.0
        sum_flow[:] = 0.0
        for k in range(len(root_flow)):
            row = wiring.unit_row[wiring.edge_unit[root_edge + k]]
            through_edge = fill(0.0)
            for r in range(0, padded, LENGTH):
                flow = load(root_flow, k, r)
                through_edge = through_edge + flow
                if row >= first_shared_row:
                    flow = flow + load(unit_flow, row, r)
                store(unit_flow, row, r, flow)
            add_up(totals.edge_flow, root_edge + k, 0, through_edge)
        for turn in range(n_sums - 1, -1, -1):
            if turn < root:
                share_flow(
                    wiring.sum_order[turn],
                    padded,
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
                add_square_statistics(unit, row, padded, unit_flow, cells, any_missing, wiring, numbers, totals)
                add_other_statistics(unit, row, begin, n, unit_flow, cells, wiring, totals)
                for child in wiring.child[wiring.child_start[unit] : wiring.child_start[unit + 1]]:
                    for r in range(0, padded, LENGTH):
                        store(sum_flow, child, r, load(sum_flow, child, r) + load(unit_flow, row, r))

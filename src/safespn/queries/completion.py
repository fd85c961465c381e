"""Filling missing cells: most probable completions and draws from the conditional distribution.

Both send every row down one tree of the network only (the best one, or one drawn by posterior probability) and let the
leaves of that tree fill the missing cells.
"""

from __future__ import annotations

import numpy as np

from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.engine.numpy_pass import Choice, block_rows, downward, mix, root_flow, upward
from safespn.network.columns import as_block
from safespn.network.structure import Parameters, Structure
from safespn.typing import AnyArray, FloatArray


def most_probable_completion(structure: Structure, parameters: Parameters, table: AnyArray) -> FloatArray:
    """Fill missing cells with the modes of the best tree (max-product).

    This is the most probable explanation itself where the network is selective (at most one child of each sum is
    positive for a full row). Elsewhere several trees may add up to more than the best one alone, finding the true
    maximum is NP-hard, and this is the usual approximation.
    """
    return _complete(structure, parameters, table, None)


def conditional_draws(
    structure: Structure, parameters: Parameters, table: AnyArray, generator: np.random.Generator
) -> FloatArray:
    """Fill missing cells with exact draws given the observed cells of the row."""
    return _complete(structure, parameters, table, generator)


def _complete(
    structure: Structure, parameters: Parameters, table: AnyArray, generator: np.random.Generator | None
) -> FloatArray:
    network = bind(structure, parameters, complete_by_mode=generator is None)
    result = np.array(table, dtype=np.float64, order="C")
    size = block_rows(structure)
    for start in range(0, len(table), size):
        block = as_block(
            table, start, min(start + size, len(table)), structure.domains, structure.has_only_real_columns
        )
        up = upward(network, network.features(block), Choice.DRAW if generator else Choice.BEST, generator)
        if generator is None:
            _, into_root = root_flow(up.joint, Evidence(), None, hard=True)
        else:
            _, into_root = mix(up.joint, np.zeros(1, dtype=np.intp), Choice.DRAW, generator)
        if not into_root.any(axis=0).all():
            row = start + int(np.argmin(into_root.any(axis=0)))
            raise ValueError(f"row {row}: the observed cells have zero density, so there is nothing to condition on")
        _, unit_flow = downward(structure, up, into_root)
        _fill(result[start : start + len(block)], structure, parameters, unit_flow, generator)
    return result


def _fill(
    cells: FloatArray,
    structure: Structure,
    parameters: Parameters,
    unit_flow: FloatArray,
    generator: np.random.Generator | None,
) -> None:
    """Let each leaf that a row reaches fill the row's cell in the leaf's column, if it is missing."""
    missing = np.isnan(cells)
    for group, values in zip(structure.groups, parameters.leaves, strict=True):
        terms, slots = structure.terms_of(group.kinds[0]), group.slots[0]
        entries = np.nonzero((terms.slot >= slots.start) & (terms.slot < slots.stop))[0]
        entry, row = np.nonzero(unit_flow[terms.unit[entries]])
        leaf = terms.slot[entries[entry]] - slots.start
        wanted = missing[row[:, None], group.leaves.columns[leaf]].any(axis=1)
        leaf, row = leaf[wanted], row[wanted, None]
        columns = group.leaves.columns[leaf]
        filled = group.family.complete(values, leaf, cells[row, columns], generator)
        cells[row, columns] = np.where(missing[row, columns], filled, cells[row, columns])

"""The order in which the compiled pass visits a network, and the rows of working memory it uses.

Sums are visited depth first, and a sum's units just before it, so that their values are still in cache when the sum
reads them. A unit with one parent needs its value only then: such units take turns in a few rows of working memory. A
unit with several parents keeps a row of its own. A sum's value is needed until its last parent has read it; without a
downward pass its row then goes to another sum, so that a large network needs no more working memory than a small one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.network.structure import Structure
from safespn.typing import BoolArray, IntArray

LARGEST_MANTISSA_BITS = 450.0


@dataclass(frozen=True, eq=False)
class Schedule:
    """An order of visits: before sum ``sum_order[i]`` the units ``unit_order[unit_start[i]:unit_start[i + 1]]``."""

    sum_order: IntArray
    unit_order: IntArray
    unit_start: IntArray
    unit_row: IntArray
    n_unit_rows: int
    first_shared_row: int
    sum_row: IntArray
    """Row of working memory of each sum, for an upward pass that no downward pass follows."""
    n_sum_rows: int
    renormalise: BoolArray
    """For each entry of ``Structure.child``: fold the mantissa into the exponent after multiplying this child."""


def make_schedule(structure: Structure) -> Schedule:
    """Plan the compiled pass over a structure."""
    sum_order = _depth_first(structure)
    n_parents = np.bincount(structure.edge_unit, minlength=structure.n_units)
    fan_out = int(np.diff(structure.edge_start).max())
    unit_row = np.full(structure.n_units, -1, dtype=np.intp)
    n_rows, order, starts = fan_out, [], [0]
    for which in sum_order:
        for position, edge in enumerate(range(*structure.edge_start[which : which + 2])):
            unit = structure.edge_unit[edge]
            if unit_row[unit] >= 0:
                continue
            unit_row[unit] = position
            if n_parents[unit] > 1:
                unit_row[unit] = n_rows
                n_rows += 1
            order.append(unit)
        starts.append(len(order))
    sum_row = _recycle_rows(structure, sum_order, order, starts)
    return Schedule(
        sum_order=sum_order,
        unit_order=np.array(order, dtype=np.intp),
        unit_start=np.array(starts, dtype=np.intp),
        unit_row=unit_row,
        n_unit_rows=n_rows,
        first_shared_row=fan_out,
        sum_row=sum_row,
        n_sum_rows=int(sum_row.max()) + 1,
        renormalise=_renormalise(structure),
    )


def _depth_first(structure: Structure) -> IntArray:
    """Order the sums depth first, children before parents."""
    order: list[int] = []
    done = np.zeros(structure.n_sums, dtype=np.bool_)
    stack = [(structure.n_sums - 1, False)]
    while stack:
        which, expanded = stack.pop()
        if done[which]:
            continue
        if expanded:
            done[which] = True
            order.append(which)
            continue
        stack.append((which, True))
        for unit in structure.edge_unit[slice(*structure.edge_start[which : which + 2])]:
            children = structure.child[slice(*structure.child_start[unit : unit + 2])]
            stack.extend((int(child), False) for child in children if not done[child])
    return np.array(order, dtype=np.intp)


def _recycle_rows(structure: Structure, sum_order: IntArray, unit_order: list[int], unit_start: list[int]) -> IntArray:
    """Give each sum a row that no other sum needs before the last parent of this one has read it."""
    sum_row = np.empty(structure.n_sums, dtype=np.intp)
    unread = np.bincount(structure.child, minlength=structure.n_sums)
    free: list[int] = []
    n_rows = 0
    for turn, which in enumerate(sum_order):
        for unit in unit_order[unit_start[turn] : unit_start[turn + 1]]:
            for child in structure.child[slice(*structure.child_start[unit : unit + 2])]:
                unread[child] -= 1
                if unread[child] == 0:
                    free.append(int(sum_row[child]))
        if not free:
            free.append(n_rows)
            n_rows += 1
        sum_row[which] = free.pop()
    return sum_row


def _renormalise(structure: Structure) -> BoolArray:
    """Mark the children of units after which a mantissa could have grown beyond ``LARGEST_MANTISSA_BITS`` bits."""
    marks = np.zeros(len(structure.child), dtype=np.bool_)
    unit_bits = np.zeros(structure.n_units)
    sum_bits = np.zeros(structure.n_sums)
    for level in range(structure.n_levels):
        for unit in range(*structure.unit_level_start[level : level + 2]):
            for entry in range(*structure.child_start[unit : unit + 2]):
                unit_bits[unit] += sum_bits[structure.child[entry]]
                if unit_bits[unit] > LARGEST_MANTISSA_BITS:
                    marks[entry] = True
                    unit_bits[unit] = 0.0
        for which in range(*structure.sum_level_start[level : level + 2]):
            units = structure.edge_unit[slice(*structure.edge_start[which : which + 2])]
            sum_bits[which] = np.logaddexp2.reduce(unit_bits[units])
    return marks

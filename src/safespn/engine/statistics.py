"""Expected sufficient statistics: what a pass over rows leaves behind, and all that learning needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from safespn.network.leaves.family import Block, Linear, Square
from safespn.network.structure import Parameters, Structure
from safespn.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over rows, so they add over blocks, threads, processes and machines.

    Parameters
    ----------
    objective : float
        Log-likelihood of the rows given their evidence (or the conditional one), in nats, weighted.
    edge_flow : array of shape (n_edges,)
        Expected number of rows that pass through each edge of a sum.
    square : array of shape (n_square_slots, 3)
        Flow, flow times z, flow times z squared; see :mod:`safespn.network.leaves.family`.
    linear : array of shape (n_linear_slots, 2)
        Flow and flow times x.
    table : array
        Flow for every state of every table slot, a missing cell included as the last one.
    blocks : tuple of arrays
        What the families with blocks computed, one array (n_leaves, n_statistics) for each such leaf group.
    """

    objective: float
    edge_flow: FloatArray
    square: FloatArray
    linear: FloatArray
    table: FloatArray
    blocks: tuple[FloatArray, ...] = ()

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.objective + other.objective,
            self.edge_flow + other.edge_flow,
            self.square + other.square,
            self.linear + other.linear,
            self.table + other.table,
            tuple(ours + theirs for ours, theirs in zip(self.blocks, other.blocks, strict=True)),
        )

    def scaled(self, share: float) -> Statistics:
        """Return the statistics of so many times the rows."""
        return Statistics(
            self.objective * share,
            self.edge_flow * share,
            self.square * share,
            self.linear * share,
            self.table * share,
            tuple(values * share for values in self.blocks),
        )

    def recentred(self, structure: Structure, old: Parameters, new: Parameters) -> Statistics:
        """Return the statistics of the same flows, relative to other parameters than those of their pass."""
        of_groups = [
            group.family.recentred(self.of_group(structure, index), old.leaves[index], new.leaves[index])
            for index, group in enumerate(structure.groups)
        ]
        return self.with_groups(structure, of_groups)

    def with_groups(self, structure: Structure, of_groups: Sequence[Sequence[FloatArray]]) -> Statistics:
        """Return the same flows of edges with other statistics of the leaves: for each group, one array per term."""
        square, linear, table, blocks = self.square.copy(), self.linear.copy(), self.table.copy(), []
        for group, values in zip(structure.groups, of_groups, strict=True):
            for kind, slots, of_term in zip(group.kinds, group.slots, values, strict=True):
                if kind is Square:
                    square[slots] = of_term
                elif kind is Linear:
                    linear[slots] = of_term
                elif kind is Block:
                    blocks.append(of_term)
                else:
                    start, stop = structure.table_offset[slots.start], structure.table_offset[slots.stop]
                    table[start:stop].reshape(group.n_leaves, -1)[:, :-1] = of_term
        return Statistics(self.objective, self.edge_flow, square, linear, table, tuple(blocks))

    def of_group(self, structure: Structure, index: int) -> list[FloatArray]:
        """Return the statistics of one leaf group, one array per term of its family."""
        group = structure.groups[index]
        result = []
        for kind, slots in zip(group.kinds, group.slots, strict=True):
            if kind is Square:
                result.append(self.square[slots])
            elif kind is Linear:
                result.append(self.linear[slots])
            elif kind is Block:
                earlier = [other for other in structure.groups[:index] if Block in other.kinds]
                result.append(self.blocks[len(earlier)])
            else:
                start, stop = structure.table_offset[slots.start], structure.table_offset[slots.stop]
                result.append(self.table[start:stop].reshape(group.n_leaves, -1)[:, :-1])
        return result

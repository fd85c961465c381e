"""Expected sufficient statistics: what a pass over rows leaves behind, and all that learning needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.network.leaves.family import Linear, Square
from safespn.network.structure import Structure
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
    """

    objective: float
    edge_flow: FloatArray
    square: FloatArray
    linear: FloatArray
    table: FloatArray

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.objective + other.objective,
            self.edge_flow + other.edge_flow,
            self.square + other.square,
            self.linear + other.linear,
            self.table + other.table,
        )

    def of_group(self, structure: Structure, index: int) -> list[FloatArray]:
        """Return the statistics of one leaf group, one array per term of its family."""
        group = structure.groups[index]
        result = []
        for kind, slots in zip(group.kinds, group.slots, strict=True):
            if kind is Square:
                result.append(self.square[slots])
            elif kind is Linear:
                result.append(self.linear[slots])
            else:
                start, stop = structure.table_offset[slots.start], structure.table_offset[slots.stop]
                result.append(self.table[start:stop].reshape(group.n_leaves, -1)[:, :-1])
        return result

    @classmethod
    def zeros(cls, structure: Structure) -> Statistics:
        """Return the statistics of no rows."""
        return cls(
            0.0,
            np.zeros(structure.n_edges),
            np.zeros((structure.square.n_slots, 3)),
            np.zeros((structure.linear.n_slots, 2)),
            np.zeros(structure.table_offset[-1]),
        )

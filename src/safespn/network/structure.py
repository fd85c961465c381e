"""The compiled form of a network: its structure as arrays, its parameters as arrays.

Compiling brings a network into layers of two kinds of nodes that alternate:

* a *unit* is a product: some leaves, fused into it, and some sums;
* a *sum* mixes units; every edge from a sum to a unit carries a log weight.

Products below products are merged into one unit, a leaf or sum directly below a sum gets a unit of its own, and the
root is always a sum (with a single edge if the network's own root is not one). Units and sums are numbered level by
level, children first; the root is the last sum, and its edges are the last edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from safespn.network.columns import Domain
from safespn.network.leaves.family import Block, LeafFamily, Leaves, Linear, Square, Table, Term
from safespn.network.nodes import Leaf, Node, Product, Sum
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TermList:
    """The terms of one kind (square, linear or table) and the units that they belong to.

    A *slot* is one term of one leaf and holds its numbers; a shared leaf's slot occurs in several units. Unit ``u``
    has the slots ``slot[start[u]:start[u + 1]]``.
    """

    start: IntArray
    slot: IntArray
    feature: IntArray
    """Feature that each slot reads."""

    @property
    def n_slots(self) -> int:
        return len(self.feature)

    @cached_property
    def unit(self) -> IntArray:
        """Unit of each entry of ``slot``."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class LeafGroup:
    """All leaves of one family with equally many parameters and columns, and where their terms' slots are."""

    family: LeafFamily
    leaves: Leaves
    kinds: tuple[type[Term], ...]
    slots: tuple[slice, ...]

    @property
    def n_leaves(self) -> int:
        return len(self.leaves.columns)


@dataclass(frozen=True, eq=False)
class Structure:
    """A network's wiring as integer arrays; everything but the numbers that learning changes."""

    root: Node
    nodes: tuple[Node, ...]
    domains: tuple[Domain | None, ...]
    edge_start: IntArray
    """Sum ``s`` has the edges ``edge_start[s]`` to ``edge_start[s + 1]``."""
    edge_sum: IntArray
    edge_unit: IntArray
    child_start: IntArray
    """Unit ``u`` multiplies the sums ``child[child_start[u]:child_start[u + 1]]``."""
    child: IntArray
    sum_level_start: IntArray
    unit_level_start: IntArray
    square: TermList
    linear: TermList
    table: TermList
    block: TermList
    """Log densities that families compute themselves; their values are the last features."""
    table_offset: IntArray
    """Where each table slot's states begin; one more state than the leaf has stands for a missing cell."""
    derived_features: tuple[tuple[int, Callable[[FloatArray], FloatArray]], ...]
    """Features beyond the columns themselves: the column and the function that derives it; numbered from
    ``n_columns``."""
    groups: tuple[LeafGroup, ...]
    leaf_position: dict[int, tuple[int, int]] = field(repr=False)
    """Group and row of each leaf, by the leaf's position in ``nodes``."""
    sum_position: dict[int, int] = field(repr=False)
    """Number of each described sum, by its position in ``nodes``."""

    @property
    def n_columns(self) -> int:
        return len(self.domains)

    @property
    def n_edges(self) -> int:
        return len(self.edge_unit)

    @property
    def n_units(self) -> int:
        return len(self.child_start) - 1

    @property
    def n_sums(self) -> int:
        return len(self.edge_start) - 1

    @property
    def n_levels(self) -> int:
        return len(self.sum_level_start) - 1

    @property
    def n_root_edges(self) -> int:
        """Number of children of the root, K: one per class in a class network."""
        return int(self.edge_start[-1] - self.edge_start[-2])

    @property
    def n_terms(self) -> int:
        return sum(len(terms.slot) for terms in (self.square, self.linear, self.table, self.block))

    @cached_property
    def has_only_real_columns(self) -> bool:
        return all(domain is None or domain.kind == "real" for domain in self.domains)

    def terms_of(self, kind: type[Term]) -> TermList:
        """Return the list of all terms of one kind."""
        return {Square: self.square, Linear: self.linear, Table: self.table, Block: self.block}[kind]

    def sum_over_edges(self, values: FloatArray) -> FloatArray:
        """Add up ``values`` of the edges of each sum, shape (n_sums,)."""
        return np.add.reduceat(values, self.edge_start[:-1])


@dataclass(frozen=True, eq=False)
class Parameters:
    """The numbers that learning changes.

    Parameters
    ----------
    log_weights : array of shape (n_edges,)
    leaves : tuple of arrays of shape (n_leaves, n_parameters)
        One for each leaf group.
    """

    log_weights: FloatArray
    leaves: tuple[FloatArray, ...]


def describe(structure: Structure, parameters: Parameters) -> Node:
    """Write parameters back into immutable nodes: the inverse of :func:`safespn.network.compiler.compile_network`."""
    weights = np.exp(parameters.log_weights)
    built: dict[int, Node] = {}
    for position, node in enumerate(structure.nodes):
        if isinstance(node, Leaf):
            group_index, row = structure.leaf_position[position]
            group = structure.groups[group_index]
            built[id(node)] = group.family.node(node.columns, parameters.leaves[group_index][row], node.tie)
        elif isinstance(node, Sum):
            start, stop = structure.edge_start[structure.sum_position[position] :][:2]
            built[id(node)] = Sum([built[id(child)] for child in node.children], weights[start:stop].tolist())
        else:
            built[id(node)] = Product([built[id(child)] for child in node.children])
    return built[id(structure.root)]

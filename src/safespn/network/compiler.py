"""From a description to arrays: units, sums and leaf slots, numbered level by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from safespn.network.columns import Domain
from safespn.network.leaves.family import Block, LeafFamily, Leaves, Linear, Square, Table, Term
from safespn.network.nodes import Leaf, Node, Product, Sum
from safespn.network.structure import LeafGroup, Parameters, Structure, TermList
from safespn.typing import FloatArray, IntArray


def compile_network(root: Node, order: list[Node], domains: tuple[Domain | None, ...]) -> tuple[Structure, Parameters]:
    """Compile a checked network; ``order`` lists its nodes, children first."""
    return _Compiler(root, order, domains).result()


@dataclass
class _Unit:
    leaves: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    level: int = 0


@dataclass
class _Mixture:
    units: list[int]
    weights: tuple[float, ...]
    level: int


class _Compiler:
    """Turns nodes into units and sums in order of discovery, then numbers them by level."""

    def __init__(self, root: Node, order: list[Node], domains: tuple[Domain | None, ...]) -> None:
        self.root, self.order, self.domains = root, order, domains
        self.position = {id(node): position for position, node in enumerate(order)}
        self.units: list[_Unit] = []
        self.mixtures: list[_Mixture] = []
        self.unit_of: dict[int, int] = {}
        self.mixture_of: dict[int, int] = {}
        self.parents = dict.fromkeys(self.position, 0)
        for node in order:
            for child in node.children:
                self.parents[id(child)] += 1

        self.below_products = {id(child) for node in order if isinstance(node, Product) for child in node.children}

    def result(self) -> tuple[Structure, Parameters]:
        for node in self.order:
            if isinstance(node, Sum):
                units = [self._unit(child) for child in node.children]
                self.mixture_of[id(node)] = self._add_mixture(units, node.weights)
            elif self._is_shared_product(node):
                self.mixture_of[id(node)] = self._add_mixture([self._unit(node)], (1.0,))
        if not isinstance(self.root, Sum):
            self._add_mixture([self._unit(self.root)], (1.0,))
        return self._number()

    def _add_mixture(self, units: list[int], weights: tuple[float, ...]) -> int:
        level = max(self.units[unit].level for unit in units)
        self.mixtures.append(_Mixture(units, weights, level))
        return len(self.mixtures) - 1

    def _unit(self, node: Node) -> int:
        """Return the unit whose value is that of ``node``, made when it is first asked for."""
        if id(node) not in self.unit_of:
            unit = _Unit()
            pending = [node]
            while pending:
                part = pending.pop()
                if isinstance(part, Leaf):
                    unit.leaves.append(self.position[id(part)])
                elif id(part) not in self.mixture_of or (part is node and isinstance(part, Product)):
                    pending.extend(reversed(part.children))
                else:
                    unit.sums.append(self.mixture_of[id(part)])
            unit.level = 1 + max((self.mixtures[child].level for child in unit.sums), default=-1)
            self.units.append(unit)
            self.unit_of[id(node)] = len(self.units) - 1
        return self.unit_of[id(node)]

    def _is_shared_product(self, node: Node) -> bool:
        """A product below several nodes, a product among them, is computed once, as the only child of a sum."""
        return isinstance(node, Product) and self.parents[id(node)] > 1 and id(node) in self.below_products

    def _number(self) -> tuple[Structure, Parameters]:
        units, unit_number, unit_level_start = _by_level(self.units)
        mixtures, sum_number, sum_level_start = _by_level(self.mixtures, n_levels=len(unit_level_start) - 1)
        edge_start = _starts([len(mixture.units) for mixture in mixtures])
        with np.errstate(divide="ignore"):
            log_weights = np.log([weight for mixture in mixtures for weight in mixture.weights])
        leaves_of_units = [unit.leaves for unit in units]
        leaves = _LeafLayout(self.order, n_columns=len(self.domains))
        structure = Structure(
            root=self.root,
            nodes=tuple(self.order),
            domains=self.domains,
            edge_start=edge_start,
            edge_sum=np.repeat(np.arange(len(mixtures)), np.diff(edge_start)),
            edge_unit=np.array([unit_number[unit] for mixture in mixtures for unit in mixture.units], dtype=np.intp),
            child_start=_starts([len(unit.sums) for unit in units]),
            child=np.array([sum_number[child] for unit in units for child in unit.sums], dtype=np.intp),
            sum_level_start=sum_level_start,
            unit_level_start=unit_level_start,
            square=leaves.term_list(Square, leaves_of_units),
            linear=leaves.term_list(Linear, leaves_of_units),
            table=leaves.term_list(Table, leaves_of_units),
            block=leaves.term_list(Block, leaves_of_units),
            table_offset=_starts(leaves.table_sizes),
            derived_features=tuple(leaves.derived_features),
            groups=tuple(leaves.groups),
            leaf_position=leaves.position,
            sum_position={
                position: sum_number[self.mixture_of[id(node)]]
                for position, node in enumerate(self.order)
                if isinstance(node, Sum)
            },
        )
        return structure, Parameters(log_weights, tuple(leaves.parameters))


class _LeafLayout:
    """Groups leaves by family and gives every term of every leaf its slot."""

    def __init__(self, nodes: Sequence[Node], n_columns: int) -> None:
        self.n_columns = n_columns
        self.groups: list[LeafGroup] = []
        self.parameters: list[FloatArray] = []
        self.position: dict[int, tuple[int, int]] = {}
        self.table_sizes: list[int] = []
        self.derived_features: list[tuple[int, Callable[[FloatArray], FloatArray]]] = []
        self.slot_features: dict[type[Term], list[int]] = {Square: [], Linear: [], Table: [], Block: []}
        members: dict[tuple[str, int, int], list[int]] = {}
        for position, node in enumerate(nodes):
            if isinstance(node, Leaf):
                kind = (node.family.name, node.parameters.size, len(node.columns))
                members.setdefault(kind, []).append(position)
        for positions in members.values():
            leaves = [node for node in (nodes[position] for position in positions) if isinstance(node, Leaf)]
            self._add_group(positions, leaves)

    def _add_group(self, positions: list[int], leaves: list[Leaf]) -> None:
        family: LeafFamily = leaves[0].family
        columns = np.array([leaf.columns for leaf in leaves], dtype=np.intp)
        parameters = np.array([leaf.parameters for leaf in leaves])
        self.position |= {position: (len(self.groups), row) for row, position in enumerate(positions)}
        terms = family.terms(parameters)
        slots = []
        for term in terms:
            features = self.slot_features[type(term)]
            slots.append(slice(len(features), len(features) + len(leaves)))
            features.extend(self._feature(family, term.feature, leaf.columns[0]) for leaf in leaves)
            if isinstance(term, Table):
                self.table_sizes.extend([term.values.shape[1] + 1] * len(leaves))
        self.groups.append(
            LeafGroup(family, Leaves(columns, _ties(leaves)), tuple(type(term) for term in terms), tuple(slots))
        )
        self.parameters.append(parameters)

    def _feature(self, family: LeafFamily, feature: int, column: int) -> int:
        derive = family.features[feature]
        if derive is None:
            return column
        if (column, derive) not in self.derived_features:
            self.derived_features.append((column, derive))
        return self.n_columns + self.derived_features.index((column, derive))

    def term_list(self, kind: type[Term], leaves_of_units: list[list[int]]) -> TermList:
        """Terms of one kind of the leaves of each unit, in the order of the leaves."""
        places = [self.position[position] for leaves in leaves_of_units for position in leaves]
        group, row = np.array(places, dtype=np.intp).reshape(-1, 2).T
        first_slots = [
            [where.start for where, what in zip(each.slots, each.kinds, strict=True) if what is kind]
            for each in self.groups
        ]
        n_terms = np.array([len(slots) for slots in first_slots], dtype=np.intp)
        padded = np.array([slots + [0] * (max(n_terms) - len(slots)) for slots in first_slots], dtype=np.intp)
        unit = np.repeat(np.arange(len(leaves_of_units)), [len(leaves) for leaves in leaves_of_units])
        counts = np.bincount(unit, n_terms[group], len(leaves_of_units)).astype(np.intp)
        return TermList(
            start=_starts(counts.tolist()),
            slot=(padded[group] + row[:, None])[np.arange(padded.shape[1]) < n_terms[group, None]],
            feature=self._block_features() if kind is Block else np.array(self.slot_features[kind], dtype=np.intp),
        )

    def _block_features(self) -> IntArray:
        return self.n_columns + len(self.derived_features) + np.arange(len(self.slot_features[Block]))


def _ties(leaves: Sequence[Leaf]) -> IntArray:
    """Number the sets of leaves that share parameters; a leaf without a tie is a set of its own."""
    keys = [("tie", leaf.tie) if leaf.tie is not None else ("own", position) for position, leaf in enumerate(leaves)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.intp)


_Levelled = TypeVar("_Levelled", _Unit, _Mixture)


def _by_level(items: list[_Levelled], n_levels: int | None = None) -> tuple[list[_Levelled], IntArray, IntArray]:
    """Sort by level; return the sorted items, the new number of each, and where each level starts."""
    levels = np.array([item.level for item in items], dtype=np.intp)
    order = np.argsort(levels, kind="stable")
    number = np.empty(len(items), dtype=np.intp)
    number[order] = np.arange(len(items))
    counts = np.bincount(levels, minlength=n_levels or 0)
    return [items[index] for index in order], number, _starts(counts.tolist())


def _starts(counts: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

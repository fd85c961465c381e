"""Class posteriors of mixtures given many subsets of the cells of each row, without a pass over each.

In a chain of subsets, each within the next, a component's log density grows by one term per column: that of the column,
or for correlated columns that of the column given those before it. So the work per subset is one addition for each
component, whatever the number of columns, and the average of the components' class tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from safespn.answers.gaussians import Gaussians, chains, gaussians_of
from safespn.answers.votes import normalised
from safespn.class_networks.committee import Member
from safespn.engine import backends
from safespn.engine.threads import in_order, n_threads, single_threaded_blas
from safespn.foundation.distinct import distinct_rows
from safespn.network.leaves.family import LeafFamily
from safespn.network.structure import LeafGroup, Parameters, Structure
from safespn.typing import BoolArray, FloatArray, IntArray

DENSITIES_AT_ONCE = 4_000_000
"""Rows times columns times components whose densities are kept at a time."""
FEWEST_TERMS = 2_000_000
"""Rows times subsets times components that repay loading compiled code, which takes half a second."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Leaves of one column each: their family and parameters, and which component each belongs to."""

    family: LeafFamily
    parameters: FloatArray
    columns: IntArray
    leaf: IntArray
    component: IntArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A class network whose classes are components of their own, one each, or sums over the same components.

    Parameters
    ----------
    log_share : array of shape (n_components,)
        Log probability of each component.
    tables : array of shape (n_components, n_classes)
        Class probabilities of each component.
    columns : tuple of Columns
    gaussians : tuple of (Gaussians, array of shape (n_leaves,), array of shape (n_leaves,))
        Leaves of several columns; for some leaf numbers the components that they belong to.
    n_columns : int
    """

    log_share: FloatArray
    tables: FloatArray
    columns: tuple[Columns, ...]
    gaussians: tuple[tuple[Gaussians, IntArray, IntArray], ...]
    n_columns: int

    @cached_property
    def is_one_per_class(self) -> bool:
        return self.tables.shape[0] == self.tables.shape[1] and bool((self.tables == np.eye(len(self.tables))).all())

    @cached_property
    def correlated(self) -> IntArray:
        """Columns of the Gaussians."""
        return np.concatenate([np.empty(0, dtype=np.intp), *(each.columns for each, _, _ in self.gaussians)])

    def densities(self, cells: FloatArray, n_components: int) -> FloatArray:
        """Log density of each cell in each component, shape (n_rows, n_columns, n_components).

        Zero for missing cells, those of Gaussians, and components beyond those that there are.
        """
        result = np.zeros((len(cells), self.n_columns, n_components))
        for each in self.columns:
            x = cells[:, each.columns]
            with np.errstate(over="ignore"):
                known = each.family.log_density_of_cells(each.parameters, np.nan_to_num(x))
            known[np.isnan(x)] = 0.0
            result[:, each.columns[each.leaf], each.component] = known[:, each.leaf]
        return result


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains of subsets, each within the next, of the same sizes.

    Parameters
    ----------
    orders : array of shape (n_chains, n_known)
        Order in which columns become known.
    sizes : array of shape (n_subsets,)
        How many of them each subset of a chain has.
    subsets : array of shape (n_chains, n_subsets)
        Which subsets these are.
    """

    orders: IntArray
    sizes: IntArray
    subsets: IntArray


def chains_of(subsets: BoolArray, correlated: IntArray, most: int) -> Iterator[Chains]:
    """Cut a list of subsets into chains; at most so many of them, equally many of whose columns are correlated."""
    alike: dict[tuple[object, ...], list[tuple[IntArray, IntArray]]] = {}
    n_known = subsets.sum(axis=1)
    is_correlated = np.isin(np.arange(subsets.shape[1]), correlated)
    for chain in chains(subsets):
        sizes = n_known[chain]
        # Columns that never become known come last and are left out.
        order = np.argsort((~subsets[chain]).sum(axis=0), kind="stable")[: sizes[-1]]
        alike.setdefault((sizes.tobytes(), int(is_correlated[order].sum())), []).append((order, chain))
    for found in alike.values():
        for start in range(0, len(found), most):
            orders, places = zip(*found[start : start + most], strict=True)
            yield Chains(np.array(orders), n_known[places[0]], np.array(places))


class MixturePosteriors:
    """Log class posteriors of a member that is a mixture, given subsets of the cells of rows."""

    def __init__(self, member: Member, mixture: Mixture, n_jobs: int | None) -> None:
        self._member, self._mixture, self._n_jobs = member, mixture, n_jobs

    def __call__(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        """Shape (n_subsets, n_rows, n_classes)."""
        joint = np.empty((len(subsets), len(cells), self._member.n_classes))
        threads = n_threads(len(cells) * len(subsets), self._n_jobs)
        n_pieces = max(threads, -(-cells.size * len(self._mixture.tables) // DENSITIES_AT_ONCE))
        ends = np.linspace(0, len(cells), min(n_pieces, max(len(cells), 1)) + 1).astype(np.intp)
        pieces = [np.arange(*pair) for pair in pairwise(ends.tolist())]
        pays = joint[:, :, 0].size * len(self._mixture.tables) >= FEWEST_TERMS or backends.is_compiled()
        is_compiled = pays and backends.may_compile()

        def run(rows: IntArray) -> None:
            for of_pattern, missing in self._patterns(cells[rows]):
                places = rows[of_pattern]
                joint[:, places] = self._log_joint(cells[places], subsets & ~missing, is_compiled)

        with single_threaded_blas():
            deque(in_order(run, threads, pieces), maxlen=0)
        # What no component makes possible, and digits lost to small numbers, are left to a pass.
        has_sums = is_compiled and not self._mixture.is_one_per_class
        doubtful = np.asarray(~np.isfinite(joint).all(axis=2) if has_sums else ~(joint.max(axis=2) > -np.inf))
        result = normalised(np.where(doubtful[:, :, None], 0.0, joint) / self._member.temperature)
        if doubtful.any():
            subset, row = np.nonzero(doubtful)
            known = np.where(subsets[subset], cells[row], np.nan)
            result[doubtful] = self._member.evaluate(known, self._n_jobs)[1]
        return result

    def _patterns(self, cells: FloatArray) -> Iterator[tuple[IntArray, BoolArray]]:
        """Rows that have the same cells of Gaussians, and which columns of these they miss, shape (n_columns,)."""
        missing = np.zeros(cells.shape, dtype=np.bool_)
        columns = self._mixture.correlated
        missing[:, columns] = np.isnan(cells[:, columns])
        patterns, number = distinct_rows(missing)
        for at, pattern in enumerate(patterns):
            yield np.flatnonzero(number == at), pattern

    def _log_joint(self, cells: FloatArray, subsets: BoolArray, is_compiled: bool) -> FloatArray:
        """Log probability of each class with the cells of each subset, but for a constant per subset and row."""
        if is_compiled and not self._mixture.is_one_per_class:
            return self._by_kernel(cells, subsets)
        mixture = self._mixture
        n_rows, n_components = len(cells), len(mixture.tables)
        densities = mixture.densities(cells, n_components)
        result = np.empty((len(subsets), n_rows, mixture.tables.shape[1]))
        for group in self._chains(subsets, n_rows):
            # Axes: chains, rows, columns in their order, components.
            added = densities[:, group.orders].swapaxes(0, 1)
            for gaussians, leaf, component in mixture.gaussians:
                mine, orders = _within(group.orders, gaussians.columns)
                known = gaussians.conditional_densities(cells[:, gaussians.columns], orders)
                if mine.all() and len(component) == n_components:
                    added[..., component] = known[..., leaf]
                    continue
                part = added.swapaxes(1, 2)[mine]
                part[..., component] = known.swapaxes(1, 2).reshape(-1, *known.shape[1:2], known.shape[3])[..., leaf]
                added.swapaxes(1, 2)[mine] = part
            sums = np.zeros((len(group.orders), n_rows, group.orders.shape[1] + 1, n_components))
            np.cumsum(added, axis=2, out=sums[:, :, 1:])
            weights = (sums[:, :, group.sizes] + mixture.log_share).swapaxes(1, 2)
            found = weights if mixture.is_one_per_class else _log_product(weights, mixture.tables)
            result[group.subsets.ravel()] = found.reshape(-1, *found.shape[2:])
        return result

    def _chains(self, subsets: BoolArray, n_rows: int) -> Iterator[Chains]:
        mixture = self._mixture
        most = max(1, DENSITIES_AT_ONCE // max(n_rows * mixture.n_columns * len(mixture.tables), 1))
        return chains_of(subsets, mixture.correlated, most)

    def _by_kernel(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        from safespn.answers.mixtures_kernel import CONSTANTS, LENGTH, add_chains

        mixture = self._mixture
        # The kernel adds so many components at a time.
        n_components = -(-len(mixture.tables) // LENGTH) * LENGTH
        densities = mixture.densities(cells, n_components).reshape(-1, n_components)
        log_share, tables = np.full((1, n_components), -np.inf), np.zeros((mixture.tables.shape[1], n_components))
        log_share[0, : len(mixture.tables)], tables[:, : len(mixture.tables)] = mixture.log_share, mixture.tables.T
        result = np.empty((len(subsets), len(cells), len(tables)))
        for group in self._chains(subsets, len(cells)):
            n_chains, sources = len(group.orders), group.orders.copy()
            z, centres = np.zeros((n_chains, len(cells), 0)), np.zeros((0, n_components))
            for gaussians, leaf, component in mixture.gaussians:
                mine, orders = _within(group.orders, gaussians.columns)
                z, of_leaves = gaussians.whitened(cells[:, gaussians.columns], orders)
                centres = np.zeros((orders.size, n_components))
                centres[:, component] = of_leaves.reshape(orders.size, len(gaussians.mean))[:, leaf]
                sources[mine] = np.tile(-1 - np.arange(orders.shape[1]), n_chains)
            found = np.empty((*group.subsets.shape, len(cells), len(tables)))
            add_chains(densities, sources, z, centres, group.sizes, log_share, tables, CONSTANTS, found)
            result[group.subsets.ravel()] = found.reshape(-1, *found.shape[2:])
        return result


def _within(orders: IntArray, columns: IntArray) -> tuple[BoolArray, IntArray]:
    """Where some columns are in each of several orders, and their order there, as places in ``columns``."""
    place = np.full(max(int(orders.max(initial=0)), int(columns.max())) + 1, -1)
    place[columns] = np.arange(len(columns))
    mine = place[orders] >= 0
    return mine, place[orders][mine].reshape(len(orders), -1)


def _log_product(log_weights: FloatArray, tables: FloatArray) -> FloatArray:
    """Log of ``exp(log_weights) @ tables``, where every sum may be small; minus infinity where all weights are zero."""
    result = np.empty((*log_weights.shape[:-1], tables.shape[1]))
    with np.errstate(divide="ignore"):
        log_tables = np.log(tables)
    for k, of_class in enumerate(log_tables.T):
        weights = log_weights + of_class
        top = weights.max(axis=-1)
        finite = np.where(np.isfinite(top), top, 0.0)
        weights -= finite[..., None]
        with np.errstate(divide="ignore"):
            result[..., k] = np.log(np.exp(weights).sum(axis=-1)) + finite
    return result


def mixture_of(member: Member) -> Mixture | None:
    """Find the components of a member, None if it is another kind of network."""
    structure, parameters = member.structure, member.parameters
    gaussians, wiring = gaussians_of(structure, parameters), _components(structure, parameters)
    if member.votes or gaussians is None or wiring is None:
        return None
    units, joint = wiring
    of_component = joint.sum(axis=1)
    number = np.full(structure.n_units, -1)
    number[units] = np.arange(len(units))
    columns, blocks = [], []
    for at, (group, values) in enumerate(zip(structure.groups, parameters.leaves, strict=True)):
        leaf, component = _leaves_of_components(structure, group, number)
        if at in gaussians:
            blocks.append((gaussians[at], leaf, component))
        else:
            columns.append(Columns(group.family, values, group.leaves.columns[:, 0], leaf, component))
    with np.errstate(divide="ignore"):
        mixture = Mixture(
            np.log(of_component),
            joint / of_component[:, None],
            *(tuple(columns), tuple(blocks), structure.n_columns),
        )
    shared = len(blocks) <= 1 and all(each.is_tied for each, _, _ in blocks) and bool((mixture.tables > 0).all())
    return mixture if shared or mixture.is_one_per_class else None


def _components(structure: Structure, parameters: Parameters) -> tuple[IntArray, FloatArray] | None:
    """Units that are components, and their joint probabilities with the classes, shape (n_components, n_classes)."""
    weights = np.exp(parameters.log_weights)
    n_classes = structure.n_root_edges
    n_terms = sum(np.diff(terms.start) for terms in (structure.square, structure.linear, structure.table))
    n_terms = n_terms + np.diff(structure.block.start)
    n_sums = np.diff(structure.child_start)
    joint = np.zeros((structure.n_units, n_classes))
    for code in range(n_classes):
        edge = structure.n_edges - n_classes + code
        unit = structure.edge_unit[edge]
        if not n_sums[unit]:
            joint[unit, code] += weights[edge]
        elif n_sums[unit] == 1 and not n_terms[unit]:
            of_class = structure.child[structure.child_start[unit]]
            edges = slice(*structure.edge_start[of_class : of_class + 2])
            np.add.at(joint[:, code], structure.edge_unit[edges], weights[edge] * weights[edges])
        else:
            return None
    units = np.flatnonzero(joint.any(axis=1))
    return None if n_sums[units].any() else (units, joint[units])


def _leaves_of_components(structure: Structure, group: LeafGroup, number: IntArray) -> tuple[IntArray, IntArray]:
    """Leaves of a group and the components that have them, one pair for each."""
    terms, slots = structure.terms_of(group.kinds[0]), group.slots[0]
    mine = (terms.slot >= slots.start) & (terms.slot < slots.stop)
    return terms.slot[mine] - slots.start, number[terms.unit[mine]]

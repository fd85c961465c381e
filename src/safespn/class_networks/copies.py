"""Networks of all rows, copied per class, and pseudo-data from them as a prior."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from safespn.class_networks.labelled_table import LabelledTable
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.learning.parameters import PseudoDataPrior
from safespn.network.leaves import Categorical, Gaussian, MultivariateGaussian
from safespn.network.nodes import Leaf, Node, Product, Sum, walk
from safespn.network.structure import Parameters, Structure
from safespn.typing import AnyArray, FloatArray


def block_root(table: AnyArray, n_states: Sequence[int], *, block_size: int) -> Node:
    """Describe the simplest network that knows of correlation: blocks of real columns, single leaves for codes.

    Parameters
    ----------
    n_states : sequence of int
        Number of states of each column of codes, 0 for a real column.
    block_size : int
        Most columns of a block; neighbouring columns share one.
    """
    real = [column for column, states in enumerate(n_states) if not states]
    nodes: list[Node] = [Categorical(column, [1 / n] * n) for column, n in enumerate(n_states) if n]
    centre = np.array([_or(np.nanmean, table[:, column], 0.0) for column in real])
    spread = np.array([_or(np.nanvar, table[:, column], 1.0) for column in real])
    for block in np.array_split(np.arange(len(real)), -(-len(real) // block_size)) if real else ():
        columns = [real[at] for at in block]
        if len(columns) == 1:
            nodes.append(Gaussian(columns[0], centre[block[0]], spread[block[0]]))
        else:
            nodes.append(MultivariateGaussian(columns, centre[block], np.diag(spread[block])))
    return nodes[0] if len(nodes) == 1 else Product(nodes)


def independent_columns(table: LabelledTable, columns: Iterable[int]) -> Node:
    """Describe some columns of the whole table as independent."""
    leaves: list[Node] = []
    for column in columns:
        n_states = table.n_states[column]
        if n_states:
            cells = table.cells[:, column]
            known = ~np.isnan(cells)
            counts = np.bincount(cells[known].astype(np.intp), table.weights[known], n_states) + 1
            leaves.append(Categorical(column, (counts / counts.sum()).tolist()))
        else:
            leaves.append(Gaussian(column, table.mean[column], table.variance[column]))
    return leaves[0] if len(leaves) == 1 else Product(leaves)


def _or(statistic: Callable[[FloatArray], float], values: FloatArray, otherwise: float) -> float:
    """A statistic of the observed values, or a substitute where it is zero or there are none."""
    return (float(statistic(values)) if not np.isnan(values).all() else 0.0) or otherwise


def copies(root: Node, n_classes: int, *, tied: bool) -> Node:
    """Put one copy of a network per class under a root sum with equal weights.

    Parameters
    ----------
    tied : bool
        Let the copies of a multivariate Gaussian leaf share their covariance.
    """
    number = {id(node): position for position, node in enumerate(walk(root))}

    def tie_of(leaf: Leaf) -> int | None:
        return number[id(leaf)] if tied and len(leaf.columns) > 1 else None

    return Sum([copy_network(root, tie_of) for _ in range(n_classes)], [1 / n_classes] * n_classes)


def copy_network(root: Node, tie_of: Callable[[Leaf], int | None]) -> Node:
    """Copy a network; ``tie_of`` says which leaves of the copy share parameters."""
    built: dict[int, Node] = {}
    for node in walk(root):
        if isinstance(node, Leaf):
            built[id(node)] = node.family.node(node.columns, node.parameters, tie_of(node))
        elif isinstance(node, Sum):
            built[id(node)] = Sum([built[id(child)] for child in node.children], node.weights)
        else:
            built[id(node)] = Product([built[id(child)] for child in node.children])
    return built[id(root)]


def pseudo_data_prior(
    structure: Structure, parameters: Parameters, table: AnyArray, rows_per_class: float, weights: FloatArray | None
) -> PseudoDataPrior:
    """Make a prior of all rows: as if each class had seen some more rows, distributed like those of the table.

    The root's own weights, the class proportions, are left alone.
    """
    n_classes = structure.n_root_edges
    everywhere = Evidence(np.zeros((len(table), n_classes)), tilt=0.0)
    statistics = passes.statistics(bind(structure, parameters), table, everywhere, weights)
    share = rows_per_class * n_classes / (len(table) if weights is None else float(weights.sum()))
    edge_counts = statistics.edge_flow * share
    edge_counts[-n_classes:] = 0.0
    leaf_counts = tuple(
        group.family.flow_of(statistics.of_group(structure, index)) * share
        for index, group in enumerate(structure.groups)
    )
    return PseudoDataPrior(parameters, edge_counts, leaf_counts)

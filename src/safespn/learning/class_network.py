"""Where class networks start: one network of all rows, copied per class, and rows imagined from it as a prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.learning.parameters import Anchor
from safespn.network.leaves import Categorical, Gaussian, MultivariateGaussian
from safespn.network.nodes import Leaf, Node, Product, Sum, walk
from safespn.network.structure import Parameters, Structure
from safespn.typing import AnyArray, FloatArray


def block_root(table: AnyArray, n_states: Sequence[int]) -> Node:
    """Describe the simplest network that knows of correlation: one block of all real columns, single leaves for codes.

    Parameters
    ----------
    n_states : sequence of int
        Number of states of each column of codes, 0 for a real column.
    """
    real = [column for column, states in enumerate(n_states) if not states]
    nodes: list[Node] = [Categorical(column, [1 / n] * n) for column, n in enumerate(n_states) if n]
    centre = np.array([_or(np.nanmean, table[:, column], 0.0) for column in real])
    spread = np.array([_or(np.nanvar, table[:, column], 1.0) for column in real])
    if len(real) == 1:
        nodes.append(Gaussian(real[0], centre[0], spread[0]))
    elif real:
        nodes.append(MultivariateGaussian(real, centre, np.diag(spread)))
    return nodes[0] if len(nodes) == 1 else Product(nodes)


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

    def copy() -> Node:
        built: dict[int, Node] = {}
        for node in walk(root):
            if isinstance(node, Leaf):
                tie = number[id(node)] if tied and len(node.columns) > 1 else None
                built[id(node)] = node.family.node(node.columns, node.parameters, tie)
            elif isinstance(node, Sum):
                built[id(node)] = Sum([built[id(child)] for child in node.children], node.weights)
            else:
                built[id(node)] = Product([built[id(child)] for child in node.children])
        return built[id(root)]

    return Sum([copy() for _ in range(n_classes)], [1 / n_classes] * n_classes)


def imagined_rows(
    structure: Structure, parameters: Parameters, table: AnyArray, rows_per_class: float, weights: FloatArray | None
) -> Anchor:
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
    return Anchor(parameters, edge_counts, leaf_counts)

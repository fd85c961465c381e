"""Where the nodes of a network go in a picture: what is drawn, what is gathered or folded, and at which place."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

from safespn.network.nodes import Leaf, Node, Sum, walk

GAP_BETWEEN_FAMILIES = 0.4
"""Extra room between neighbours with different parents, in rows."""


@dataclass(frozen=True, eq=False)
class Mark:
    """One symbol of the picture: a node, or several leaves of one family gathered into one."""

    nodes: tuple[Node, ...]
    depth: int
    """Number of edges on the longest drawn path from the root."""
    row: float
    """Position across the depth; neighbours are at least one apart."""
    n_hidden: int
    """Number of nodes below that are not drawn because the mark is folded."""


@dataclass(frozen=True, eq=False)
class Link:
    """An edge of the picture, between two marks given by their numbers."""

    parent: int
    child: int
    weight: float | None
    """Weight of a sum's edge, added up over gathered leaves; None below a product."""
    is_extra: bool
    """True for all but one of the edges that lead to a shared node."""


@dataclass(frozen=True, eq=False)
class Layout:
    """A picture of a network: its marks, parents before children, and its links."""

    marks: tuple[Mark, ...]
    links: tuple[Link, ...]
    is_gathered: bool
    """Whether leaves of one family below one parent share a mark."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Children of one parent that share a mark; known by its first node."""

    nodes: tuple[Node, ...]
    weight: float | None

    @property
    def key(self) -> int:
        return id(self.nodes[0])


def lay_out(root: Node, max_nodes: int) -> Layout:
    """Place the nodes below ``root`` as a tidy tree of at most ``max_nodes`` marks.

    A network with more nodes than that has the leaves of each family below one parent gathered into one mark. If that
    is not enough, parts stay folded, those that the least probability mass flows into first; the root never does.
    """
    order = walk(root)
    is_gathered = len(order) > max_nodes
    groups = _groups(order, is_gathered)
    expanded = _expand(root, order, groups, max_nodes)
    parents_first = [node for node in reversed(order) if id(node) in expanded]
    depth, tree_parent = _depths(root, parents_first, groups)

    first_nodes: dict[int, tuple[Node, ...]] = {id(root): (root,)}
    tree_children: dict[int, list[int]] = {}
    for node in parents_first:
        for group in groups[id(node)]:
            first_nodes[group.key] = group.nodes
            if tree_parent[group.key] == id(node):
                tree_children.setdefault(id(node), []).append(group.key)
    keys, rows = _rows(id(root), tree_children, tree_parent)

    number = {key: position for position, key in enumerate(keys)}
    marks = tuple(
        Mark(
            first_nodes[key],
            depth[key],
            rows[key],
            n_hidden=0 if key in expanded else len(walk(first_nodes[key][0])) - 1,
        )
        for key in keys
    )
    links = tuple(
        Link(number[id(node)], number[group.key], group.weight, is_extra=tree_parent[group.key] != id(node))
        for node in parents_first
        for group in groups[id(node)]
    )
    return Layout(marks, links, is_gathered)


def _groups(order: list[Node], is_gathered: bool) -> dict[int, list[_Group]]:
    """Group the children of every node into marks; a shared node keeps its own, so that it is drawn once."""
    n_parents: dict[int, int] = {}
    for node in order:
        for key in {id(child) for child in node.children}:
            n_parents[key] = n_parents.get(key, 0) + 1
    result: dict[int, list[_Group]] = {}
    for node in order:
        members: dict[object, dict[int, Node]] = {}
        weights: dict[object, float] = {}
        for position, child in enumerate(node.children):
            together = is_gathered and isinstance(child, Leaf) and n_parents[id(child)] == 1
            label: object = type(child) if together else id(child)
            members.setdefault(label, {})[id(child)] = child
            if isinstance(node, Sum):
                weights[label] = weights.get(label, 0.0) + node.weights[position]
        result[id(node)] = [_Group(tuple(nodes.values()), weights.get(label)) for label, nodes in members.items()]
    return result


def _expand(root: Node, order: list[Node], groups: dict[int, list[_Group]], max_nodes: int) -> set[int]:
    """Choose the nodes whose children are drawn; leaves, which have none, count as expanded, too."""
    mass = {id(node): 0.0 for node in order}
    mass[id(root)] = 1.0
    for node in reversed(order):
        for position, child in enumerate(node.children):
            mass[id(child)] += mass[id(node)] * (node.weights[position] if isinstance(node, Sum) else 1.0)
    turn = count()
    waiting = [(-1.0, next(turn), root)]
    expanded: set[int] = set()
    drawn = {id(root)}
    while waiting:
        _, _, node = heapq.heappop(waiting)
        new = [group for group in groups[id(node)] if group.key not in drawn]
        if node is not root and len(drawn) + len(new) > max_nodes:
            continue
        expanded.add(id(node))
        drawn.update(group.key for group in new)
        for group in new:
            heapq.heappush(waiting, (-mass[group.key], next(turn), group.nodes[0]))
    return expanded


def _depths(
    root: Node, parents_first: list[Node], groups: dict[int, list[_Group]]
) -> tuple[dict[int, int], dict[int, int]]:
    """Longest paths from the root to the drawn nodes, and for each the parent that such a path comes from."""
    depth, tree_parent = {id(root): 0}, {id(root): -1}
    for node in parents_first:
        for group in groups[id(node)]:
            if depth[id(node)] + 1 > depth.get(group.key, -1):
                depth[group.key] = depth[id(node)] + 1
                tree_parent[group.key] = id(node)
    return depth, tree_parent


def _rows(
    root: int, tree_children: dict[int, list[int]], tree_parent: dict[int, int]
) -> tuple[list[int], dict[int, float]]:
    """Give the ends of the tree one row after another, and every parent the middle of its children."""
    keys: list[int] = []
    stack = [root]
    while stack:
        keys.append(stack.pop())
        stack.extend(reversed(tree_children.get(keys[-1], [])))
    rows: dict[int, float] = {}
    row, last_parent = 0.0, None
    for key in keys:
        if key not in tree_children:
            if last_parent is not None:
                row += 1.0 if tree_parent[key] == last_parent else 1.0 + GAP_BETWEEN_FAMILIES
            rows[key], last_parent = row, tree_parent[key]
    for key in reversed(keys):
        if key in tree_children:
            rows[key] = (rows[tree_children[key][0]] + rows[tree_children[key][-1]]) / 2
    return keys, rows

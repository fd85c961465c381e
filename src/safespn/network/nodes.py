"""What a sum-product network is made of: immutable nodes that describe, and do not compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from safespn.typing import FloatArray


class Node:
    """A node of a sum-product network. Nodes compare by identity: one node may have many parents."""

    children: tuple[Node, ...]

    def __str__(self) -> str:
        return format_network(self)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sum(Node):
    """A mixture of its children, which all model the same columns.

    Parameters
    ----------
    children : sequence of nodes
    weights : sequence of floats
        One weight per child, non-negative, adding up to one.
    """

    children: tuple[Node, ...]
    weights: tuple[float, ...]

    def __init__(self, children: Sequence[Node], weights: Sequence[float]) -> None:
        object.__setattr__(self, "children", tuple(children))
        object.__setattr__(self, "weights", tuple(float(weight) for weight in weights))

    def __repr__(self) -> str:
        return f"Sum({len(self.children)} children)"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(Node):
    """Independent parts: its children model disjoint groups of columns."""

    children: tuple[Node, ...]

    def __init__(self, children: Sequence[Node]) -> None:
        object.__setattr__(self, "children", tuple(children))

    def __repr__(self) -> str:
        return f"Product({len(self.children)} children)"


class Leaf(Node):
    """A distribution of one column, or of several columns together.

    An instance describes one leaf. The class itself speaks for all leaves of its family at once, as arrays; see
    :class:`safespn.network.leaves.family.LeafFamily`.
    """

    children = ()
    columns: tuple[int, ...]
    family: ClassVar[Any]
    tie: int | None = None
    """Leaves with equal numbers share parameters, where their family knows how."""

    @property
    def parameters(self) -> FloatArray:
        """The leaf's parameters as one flat array, in the order that its family uses."""
        raise NotImplementedError


class UnivariateLeaf(Leaf):
    """A distribution of one column."""

    column: int

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.column,)


def check_column(kind: str, column: int) -> int:
    """Return ``column`` as an int, or raise a ValueError in the name of a leaf of this ``kind``."""
    if isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)) or column < 0:
        raise ValueError(f"{kind}: the column must be a non-negative integer, got {column!r}")
    return int(column)


def walk(root: Node) -> list[Node]:
    """List every node below ``root`` once, children before parents.

    Raises
    ------
    ValueError
        If a node is its own descendant.
    """
    order: list[Node] = []
    state: dict[int, bool] = {}  # False while a node's descendants are being visited, True after
    stack: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        state[id(node)] = False
        stack.append((node, iter(node.children)))

    enter(root)
    while stack:
        node, remaining = stack[-1]
        child = next(remaining, None)
        if child is None:
            stack.pop()
            state[id(node)] = True
            order.append(node)
        elif not isinstance(child, Node):
            raise ValueError(f"{node!r} has a child that is not a node: {child!r}")
        elif id(child) not in state:
            if child.children:
                enter(child)
            else:
                state[id(child)] = True
                order.append(child)
        elif not state[id(child)]:
            raise ValueError(f"{child!r} is its own descendant: a network may not contain a cycle")
    return order


def format_network(root: Node, max_lines: int = 60) -> str:
    """Draw the network below ``root`` as an indented text, each shared node in full only once."""
    lines: list[str] = []
    drawn: set[int] = set()
    stack: list[tuple[Node, int, str]] = [(root, 0, "")]
    while stack and len(lines) < max_lines:
        node, depth, prefix = stack.pop()
        shared = id(node) in drawn and bool(node.children)
        lines.append(f"{'  ' * depth}{prefix}{node!r}{' (drawn above)' if shared else ''}")
        if shared:
            continue
        drawn.add(id(node))
        weights = node.weights if isinstance(node, Sum) else ()
        labels = [f"{weight:.3g} × " for weight in weights] or [""] * len(node.children)
        stack.extend(
            (child, depth + 1, label) for child, label in reversed(list(zip(node.children, labels, strict=False)))
        )
    if stack:
        lines.append("...")
    return "\n".join(lines)

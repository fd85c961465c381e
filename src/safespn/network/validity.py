"""Checks that a description is a valid network: acyclic, complete, decomposable, with proper weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from safespn.network.columns import Domain
from safespn.network.nodes import Leaf, Node, Product, Sum, walk

WEIGHT_TOLERANCE = 1e-8


def check_network(root: Node) -> tuple[list[Node], tuple[Domain | None, ...]]:
    """Check the network below ``root``.

    Returns
    -------
    order : list of nodes
        Every node once, children before parents.
    domains : tuple
        The domain of each column, None for a column that no leaf models.

    Raises
    ------
    ValueError
        If the network is not valid; the message names the node by its path from the root.
    """
    if not isinstance(root, Node):
        raise ValueError(f"expected the root node of a network, got {type(root).__name__}")
    order = walk(root)
    scopes: dict[int, frozenset[int]] = {}
    # Equal scopes are one object: wide networks have thousands of them, each with thousands of columns.
    distinct: dict[frozenset[int], frozenset[int]] = {}
    domains: dict[int, tuple[Domain, Leaf]] = {}
    ties: dict[int, Leaf] = {}
    for node in order:
        if isinstance(node, Leaf):
            scope = frozenset(node.columns)
            scopes[id(node)] = distinct.setdefault(scope, scope)
            _check_domain(root, node, domains)
            _check_tie(root, node, ties)
            continue
        if not isinstance(node, (Sum, Product)):
            raise ValueError(f"{name_of(root, node)} is neither a sum, a product nor a leaf")
        if not node.children:
            raise ValueError(f"{name_of(root, node)} has no children")
        if isinstance(node, Sum):
            _check_weights(root, node)
            scopes[id(node)] = _complete_scope(root, node, scopes)
        else:
            scope = _disjoint_scope(root, node, scopes)
            scopes[id(node)] = distinct.setdefault(scope, scope)
    n_columns = max(domains) + 1
    return order, tuple(domains[column][0] if column in domains else None for column in range(n_columns))


def name_of(root: Node, node: Node) -> str:
    """Name a node by its kind and a path from the root, such as ``Sum at root/0/2``."""
    paths: dict[int, str] = {id(root): "root"}
    pending = [root]
    while pending and id(node) not in paths:
        parent = pending.pop()
        for position, child in enumerate(parent.children):
            if id(child) not in paths:
                paths[id(child)] = f"{paths[id(parent)]}/{position}"
                pending.append(child)
    return f"{type(node).__name__} at {paths[id(node)]}"


def format_columns(columns: Sequence[int] | frozenset[int], at_most: int = 8) -> str:
    """List columns for a message, the first few of many."""
    ordered = sorted(columns)
    shown = ", ".join(str(column) for column in ordered[:at_most])
    return f"{shown}, ... ({len(ordered)} in all)" if len(ordered) > at_most else shown


def _check_weights(root: Node, node: Sum) -> None:
    if len(node.weights) != len(node.children):
        raise ValueError(
            f"{name_of(root, node)} has {len(node.children)} children but {len(node.weights)} weights; "
            "expected one weight for each child"
        )
    for position, weight in enumerate(node.weights):
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(
                f"{name_of(root, node)}: weight {position} is {weight}; expected a finite number that is not negative"
            )
    total = math.fsum(node.weights)
    if abs(total - 1) > WEIGHT_TOLERANCE:
        raise ValueError(f"{name_of(root, node)}: the weights add up to {total:.10g}; expected 1")


def _complete_scope(root: Node, node: Sum, scopes: dict[int, frozenset[int]]) -> frozenset[int]:
    first = scopes[id(node.children[0])]
    for position, child in enumerate(node.children):
        scope = scopes[id(child)]
        if scope is not first and scope != first:
            raise ValueError(
                f"{name_of(root, node)}: child 0 models columns {format_columns(first)} but child {position} models "
                f"columns {format_columns(scope)}; the children of a sum must model the same columns"
            )
    return first


def _disjoint_scope(root: Node, node: Product, scopes: dict[int, frozenset[int]]) -> frozenset[int]:
    of_children = [scopes[id(child)] for child in node.children]
    whole = frozenset().union(*of_children)
    if len(whole) == sum(map(len, of_children)):
        return whole
    owner: dict[int, int] = {}
    for position, child in enumerate(node.children):
        for column in scopes[id(child)]:
            if column in owner:
                raise ValueError(
                    f"{name_of(root, node)}: children {owner[column]} and {position} both model column {column}; "
                    "the children of a product must model different columns"
                )
            owner[column] = position
    return whole


def _check_domain(root: Node, leaf: Leaf, domains: dict[int, tuple[Domain, Leaf]]) -> None:
    for column, domain in zip(leaf.columns, leaf.family.domains(leaf.parameters), strict=True):
        known, other = domains.setdefault(column, (domain, leaf))
        if known is not domain and known != domain:
            raise ValueError(
                f"{name_of(root, leaf)} and {name_of(root, other)} disagree about column {column}: "
                f"{domain.expected}, against {known.expected}"
            )


def _check_tie(root: Node, leaf: Leaf, ties: dict[int, Leaf]) -> None:
    if leaf.tie is None:
        return
    first = ties.setdefault(leaf.tie, leaf)
    n_columns = len(leaf.columns)
    if first.columns != leaf.columns or (first.parameters[n_columns:] != leaf.parameters[n_columns:]).any():
        raise ValueError(
            f"{name_of(root, leaf)} and {name_of(root, first)} have tie {leaf.tie} but differ in columns or covariance"
        )

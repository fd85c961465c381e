"""What is written in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from safespn.network.nodes import Leaf, Node, UnivariateLeaf, walk
from safespn.plotting.layout import Mark

LONGEST_LIST = 48
"""Letters of a list of columns, beyond which it ends in an ellipsis."""
LONGEST_VALUES = 4
"""Numbers of a leaf's parameter that are written out."""


def mark_label(mark: Mark, feature_names: Sequence[str] | None, *, with_parameters: bool) -> str:
    """Name the family and the columns of leaves, or what a folded node stands for; empty for other nodes."""
    node = mark.nodes[0]
    if not isinstance(node, Leaf) and not mark.n_hidden:
        return ""
    columns = columns_of(mark.nodes)
    if feature_names is None:
        listed = f"column{'s' if len(columns) > 1 else ''} {_shortened(_ranges(columns))}"
    else:
        listed = _shortened([str(feature_names[column]) for column in columns])
    if mark.n_hidden:
        return f"… {mark.n_hidden} nodes: {listed}"
    if len(mark.nodes) > 1:
        return f"{len(mark.nodes)} {type(node).__name__}: {listed}"
    parameters = _parameters(node) if with_parameters and isinstance(node, UnivariateLeaf) else ""
    return f"{type(node).__name__}: {listed}{f' ({parameters})' if parameters else ''}"


def weight_label(weight: float) -> str:
    """Write a weight with two digits."""
    return f"{weight:.2f}" if 0.01 <= weight < 1.0 else f"{weight:.2g}"


def columns_of(nodes: Sequence[Node]) -> list[int]:
    """List the columns that the leaves below some nodes model, in increasing order."""
    leaves = (leaf for node in nodes for leaf in walk(node) if isinstance(leaf, Leaf))
    return sorted({column for leaf in leaves for column in leaf.columns})


def _ranges(columns: Sequence[int]) -> list[str]:
    """Write increasing numbers as ranges: 0, 2–5, 7."""
    runs: list[list[int]] = []
    for column in columns:
        if runs and column == runs[-1][-1] + 1:
            runs[-1].append(column)
        else:
            runs.append([column])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(column) for column in run]
    return parts


def _shortened(parts: Sequence[str]) -> str:
    """Join as many parts as fit, at least one."""
    text = parts[0] if len(parts[0]) <= LONGEST_LIST else f"{parts[0][: LONGEST_LIST - 1]}…"
    for part in parts[1:]:
        if len(text) + len(part) + 2 > LONGEST_LIST:
            return f"{text}, …"
        text += f", {part}"
    return text


def _parameters(leaf: Leaf) -> str:
    """Write a leaf's parameters, each under the name that its class gives it."""
    if not is_dataclass(leaf):
        return ""
    parts = []
    for field in fields(leaf):
        value = getattr(leaf, field.name)
        if field.name in ("column", "columns", "tie") or value is None:
            continue
        if isinstance(value, (int, float)):
            parts.append(f"{field.name} {value:.3g}")
        elif isinstance(value, (tuple, list)) and all(isinstance(number, (int, float)) for number in value):
            numbers = ", ".join(f"{number:.2g}" for number in value[:LONGEST_VALUES])
            parts.append(f"{field.name} {numbers}{', …' if len(value) > LONGEST_VALUES else ''}")
    return ", ".join(parts)

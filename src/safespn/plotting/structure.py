"""A picture of a network's structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from safespn.network.leaves import LEAF_TYPES
from safespn.network.nodes import Leaf, Node, Sum
from safespn.plotting.labels import columns_of, mark_label, weight_label
from safespn.plotting.layout import Layout, Link, lay_out
from safespn.plotting.library import COLOURS, require_matplotlib
from safespn.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from safespn.spn import SPN

INK, NOTE, LINE = "0.2", "0.4", "0.6"
TEXT_SIZE, SMALLEST_TEXT_SIZE = 9.0, 4.0
"""Points; where only smaller letters would fit there are none, and leaves are coloured squares."""
SYMBOL_SIZE = 14.0
"""Diameter of sums and products in points."""
ROW_INCHES, LEVEL_INCHES, SMALLEST_LEVEL_INCHES = 0.28, 1.0, 0.6
MARGIN_INCHES, TITLE_INCHES, LEGEND_INCHES = 0.25, 0.3, 0.4
LARGEST_FIGURE_INCHES = 100.0


def plot_structure(
    network: SPN | Node, ax: Axes | None = None, *, feature_names: Sequence[str] | None = None, max_nodes: int = 80
) -> Axes:
    """Draw a network as a tree that grows from the root at the left to the leaves at the right.

    Sums are circles with a plus, products circles with a cross, leaves boxes coloured by family. Edges of sums are as
    wide as their weights, which are written on them. A node with several parents is drawn once, and the edges from its
    other parents are thin dashed lines.

    Parameters
    ----------
    network : SPN or Node
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of fitting size.
    feature_names : sequence of str, optional
        Name of each column.
    max_nodes : int
        Number of symbols that make a readable picture. In a larger network the leaves of one family below one parent
        share a box, and if that is not enough, parts stay folded, the least probable first.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there are fewer names than columns, or ``max_nodes`` is not positive.

    Examples
    --------
    >>> from safespn import Categorical, Gaussian, Product, Sum
    >>> from safespn.plotting import plot_structure
    >>> network = Sum([Product([Gaussian(0, 0, 1), Categorical(1, [0.9, 0.1])]),
    ...                Product([Gaussian(0, 3, 1), Categorical(1, [0.2, 0.8])])], weights=[0.7, 0.3])
    >>> ax = plot_structure(network, feature_names=["height", "smoker"])
    >>> ax.figure.savefig("network.png", bbox_inches="tight")  # doctest: +SKIP
    """
    require_matplotlib()
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be positive, got {max_nodes}")
    root = network if isinstance(network, Node) else network.root
    layout = lay_out(root, max_nodes)
    if feature_names is not None:
        n_columns = 1 + max(columns_of([root]))
        if len(feature_names) < n_columns:
            raise ValueError(f"expected a name for each of {n_columns} columns, got {len(feature_names)} feature names")
    labels = [mark_label(mark, feature_names, with_parameters=not layout.is_gathered) for mark in layout.marks]
    scale = _Scale(layout, labels, ax)
    _draw_links(layout, scale)
    _draw_marks(layout, labels, scale)
    _draw_legend(layout, scale)
    return scale.ax


class _Scale:
    """The axes, x for a mark's depth and y for its row, and the sizes at which all labels fit into them."""

    def __init__(self, layout: Layout, labels: Sequence[str], ax: Axes | None) -> None:
        depth = np.array([mark.depth for mark in layout.marks], dtype=float)
        width = np.array([_text_inches(label) for label in labels])
        rows = [mark.row for mark in layout.marks]
        n_rows = max(rows) - min(rows) + 1
        if ax is None:
            ax = _new_axes(2 * MARGIN_INCHES + float((LEVEL_INCHES * depth + width).max()), ROW_INCHES * n_rows)
        self.ax = ax
        extent, dots_per_inch = ax.get_window_extent(), ax.figure.dpi
        room = max(extent.width / dots_per_inch - 2 * MARGIN_INCHES, MARGIN_INCHES)
        row_points = 72 * extent.height / dots_per_inch / n_rows
        written = width > 0
        fitting = (room - SMALLEST_LEVEL_INCHES * depth[written]) / width[written]
        self.text_size = TEXT_SIZE * min(1.0, 0.56 * row_points / TEXT_SIZE, *fitting)
        self.has_text = self.text_size >= SMALLEST_TEXT_SIZE
        self.symbol_size = min(SYMBOL_SIZE, 0.9 * row_points)
        width *= self.text_size / TEXT_SIZE if self.has_text else 0.0
        level = float(((room - width) / np.maximum(depth, 1.0)).min())
        ax.set_axis_off()
        ax.set_aspect("auto")
        ax.set_xlim(-MARGIN_INCHES / level, (room + MARGIN_INCHES) / level)
        ax.set_ylim(max(rows) + 0.5, min(rows) - 0.5)


def _text_inches(label: str) -> float:
    """Width of a label's box at full size; zero if there is none."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not label:
        return 0.0
    points = text_to_path.get_text_width_height_descent(label, FontProperties(size=TEXT_SIZE), ismath=False)[0]
    return float(points + SYMBOL_SIZE) / 72


def _new_axes(width: float, height: float) -> Axes:
    """Open a figure with room for the tree, given in inches, a title and a legend."""
    from matplotlib import pyplot

    height = min(height, LARGEST_FIGURE_INCHES)
    total = TITLE_INCHES + height + LEGEND_INCHES
    figure = pyplot.figure(figsize=(min(max(width, 4.0), LARGEST_FIGURE_INCHES), total))
    return figure.add_axes((0.0, LEGEND_INCHES / total, 1.0, height / total))


def _curve(layout: Layout, link: Link, along: FloatArray) -> FloatArray:
    """Points of a link, from 0 at the parent to 1 at the child; shape (n, 2). It leaves and arrives level."""
    parent, child = layout.marks[link.parent], layout.marks[link.child]
    x = parent.depth + (child.depth - parent.depth) * along
    y = parent.row + (child.row - parent.row) * along**2 * (3 - 2 * along)
    if link.is_extra and child.depth > parent.depth + 1:
        y -= 0.45 * np.sin(np.pi * along)  # bent, or it might run along the links of a straight chain
    return np.column_stack([x, y])


def _draw_links(layout: Layout, scale: _Scale) -> None:
    from matplotlib.collections import LineCollection

    along = np.linspace(0.0, 1.0, 33)
    for is_extra in (False, True):
        links = [link for link in layout.links if link.is_extra == is_extra]
        lines = LineCollection(
            [_curve(layout, link, along) for link in links],
            linewidths=[0.7 if is_extra or link.weight is None else 0.5 + 4.0 * link.weight for link in links],
            linestyles="dashed" if is_extra else "solid",
            colors=LINE,
            capstyle="butt",
            label="extra edges" if is_extra else "edges",
            zorder=1,
        )
        scale.ax.add_collection(lines, autolim=False)
        if scale.has_text:
            for link in links:
                _write_weight(layout, link, scale)


def _write_weight(layout: Layout, link: Link, scale: _Scale) -> None:
    if link.weight is None:
        return
    # Near the child, where siblings are apart; near the parent if another edge leads to the child, too.
    n_levels = layout.marks[link.child].depth - layout.marks[link.parent].depth
    place = np.array([0.3 / n_levels if link.is_extra else 0.68])
    x, y = _curve(layout, link, place)[0]
    scale.ax.text(
        x,
        y,
        weight_label(link.weight),
        size=0.85 * scale.text_size,
        color=INK,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        zorder=2,
    )


def _draw_marks(layout: Layout, labels: Sequence[str], scale: _Scale) -> None:
    inner = [mark for mark in layout.marks if not isinstance(mark.nodes[0], Leaf)]
    for name, symbol in (("sum", "+"), ("product", "x")):
        places = np.array([(m.depth, m.row) for m in inner if isinstance(m.nodes[0], Sum) == (name == "sum")])
        x, y = places.reshape(-1, 2).T
        area = scale.symbol_size**2
        scale.ax.scatter(
            x, y, area, marker="o", facecolor="white", edgecolor=INK, linewidth=1.0, zorder=3, clip_on=False, label=name
        )
        scale.ax.scatter(x, y, 0.2 * area, marker=symbol, color=INK, linewidth=1.2, zorder=4, clip_on=False)
    for mark, label in zip(layout.marks, labels, strict=True):
        if not label:
            continue
        is_leaf = isinstance(mark.nodes[0], Leaf)
        colour = _colour(mark.nodes[0])
        if scale.has_text:
            scale.ax.annotate(
                label,
                (mark.depth, mark.row),
                xytext=(0.3 * scale.text_size if is_leaf else 0.5 * scale.symbol_size + 3, 0),
                textcoords="offset points",
                size=scale.text_size,
                color=INK if is_leaf else NOTE,
                va="center",
                parse_math=False,
                bbox={"boxstyle": "round,pad=0.25", "facecolor": _tint(colour), "edgecolor": colour, "linewidth": 0.8}
                if is_leaf
                else None,
                zorder=3,
            )
        elif is_leaf:
            size = 0.5 * scale.symbol_size**2
            name = type(mark.nodes[0]).__name__
            scale.ax.scatter(mark.depth, mark.row, size, marker="s", color=colour, zorder=3, clip_on=False, label=name)


def _draw_legend(layout: Layout, scale: _Scale) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: dict[str, Artist | tuple[Artist, ...]] = {}
    for name, symbol in (("sum", "+"), ("product", "x")):
        circle = Line2D([], [], ls="", marker="o", ms=10, markerfacecolor="white", markeredgecolor=INK)
        handles[name] = (circle, Line2D([], [], ls="", marker=symbol, ms=5, markeredgecolor=INK, markeredgewidth=1.2))
    kinds = {type(mark.nodes[0]): _colour(mark.nodes[0]) for mark in layout.marks if isinstance(mark.nodes[0], Leaf)}
    for kind in sorted(kinds, key=_place_of):
        handles[kind.__name__] = Patch(facecolor=_tint(kinds[kind]), edgecolor=kinds[kind])
    scale.ax.legend(
        list(handles.values()),
        list(handles),
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=len(handles),
        frameon=False,
        fontsize=TEXT_SIZE,
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.4,
    )


def _place_of(kind: type[Node]) -> int:
    return LEAF_TYPES.index(kind) if kind in LEAF_TYPES else len(LEAF_TYPES)


def _colour(node: Node) -> str:
    return COLOURS[_place_of(type(node)) % len(COLOURS)]


def _tint(colour: str) -> tuple[float, float, float]:
    """Mix a colour with white, so that text on it is readable."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - 0.18 * (1 - part) for part in to_rgb(colour))
    return red, green, blue

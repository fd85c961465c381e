"""Pictures of explanations: bars for one row, a swarm of points for many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safespn.plotting.library import axes_or_new, colour_of, require_matplotlib
from safespn.typing import AnyArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from safespn.answers.explanation import Explanation

SPREAD = 0.35
"""How far points of a swarm may lie from the middle of their column's line."""


@dataclass(eq=False)
class ExplanationDisplay:
    """What columns contribute to log odds; made by :func:`plot_explanation`.

    Parameters
    ----------
    values, standard_error : array of shape (n_rows, n_columns)
        In nats, columns by mean size, the largest first.
    cells : array of shape (n_rows, n_columns)
    columns : list of str
    title : str
    of : {"log odds", "probability"}
        What they contribute to.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    values: FloatArray
    standard_error: FloatArray
    cells: FloatArray
    columns: list[str]
    title: str
    of: str = "log odds"
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, ax: Axes | None = None) -> ExplanationDisplay:
        """Draw into the given axes, or into a new figure; returns itself, with ``ax_`` and ``figure_``."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        lines = np.arange(len(self.columns))
        if len(self.values) == 1:
            colours = [colour_of(0 if value >= 0 else 1) for value in self.values[0]]
            self.ax_.barh(lines, self.values[0], xerr=self.standard_error[0], color=colours, height=0.7)
        else:
            for line in lines:
                self._draw_swarm(int(line))
        self.ax_.axvline(0.0, color="0.5", linewidth=0.8)
        self.ax_.set_yticks(lines, self.columns)
        self.ax_.invert_yaxis()
        unit = " (nats)" if self.of == "log odds" else ""
        self.ax_.set(xlabel=f"contribution to the {self.of}{unit}", title=self.title)
        return self

    def _draw_swarm(self, line: int) -> None:
        """Draw the values of a column as points, side by side where they are dense, coloured by rank of the cell."""
        values, cells = self.values[:, line], self.cells[:, line]
        known = ~np.isnan(cells)
        ranks = np.argsort(np.argsort(cells[known])) / max(known.sum() - 1, 1)
        heights = line + _offsets(values[known])
        self.ax_.scatter(values[known], heights, c=ranks, cmap="cividis", s=12, linewidths=0)


def _offsets(values: FloatArray) -> FloatArray:
    """Move points of one bin apart, by turns up and down."""
    offsets = np.zeros(len(values))
    edges = np.histogram_bin_edges(values, bins=40)
    bins = np.digitize(values, edges)
    _, counts = np.unique(bins, return_counts=True)
    step = min(0.08, 2 * SPREAD / max(int(counts.max(initial=1)), 1))
    for number in np.unique(bins):
        members = np.flatnonzero(bins == number)
        turns = (np.arange(len(members)) + 1) // 2
        offsets[members] = step * turns * np.where(np.arange(len(members)) % 2, 1, -1)
    return offsets


def plot_explanation(
    explanation: Explanation, row: int | None = None, *, max_columns: int = 12, ax: Axes | None = None
) -> ExplanationDisplay:
    """Draw what columns contribute to predictions: bars for one row, a point per row (beeswarm) for many.

    Points are coloured by the rank of the cell in its column, from dark (low) to bright (high); missing cells have
    none.

    Parameters
    ----------
    explanation : Explanation
        Of :meth:`SafeSPNClassifier.explain`.
    row : int, optional
        Which row to draw; by default all.
    max_columns : int
        Draw the columns with the largest mean contributions only.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ExplanationDisplay
        With ``ax_`` and ``figure_``, and the values drawn.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such row.
    """
    require_matplotlib()
    n_rows = len(explanation.values)
    if row is not None and not 0 <= row < n_rows:
        raise ValueError(f"there is no row {row}; the explanation has rows 0 to {n_rows - 1}")
    rows = np.arange(n_rows) if row is None else np.array([row])
    values = explanation.values[rows]
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:max_columns]
    at = np.ix_(rows, order)
    return ExplanationDisplay(
        explanation.values[at],
        explanation.standard_error[at],
        explanation.cells[at],
        [explanation.columns[column] for column in order],
        _title(explanation, rows, np.unique(explanation.labels[rows])),
        explanation.of,
    ).plot(ax)


def _title(explanation: Explanation, rows: AnyArray, labels: AnyArray) -> str:
    if len(rows) > 1:
        return f"{len(rows)} rows, class {labels[0]}" if len(labels) == 1 else f"{len(rows)} rows, predicted classes"
    row = int(rows[0])
    sign = "+" if explanation.of == "log odds" else ""
    return f"class {labels[0]}: {explanation.of} {explanation.base[row]:{sign}.2f} → {explanation.total[row]:{sign}.2f}"

"""Critical-difference diagrams: average ranks of methods, with bars over those that do not differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from safespn.typing import FloatArray

RANK_NOTE = "Bars join methods that do not differ significantly (Nemenyi's test at 5 %)."


def draw_ranks(methods: Sequence[str], ranks: FloatArray, difference: float, title: str) -> Any:
    """Draw average ranks (best first) on a line; returns a matplotlib figure.

    Parameters
    ----------
    difference : float
        Critical difference of the ranks.
    """
    from matplotlib.figure import Figure

    n, half = len(methods), (len(methods) + 1) // 2
    figure = Figure(figsize=(8.5, 1.5 + 0.26 * half), layout="constrained")
    axis = figure.subplots()
    axis.plot([1, n], [0, 0], color="black", linewidth=1)
    for tick in range(1, n + 1):
        axis.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
        axis.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=9)
    bars = _groups(ranks, difference)
    for level, (first, last) in enumerate(bars):
        height = -0.18 - 0.13 * level
        axis.plot([ranks[first] - 0.05, ranks[last] + 0.05], [height, height], color="#b03a2e", linewidth=3)
    below = -0.3 - 0.13 * len(bars)
    for position, (method, rank) in enumerate(zip(methods, ranks, strict=True)):
        on_left = position < half
        height = below - 0.32 * (position if on_left else n - 1 - position)
        edge = 0.6 if on_left else n + 0.4
        axis.plot([rank, rank, edge], [0, height, height], color="0.4", linewidth=0.8)
        axis.text(
            edge,
            height,
            f"{method}  {rank:.2f}" if on_left else f"{rank:.2f}  {method}",
            ha="right" if on_left else "left",
            va="center",
            fontsize=9,
        )
    axis.plot([1, 1 + difference], [0.75, 0.75], color="black", linewidth=2)
    axis.text(1 + difference / 2, 0.85, f"critical difference {difference:.2f}", ha="center", fontsize=9)
    axis.set(title=title, xlim=(-2.6, n + 3.6), ylim=(axis.get_ylim()[0], 1.3))
    axis.axis("off")
    return figure


def _groups(ranks: FloatArray, difference: float) -> list[tuple[int, int]]:
    """Longest runs of ranks, in ascending order, that span less than the difference."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.searchsorted(ranks, ranks[first] + difference, side="left")) - 1
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs

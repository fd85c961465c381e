"""Pictures of the wide comparison: log loss against labels, and gains against what might predict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.experiments.suite_gains import PREDICTORS
from safespn.experiments.suite_results import complete, methods_in, name_of
from safespn.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

IN_CURVES = ("safespn", "labels_only", "lr", "rf", "et", "spread")
"""The default, the same without unlabelled rows, and what people would use instead."""
COLOURS = ("#0b62b8", "#6cb6ff", "#c2410c", "#0f7b5a", "#8a6d00", "#9333a8")
MARKERS = "osD^vP"
GAINS_OF = ("safespn", "plain_em")
CURVES = (
    "Log loss against the number of labels",
    "Means over the tables that have all numbers of labels. Bands: one standard error over tables of the difference to "
    "the median of the methods shown, because tables differ far more than methods do.",
)
GAINS = (
    "Gain from the unlabelled rows against what might predict it",
    "Against the same classifier fitted to the labelled rows alone; one mark per table and number of labels.",
)


@dataclass(frozen=True, eq=False)
class Curves:
    """Mean log loss of each method for each number of labels, on tables that have all numbers of labels.

    Parameters
    ----------
    methods : list of str
    budgets : list of int
    means, errors : arrays of shape (n_methods, n_budgets)
        Tables differ far more than methods do, for all methods alike: errors are those of the difference to the
        median of the methods on the same table.
    n_tables : int
    """

    methods: list[str]
    budgets: list[int]
    means: FloatArray
    errors: FloatArray
    n_tables: int


def curves(trials: pd.DataFrame) -> Curves | None:
    """Compute the curves; None for fewer than two methods, or where no table has all numbers of labels."""
    methods = [method for method in IN_CURVES if method in methods_in(trials)]
    finished = complete(trials, methods)
    wide = finished.pivot_table(index="table", columns=["budget", "method"], values="log_loss").dropna()
    if len(methods) < 2 or wide.empty:
        return None
    budgets = sorted(int(budget) for budget in finished["budget"].unique())
    cells = np.array([[wide[budget, method].to_numpy() for budget in budgets] for method in methods])
    around, n_tables = cells - np.median(cells, axis=0), len(wide)
    spread = around.std(axis=2, ddof=1) if n_tables > 1 else np.zeros(cells.shape[:2])
    return Curves(methods, budgets, cells.mean(axis=2), spread / np.sqrt(n_tables), n_tables)


def draw_curves(drawn: Curves) -> Any:
    """Draw log loss against the number of labels; returns a matplotlib figure."""
    from matplotlib.figure import Figure

    budgets = drawn.budgets
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axis = figure.subplots()
    styles = dict(zip(IN_CURVES, zip(COLOURS, MARKERS, strict=True), strict=True))
    for method, mean, error in zip(drawn.methods, drawn.means, drawn.errors, strict=True):
        colour, marker = styles[method]
        axis.fill_between(budgets, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        width = 2.4 if method == "safespn" else 1.4
        axis.plot(budgets, mean, color=colour, marker=marker, linewidth=width, label=name_of(method))
    axis.set_xscale("log")
    axis.set_xticks(budgets, [str(budget) for budget in budgets], minor=False)
    axis.set_xticks([], minor=True)
    axis.set(xlabel="labels", ylabel="log loss (nats), lower is better", title=f"Mean over {drawn.n_tables} tables")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=9)
    return figure


def draw_gains(by_table: pd.DataFrame) -> Any:
    """Draw the gain on each table against each predictor; returns a matplotlib figure."""
    from matplotlib.figure import Figure

    methods = [method for method in GAINS_OF if f"{method} accuracy" in by_table]
    scores = {"accuracy": ("gain in accuracy\n(points)", 100.0), "log_loss": ("fall of log loss\n(nats)", 1.0)}
    rows = [(method, score) for score in scores for method in methods]
    figure = Figure(figsize=(11, 0.6 + 2.5 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(PREDICTORS), sharex="col", squeeze=False)
    for row, (method, score) in zip(axes, rows, strict=True):
        label, unit = scores[score]
        for axis, predictor in zip(row, PREDICTORS, strict=True):
            _scatter(axis, by_table, predictor, f"{method} {score}", unit)
        row[0].set_ylabel(f"{name_of(method)}\n{label}")
    for score in scores:
        _share_limits([axis for row, (_, of_row) in zip(axes, rows, strict=True) if of_row == score for axis in row])
    for axis, (predictor, name) in zip(axes[-1], PREDICTORS.items(), strict=True):
        axis.set_xlabel(name)
        if predictor != "purity":
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
    axes[0][0].legend(frameon=False, fontsize=9, title="labels")
    return figure


def _scatter(axis: Any, by_table: pd.DataFrame, predictor: str, gain: str, unit: float) -> None:
    budgets: Sequence[int] = sorted(by_table["budget"].unique())
    for number, budget in enumerate(budgets):
        part = by_table[by_table["budget"] == budget]
        style = {"color": COLOURS[2 * number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        axis.scatter(part[predictor], unit * part[gain], s=22, alpha=0.75, linewidth=0, label=str(budget), **style)
    axis.axhline(0, color="0.4", linewidth=0.8)
    axis.grid(alpha=0.3)


def _share_limits(axes: Sequence[Any]) -> None:
    limits = np.array([axis.get_ylim() for axis in axes])
    for axis in axes:
        axis.set_ylim(limits[:, 0].min(), limits[:, 1].max())

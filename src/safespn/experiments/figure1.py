"""Figure 1: what the supervised, the oracle and the safe model make of two moons, and how the safe one gets there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.utils import Bunch

from safespn.classifier import SafeSPNClassifier
from safespn.datasets import load
from safespn.exceptions import DatasetNotFoundError
from safespn.foundation.stratified import draw_stratified
from safespn.plotting import plot_decision
from safespn.typing import FloatArray, IntArray

N_LABELLED = 12
ITERATIONS = (1, 2)
MODEL: dict[str, Any] = {
    "network": "deep",
    "univariate": True,
    "max_depth": 4,
    "safety": "mcp",
    "soft_label_init": "dirichlet",
    "variance_floor": 0.01,
    "prior_rows": 1.0,
}


@dataclass(frozen=True, eq=False)
class Panel:
    """One picture of the figure: a model, the soft labels of the unlabelled rows if it has any, or all labels."""

    title: str
    model: SafeSPNClassifier
    soft_labels: FloatArray | None = None
    knows_all: bool = False


def two_moons(data_dir: str | None, seed: int) -> Bunch:
    """Load Jain and Law's two moons, or make others where their file is not available."""
    try:
        return load("jain", data_dir)
    except DatasetNotFoundError:
        data, target = make_moons(373, noise=0.08, random_state=seed)
        return Bunch(data=data, target=target, feature_names=["x1", "x2"], name="jain", source="make_moons")


def panels(moons: Bunch, seed: int = 0) -> tuple[FloatArray, IntArray, IntArray, list[Panel]]:
    """Fit the models of the figure.

    Returns
    -------
    table : array of shape (n_rows, 2)
        z-scored.
    codes : array of shape (n_rows,)
        True classes.
    partly : array of shape (n_rows,)
        Classes of the labelled rows, -1 elsewhere.
    panels : list of Panel
    """
    table = (moons.data - moons.data.mean(axis=0)) / moons.data.std(axis=0)
    codes = np.unique(moons.target, return_inverse=True)[1]
    partly = np.full(len(codes), -1)
    rows = draw_stratified(codes, N_LABELLED, np.random.default_rng(seed), least=2)
    partly[rows] = codes[rows]

    def fit(**options: Any) -> SafeSPNClassifier:
        model = SafeSPNClassifier(random_state=seed, **{**MODEL, **options})
        return model.fit(table, partly)

    oracle = SafeSPNClassifier(random_state=seed, **MODEL).fit(table, codes)
    converged = fit(max_iter=100)
    early = {n: fit(max_iter=n) for n in ITERATIONS}
    steps = [Panel(f"Safe, iteration {n}", model, model.soft_labels_) for n, model in early.items()]
    last = Panel(f"Safe, converged ({converged.n_iter_} iterations)", converged, converged.soft_labels_)
    return (
        table,
        codes,
        partly,
        [
            Panel("Supervised", converged.supervised_),
            Panel("Oracle: all labels", oracle, knows_all=True),
            *steps,
            last,
        ],
    )


def draw(table: FloatArray, codes: IntArray, partly: IntArray, pictures: Sequence[Panel]) -> Any:
    """Draw the panels; returns a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.2), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    key: dict[str, Any] = {}
    for axis, picture in zip(axes, pictures, strict=False):
        labels = codes if picture.knows_all else partly
        display = plot_decision(picture.model, table, labels, soft_labels=picture.soft_labels, ax=axis, legend=False)
        key.update(display.key())
        right = picture.model.score(table, codes)
        axis.set_title(f"{picture.title}\naccuracy on all rows {right:.2f}", fontsize=10)
        axis.set(xticks=[], yticks=[], xlabel="", ylabel="")
    axes[len(pictures)].legend(list(key.values()), list(key), loc="center", frameon=False, fontsize=10)
    axes[len(pictures)].axis("off")
    return figure

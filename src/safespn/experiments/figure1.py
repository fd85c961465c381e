"""Figure 1: what the supervised, the oracle and the safe model make of two moons, and how the safe one gets there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.utils import Bunch

from safespn.classifier import SafeSPNClassifier
from safespn.datasets import DatasetNotFoundError, load
from safespn.experiments.protocol import draw_stratified
from safespn.typing import FloatArray, IntArray

N_LABELLED = 12
ITERATIONS = (1, 2)
MODEL: dict[str, Any] = {
    "max_depth": 4,
    "multivariate": False,
    "safety": "mcp",
    "soft_label_init": "dirichlet",
    "variance_floor": 0.01,
    "weight_prior": 1.0,
}
COLOURS = ("#1b6ca8", "#c4551d")


@dataclass(frozen=True, eq=False)
class Panel:
    """One picture of the figure: a model, and the soft labels of the unlabelled rows if it has any."""

    title: str
    model: SafeSPNClassifier
    soft_labels: FloatArray | None


def two_moons(data_dir: str | None, seed: int) -> Bunch:
    """Load Jain and Law's two moons, or make others where their file is not at hand."""
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
            Panel("Supervised", converged.supervised_, None),
            Panel("Oracle: all labels", oracle, None),
            *steps,
            last,
        ],
    )


def draw(table: FloatArray, codes: IntArray, partly: IntArray, pictures: Sequence[Panel]) -> Any:
    """Draw the panels; returns a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.2), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for axis, picture in zip(axes, pictures, strict=False):
        _draw_panel(axis, table, codes, partly, picture)
    _draw_key(axes[len(pictures)])
    return figure


def _draw_panel(axis: Any, table: FloatArray, codes: IntArray, partly: IntArray, picture: Panel) -> None:
    low, high = table.min(axis=0) - 0.5, table.max(axis=0) + 0.5
    across, up = (np.linspace(low[column], high[column], 160) for column in (0, 1))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    joint = picture.model.joint_log_likelihood(grid.reshape(-1, 2)).reshape(*grid.shape[:2], -1)
    top = joint.max()
    for code, colour in enumerate(COLOURS):
        levels = [top - 5, top - 3.5, top - 2, top + 1e-9]
        axis.contourf(across, up, joint[..., code], levels=levels, colors=[colour] * 3, alpha=0.18)
    axis.contour(across, up, joint[..., 1] - joint[..., 0], levels=[0.0], colors="0.25", linewidths=1.4)
    unlabelled = partly < 0
    oracle = picture.title.startswith("Oracle")
    if picture.soft_labels is not None:
        shade = _blend(picture.soft_labels[:, 1])
        axis.scatter(*table[unlabelled].T, c=shade, s=9, linewidths=0)
    elif oracle:
        axis.scatter(*table.T, c=[COLOURS[code] for code in codes], s=9, linewidths=0)
    else:
        axis.scatter(*table[unlabelled].T, c="0.35", s=4, linewidths=0)
    if not oracle:
        known = [COLOURS[code] for code in partly[~unlabelled]]
        axis.scatter(*table[~unlabelled].T, c=known, s=55, edgecolors="black", linewidths=1.0, zorder=3)
    right = picture.model.score(table, codes)
    axis.set_title(f"{picture.title}\naccuracy on all rows {right:.2f}", fontsize=10)
    axis.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _blend(share: FloatArray) -> FloatArray:
    """Colour between the two classes'."""
    from matplotlib.colors import to_rgb

    first, second = (np.array(to_rgb(colour)) for colour in COLOURS)
    return np.asarray((1 - share)[:, None] * first + share[:, None] * second)


def _draw_key(axis: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def dot(colour: str, size: float, edge: str = "none") -> Line2D:
        return Line2D([], [], marker="o", linestyle="", color=colour, markersize=size, markeredgecolor=edge)

    entries = {
        "labelled rows": dot(COLOURS[0], 8, "black"),
        "unlabelled rows": dot("0.35", 3),
        "unlabelled, shaded by soft label": dot(COLOURS[1], 4),
        "density of class 1": Patch(color=COLOURS[0], alpha=0.4),
        "density of class 2": Patch(color=COLOURS[1], alpha=0.4),
        "decision boundary": Line2D([], [], color="0.25"),
    }
    axis.legend(list(entries.values()), list(entries), loc="center", frameon=False, fontsize=10)
    axis.axis("off")

"""Make the pictures of the README and of the documentation: ``python docs/make_images.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris, make_moons

from safespn import SafeSPNClassifier, learn_spn
from safespn.plotting import (
    plot_decision,
    plot_densities,
    plot_explanation,
    plot_history,
    plot_soft_labels,
    plot_structure,
)

FOLDER = Path(__file__).parent / "images"
N_LABELLED = 24
N_DRAWS = 11
N_LABELLED_OF_COMMITTEE = 20
NETWORKS = {"blocks": "blocks", "components": "components", "forest": "forest", "auto": "committee"}


def main() -> None:
    """Write every picture."""
    mpl.use("Agg")
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 110})
    FOLDER.mkdir(exist_ok=True)
    keep(two_moons(), "moons")
    keep(committee(bow_and_cloud(), make_moons(600, noise=0.15, random_state=0)), "committee")
    keep(history_and_soft_labels(), "fit")
    keep(iris_densities(), "densities")
    keep(network(), "network")
    clf, X, y = tumours()
    for draw in (explanation, measurement, suggestion, audit):
        keep(draw(clf, X, y), draw.__name__)


def keep(figure: Figure, name: str) -> None:
    """Write a figure without the version of the library in it, so that equal pictures are equal files."""
    figure.savefig(FOLDER / f"{name}.png", metadata={"Software": None})
    plt.close(figure)


def two_moons() -> Figure:
    """The same classifier from few labels alone and with the unlabelled rows, on the draw whose gain is the median."""
    draws = []
    for seed in range(N_DRAWS):
        X, truth = make_moons(600, noise=0.15, random_state=seed)
        y = np.where(np.arange(600) < N_LABELLED, truth, -1)
        few = SafeSPNClassifier(random_state=0).fit(X[:N_LABELLED], y[:N_LABELLED])
        draws.append((few, SafeSPNClassifier(random_state=0).fit(X, y), X, y, truth))
    scores = np.array([[model.score(X, truth) for model in (few, all_rows)] for few, all_rows, X, _, truth in draws])
    print(f"two moons, {N_DRAWS} draws: mean accuracy {scores.mean(axis=0)}, labels only and with all rows")  # noqa: T201
    few, all_rows, X, y, truth = draws[int(np.argsort(scores[:, 1] - scores[:, 0])[N_DRAWS // 2])]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.9), sharey=True, layout="constrained")
    plot_decision(few, X, y, ax=left, legend=False)
    shown = plot_decision(all_rows, X, y, soft_labels=all_rows.soft_labels_, ax=right, legend=False)
    for axes, name, model in ((left, "labels only", few), (right, "with unlabelled rows", all_rows)):
        axes.set_title(f"{name}, accuracy {model.score(X, truth):.2f}", fontsize="medium")
    right.set_ylabel("")
    entries = shown.key()
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=3, fontsize="small")
    return figure


def bow_and_cloud(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A bent cloud beside a round one, 20 labels of 600."""
    generator = np.random.default_rng(seed)
    truth = np.arange(600) % 2
    angle = generator.uniform(-0.3, np.pi + 0.3, 600)
    bow = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(truth[:, None] == 0, bow, [0.0, 0.1]) + generator.normal(scale=0.22, size=(600, 2))
    return X, truth


def committee(*tables: tuple[np.ndarray, np.ndarray]) -> Figure:
    """What each family makes of the same rows, and the committee of all of them; a line for each table."""
    figure, panels = plt.subplots(len(tables), 4, figsize=(11, 5.8), sharey="row", layout="constrained")
    for line, (X, truth) in zip(panels, tables, strict=True):
        y = np.where(np.arange(len(truth)) < N_LABELLED_OF_COMMITTEE, truth, -1)
        for axes, (network, name) in zip(line, NETWORKS.items(), strict=True):
            model = SafeSPNClassifier(network=network, random_state=0).fit(X, y)
            shown = plot_decision(model, X, y, ax=axes, legend=False)
            axes.set_title(f"{name}, accuracy {model.score(X[y == -1], truth[y == -1]):.2f}", fontsize="medium")
            axes.set(xlabel="", ylabel="")
    entries = shown.key()
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=3, fontsize="small")
    return figure


def history_and_soft_labels() -> Figure:
    """How the worst case of a single network rose, and where the soft labels ended."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10].sample(frac=1, random_state=0)
    labels = np.where(np.arange(len(X)) < 60, y[X.index], -1)
    classifier = SafeSPNClassifier(network="blocks", random_state=0).fit(X, labels)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    plot_history(classifier, ax=left)
    plot_soft_labels(classifier, ax=right)
    return figure


def iris_densities() -> Figure:
    """Class densities of three columns of iris, learned from a fifth of the labels."""
    frame, target = load_iris(return_X_y=True, as_frame=True)
    labels = np.where(np.arange(len(frame)) % 5 == 0, target, -1)
    classifier = SafeSPNClassifier(random_state=0).fit(frame, labels)
    return plot_densities(classifier, frame, labels, columns=list(frame.columns[1:])).figure_


def network() -> Figure:
    """A network learned from two moons."""
    X, _ = make_moons(300, noise=0.1, random_state=0)
    figure, axes = plt.subplots(figsize=(8.6, 3.6), layout="constrained")
    plot_structure(learn_spn(X, max_depth=3, random_state=0), ax=axes)
    return figure


def tumours() -> tuple[SafeSPNClassifier, pd.DataFrame, np.ndarray]:
    """Six measurements of tumours of the breast, forty of them labelled."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:, :6], np.array(["malignant", "benign"])[y]
    partly = np.where(np.arange(len(y)) < 40, y, "")
    return SafeSPNClassifier(network="blocks", random_state=0).fit(X, partly), X, y


def explanation(clf: SafeSPNClassifier, X: pd.DataFrame, y: np.ndarray) -> Figure:
    """What each measurement adds, for one tumour and for forty."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.2), layout="constrained")
    why = clf.explain(X.iloc[100:140], label="malignant")
    plot_explanation(why, row=0, ax=left)
    plot_explanation(why, ax=right)
    return figure


def measurement(clf: SafeSPNClassifier, X: pd.DataFrame, y: np.ndarray) -> Figure:
    """What each missing measurement is expected to tell, after the radius alone and after radius and texture."""
    figure, axes = plt.subplots(figsize=(7.6, 3.0), layout="constrained")
    patient = X.iloc[[100, 100]].copy()
    patient.iloc[0, 1:], patient.iloc[1, 2:] = np.nan, np.nan
    drops = clf.next_measurement(patient)
    lines = np.arange(X.shape[1])
    for offset, drop, name in zip((-0.2, 0.2), drops, ("radius known", "radius and texture known"), strict=True):
        axes.barh(lines + offset, drop, height=0.36, label=name)
    axes.set_yticks(lines, X.columns)
    axes.invert_yaxis()
    axes.set_xlabel("expected drop of the class entropy (nats)")
    axes.legend(frameon=False, fontsize="small")
    return figure


def suggestion(clf: SafeSPNClassifier, X: pd.DataFrame, y: np.ndarray) -> Figure:
    """The rows to label next among all others."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    rows = 40 + clf.suggest_labels(X.iloc[40:], 12)
    x, height = X["mean radius"], X["mean texture"]
    axes.scatter(x[40:], height[40:], s=8, color="0.8", label="no diagnosis")
    for name, marker in (("malignant", "v"), ("benign", "o")):
        known = np.flatnonzero(y[:40] == name)
        axes.scatter(x.iloc[known], height.iloc[known], s=22, marker=marker, label=name)
    axes.scatter(x.iloc[rows], height.iloc[rows], s=70, facecolors="none", edgecolors="black", label="suggested")
    axes.set(xlabel="mean radius", ylabel="mean texture")
    axes.legend(frameon=False, fontsize="small")
    return figure


def audit(clf: SafeSPNClassifier, X: pd.DataFrame, y: np.ndarray) -> Figure:
    """Intervals of the difference in accuracy with more and more labels."""
    alone = SafeSPNClassifier(network="blocks", random_state=0).fit(X[:40], y[:40])
    n_disagreeing = int((clf.predict(X) != alone.predict(X)).sum())
    rows = clf.audit_rows(X, n_disagreeing, reference=alone)
    numbers = np.arange(1, n_disagreeing + 1)
    found = [clf.audit(X, rows[:n], y[rows[:n]], reference=alone) for n in numbers]
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    low, high = 100 * np.array([each.interval for each in found]).T
    axes.fill_between(numbers, low, high, alpha=0.3, linewidth=0, label="95 % interval")
    axes.plot(numbers, [100 * each.difference for each in found], label="estimate")
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set(xlabel=f"labels, of {n_disagreeing} rows that are predicted differently", ylabel="points of accuracy")
    axes.legend(frameon=False, fontsize="small")
    return figure


if __name__ == "__main__":
    main()

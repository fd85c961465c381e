"""Make the pictures of the README and of the documentation: ``python docs/make_images.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris, make_moons

from safespn import SafeSPNClassifier, learn_spn
from safespn.plotting import plot_decision, plot_densities, plot_history, plot_soft_labels, plot_structure

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


if __name__ == "__main__":
    main()

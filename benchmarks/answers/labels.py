"""Suggested labels against random and uncertainty sampling: area under the accuracy curve from 10 to 100 labels.

Tables are read from the folder that the first argument names (``NAME.csv.gz``, the label last in a column ``class``).
Each starts with ten labels, at least one per class, the same for all strategies; 15 labels are added at a time.
Accuracy is that of the classifier fitted to all training rows, labelled or not, on test rows that no strategy sees. The
second and third arguments are the number of seeds and the first of them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from safespn import SafeSPNClassifier
from safespn.experiments.suite_protocol import draw_suite_trial, load_table

NAMES = (
    *("balance-scale", "banknote", "blood-transfusion", "car", "cmc"),
    *("credit-approval", "ecoli", "german", "glass", "heart"),
)
"""In alphabetical order, the first of the tables with up to 2,000 rows, 20 columns and 10 classes."""
N_FIRST, N_BATCH, N_LAST = 10, 15, 100
MOST_ROWS = 700

Rows = NDArray[np.intp]
Strategy = Callable[[SafeSPNClassifier, object, int, np.random.Generator], Rows]


def at_random(clf: SafeSPNClassifier, X: object, n: int, generator: np.random.Generator) -> Rows:
    """Any rows."""
    return generator.permutation(len(X))[:n]  # type: ignore[arg-type]


def by_uncertainty(clf: SafeSPNClassifier, X: object, n: int, generator: np.random.Generator) -> Rows:
    """Choose the rows whose class has the largest entropy."""
    return np.argsort(-entr(clf.predict_proba(X)).sum(axis=1), kind="stable")[:n]


def suggested(clf: SafeSPNClassifier, X: object, n: int, generator: np.random.Generator) -> Rows:
    """Choose the rows that the classifier suggests."""
    return clf.suggest_labels(X, n)


STRATEGIES: dict[str, Strategy] = {"random": at_random, "uncertainty": by_uncertainty, "suggested": suggested}


def curves(folder: str, name: str, seed: int, strategies: dict[str, Strategy]) -> Iterator[tuple[str, list[float]]]:
    """Yield the accuracies of each strategy after 10, 25, ..., 100 labels."""
    table = load_table(folder, name)
    trial = draw_suite_trial(table, 20, seed)
    assert trial is not None
    train = trial.train[:MOST_ROWS]
    X, y, test = table.features.iloc[train].reset_index(drop=True), table.codes[train], trial.test
    order = np.random.default_rng(seed).permutation(len(y))
    firsts = order[np.unique(y[order], return_index=True)[1]]
    rest = order[~np.isin(order, firsts)]
    start = np.concatenate([firsts, rest])[: max(N_FIRST, len(firsts))]
    first: SafeSPNClassifier | None = None
    for strategy, choose in strategies.items():
        generator = np.random.default_rng([seed, 1])
        labelled, accuracies = start, []
        while True:
            known = np.full(len(y), -1)
            known[labelled] = y[labelled]
            if first is not None and not accuracies:
                clf = first
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    clf = SafeSPNClassifier(random_state=0).fit(X, known)
            first = first or clf
            accuracies.append(float((clf.predict(table.features.iloc[test]) == table.codes[test]).mean()))
            if len(labelled) >= N_LAST:
                break
            others = np.setdiff1d(np.arange(len(y)), labelled)
            chosen = choose(clf, X.iloc[others].reset_index(drop=True), N_BATCH, generator)
            labelled = np.concatenate([labelled, others[chosen]])
        yield strategy, accuracies


def area(accuracies: list[float]) -> float:
    """Mean height of the curve, in points."""
    return 100 * float(np.trapezoid(accuracies) / (len(accuracies) - 1))


def main(folder: str, n_seeds: int = 1, first: int = 0) -> None:
    print(f"| table | seed | {' | '.join(STRATEGIES)} |\n|---|---|{'---|' * len(STRATEGIES)}")
    areas = []
    for seed in range(first, first + n_seeds):
        for name in NAMES:
            areas.append([area(found) for _, found in curves(folder, name, seed, STRATEGIES)])
            print(f"| {name} | {seed} | {' | '.join(f'{each:.2f}' for each in areas[-1])} |", flush=True)
    means = np.mean(areas, axis=0)
    print(f"| mean | | {' | '.join(f'{each:.2f}' for each in means)} |")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))

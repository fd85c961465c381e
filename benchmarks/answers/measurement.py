"""What to measure next: cells that must be measured until the log loss of test rows is low enough.

Each test row starts with 30 % of its cells, drawn at random. More are measured in one of four ways:

* in order of global importance, the mean absolute Shapley value on labelled rows, as many in every row;
* for each row the cell that ``next_measurement`` suggests, as many in every row;
* in order of global importance, the rows whose class has the largest entropy first;
* wherever in the table ``next_measurement`` is largest.

Compared are the first with the second, and the third with the fourth: the cells per row until the log loss has gone
50 or 80 % of the way from its start to that with all cells known. ``SAFESPN_DATA`` names the folder of the tables: of
the paper's, those with the most columns. Arguments: the number of seeds and the first of them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from safespn import SafeSPNClassifier, datasets

NAMES = ("ionosphere", "wdbc", "parkinsons", "wine", "ilpd")
N_LABELLED, N_TEST, SHARE_KNOWN = 60, 100, 0.3
CELLS_AT_ONCE = 20
"""Rows that get another cell before all are looked at again, where rows compete."""
SHARES_OF_THE_WAY = (0.5, 0.8)
LEAST_DROP = 0.02
"""Nats by which the log loss must fall for a table to say anything about the order of measurements."""

Cells = NDArray[np.float64]
Worth = Callable[[Cells], Cells]
"""From rows with gaps to what each cell is worth, shape (n_rows, n_columns)."""


def log_loss(clf: SafeSPNClassifier, known: Cells, codes: NDArray[np.intp]) -> float:
    """Mean log loss in nats."""
    probabilities = clf.predict_proba(known)[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(probabilities, 1e-6)).mean())


def curve(
    clf: SafeSPNClassifier, X: Cells, known: Cells, codes: NDArray[np.intp], worth: Worth, at_once: int, target: float
) -> tuple[list[float], list[float]]:
    """Cells measured per row and log losses, until the target is reached or all is known."""
    known = known.copy()
    counts, losses = [0.0], [log_loss(clf, known, codes)]
    of_cells = np.where(np.isnan(known), worth(known), -np.inf)
    while losses[-1] > target and np.isnan(known).any():
        rows = np.argsort(-of_cells.max(axis=1), kind="stable")[:at_once]
        rows = rows[np.isnan(known[rows]).any(axis=1)]
        columns = of_cells[rows].argmax(axis=1)
        known[rows, columns] = X[rows, columns]
        of_cells[rows] = np.where(np.isnan(known[rows]), worth(known[rows]), -np.inf)
        counts.append(counts[-1] + len(rows) / len(X))
        losses.append(log_loss(clf, known, codes))
    return counts, losses


def cells_until(counts: list[float], losses: list[float], level: float) -> float:
    """Cells per row at which a curve first reaches a level, between two of its points by interpolation."""
    at = int(np.argmax(np.array(losses) <= level))
    share = (losses[at - 1] - level) / (losses[at - 1] - losses[at]) if at else 0.0
    return counts[at - 1] + share * (counts[at] - counts[at - 1]) if at else 0.0


def trial(name: str, seed: int) -> list[tuple[float, list[float]]]:
    """For each share of the way, the cells per row that each of the four ways takes; none if cells do not help."""
    table = datasets.load(name)
    X, y = table.data, np.unique(table.target, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))
    labels = np.full(len(y), -1)
    labels[order[:N_LABELLED]] = y[order[:N_LABELLED]]
    test = order[N_LABELLED : N_LABELLED + N_TEST]
    train = np.setdiff1d(np.arange(len(y)), test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = SafeSPNClassifier(network="blocks", random_state=0).fit(X[train], labels[train])
    importance = np.abs(clf.explain(X[order[:N_LABELLED]], tolerance=0.1).values).mean(axis=0)
    places = np.argsort(np.argsort(importance)) / len(importance)

    def in_order(known: Cells) -> Cells:
        return np.tile(places, (len(known), 1))

    def in_order_uncertain_first(known: Cells) -> Cells:
        return 100 * entr(clf.predict_proba(known)).sum(axis=1)[:, None] + places

    generator = np.random.default_rng([seed, 1])
    known = np.where(generator.random((len(test), X.shape[1])) < SHARE_KNOWN, X[test], np.nan)
    start, end = (log_loss(clf, cells, y[test]) for cells in (known, X[test]))
    if start - end < LEAST_DROP:
        return []
    levels = [start - share * (start - end) for share in SHARES_OF_THE_WAY]
    curves = [
        curve(clf, X[test], known, y[test], worth, at_once, min(levels))
        for worth, at_once in (
            (in_order, len(test)),
            (clf.next_measurement, len(test)),
            (in_order_uncertain_first, CELLS_AT_ONCE),
            (clf.next_measurement, CELLS_AT_ONCE),
        )
    ]
    return [
        (share, [cells_until(*each, level) for each in curves])
        for share, level in zip(SHARES_OF_THE_WAY, levels, strict=True)
    ]


def main(n_seeds: int, first_seed: int) -> None:
    print("| table | share of the way | importance | suggested | saved | uncertain first | anywhere | saved |")
    print("|---|---|---|---|---|---|---|---|")
    saved: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES_OF_THE_WAY}
    for name in NAMES:
        trials = [trial(name, seed) for seed in range(first_seed, first_seed + n_seeds)]
        trials = [each for each in trials if each]
        if not trials:
            print(f"| {name} | more cells do not lower the log loss | | | | | | |", flush=True)
            continue
        for at, share in enumerate(SHARES_OF_THE_WAY):
            a, b, c, d = np.mean([each[at][1] for each in trials], axis=0)
            saved[share].append((1 - b / a, 1 - d / c))
            print(
                f"| {name} ({len(trials)} of {n_seeds}) | {share:g} | {a:.2f} | {b:.2f} | {100 * (1 - b / a):.0f} % "
                f"| {c:.2f} | {d:.2f} | {100 * (1 - d / c):.0f} % |",
                flush=True,
            )
    for share, each in saved.items():
        row, anywhere = 100 * np.mean(each, axis=0)
        print(f"| mean | {share:g} | | | {row:.0f} % | | | {anywhere:.0f} % |")


if __name__ == "__main__":
    main(*(int(each) for each in (sys.argv[1:] + ["1", "0"][len(sys.argv) - 1 :])[:2]))

"""What to measure next: cells that must be measured until the log loss of test rows is low enough.

Each test row starts with 30 % of its cells, drawn at random, and one more is measured at a time: the one that
``next_measurement`` suggests for that row, or the next one in the order of global importance, which is the mean
absolute Shapley value on labelled rows. The log losses to reach lie at 50 and 80 % of the way from that of the start to
the lowest that both reach: with few labels more cells need not help. ``SAFESPN_DATA`` names the folder of the tables,
of which the last ten columns are used.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from numpy.typing import NDArray

from safespn import SafeSPNClassifier, datasets

NAMES = ("bupa", "pid", "ilpd", "wine", "wdbc")
N_LABELLED, N_TEST, SHARE_KNOWN, MOST_COLUMNS = 60, 100, 0.3, 10
SHARES_OF_THE_WAY = (0.5, 0.8)
LEAST_DROP = 0.02
"""Nats by which the log loss must fall for a table to say anything about the order of measurements."""


def losses(clf: SafeSPNClassifier, X: NDArray[np.float64], codes: NDArray[np.intp], order: object) -> list[float]:
    """Mean log loss with more and more cells; ``order`` ranks columns, or is None for the suggestions."""
    known = X.copy()
    generator = np.random.default_rng(0)
    known[generator.random(X.shape) >= SHARE_KNOWN] = np.nan
    found = []
    while True:
        probabilities = clf.predict_proba(known)[np.arange(len(codes)), codes]
        found.append(float(-np.log(np.maximum(probabilities, 1e-6)).mean()))
        missing = np.isnan(known)
        rows = np.flatnonzero(missing.any(axis=1))
        if not len(rows):
            return found
        worth = clf.next_measurement(known[rows]) if order is None else np.tile(np.asarray(order), (len(rows), 1))
        column = np.where(missing[rows], worth, -np.inf).argmax(axis=1)
        known[rows, column] = X[rows, column]


def cells_until(curve: list[float], level: float) -> float:
    """Cells per row at which a curve first reaches a level, between two of its points by interpolation."""
    at = int(np.argmax(np.array(curve) <= level))
    return at - (level - curve[at]) / (curve[at - 1] - curve[at]) if at else 0.0


def main(seeds: int) -> None:
    print(
        "| table | columns | share of the way | in order of importance | suggested | saved |\n|---|---|---|---|---|---|"
    )
    saved: dict[float, list[float]] = {share: [] for share in SHARES_OF_THE_WAY}
    for name in NAMES:
        table = datasets.load(name)
        X, y = table.data[:, -MOST_COLUMNS:], np.unique(table.target, return_inverse=True)[1]
        curves = []
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(y))
            labels = np.full(len(y), -1)
            labels[order[:N_LABELLED]] = y[order[:N_LABELLED]]
            test = order[N_LABELLED : N_LABELLED + N_TEST]
            train = np.setdiff1d(np.arange(len(y)), test)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = SafeSPNClassifier(network="blocks", random_state=0).fit(X[train], labels[train])
            importance = np.abs(clf.explain(X[order[:N_LABELLED]]).values).mean(axis=0)
            curves.append([losses(clf, X[test], y[test], each) for each in (importance, None)])
        shortest = min(len(each) for pair in curves for each in pair)
        by_order, by_suggestion = (np.mean([pair[at][:shortest] for pair in curves], axis=0).tolist() for at in (0, 1))
        drop = by_order[0] - max(min(by_order), min(by_suggestion))
        if drop < LEAST_DROP:
            print(f"| {name} | {X.shape[1]} | no level: more cells lower the log loss by {drop:.3f} only | | | |")
            continue
        for share in SHARES_OF_THE_WAY:
            level = by_order[0] - share * drop
            cells = cells_until(by_order, level), cells_until(by_suggestion, level)
            saved[share].append(1 - cells[1] / cells[0])
            print(
                f"| {name} | {X.shape[1]} | {share:g} | {cells[0]:.2f} | {cells[1]:.2f} "
                f"| {100 * saved[share][-1]:.0f} % |",
                flush=True,
            )
    for share, each in saved.items():
        print(f"| mean | | {share:g} | | | {100 * np.mean(each):.0f} % |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)

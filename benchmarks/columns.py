"""Does the report rank columns as rows with hidden labels do?

    python benchmarks/columns.py FILE.csv [FILE.csv ...] [--draws 10] [--first 0] [--network auto]

Each file has its classes in the last column. In each draw 40, 50 or 60 labels are shown, the others hidden. The
report's ranking sees the shown ones only; the truth is the permutation importance (rise of the log loss) of the fitted
classifier on hidden rows. Printed: Spearman's correlation of the two rankings.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.model_selection import train_test_split

from safespn import SafeSPNClassifier
from safespn.report.features import column_effects
from safespn.report.held_out import predict_held_out
from safespn.report.of_classifier import as_training_table

LABELS = (40, 50, 60)
MOST_HIDDEN = 300


def correlation(frame: pd.DataFrame, labels: np.ndarray, draw: int, network: str) -> float:
    rows = np.arange(len(labels))
    shown, hidden = train_test_split(rows, train_size=LABELS[draw % len(LABELS)], stratify=labels, random_state=draw)
    partly = np.where(np.isin(rows, shown), labels, None)
    clf = SafeSPNClassifier(network=network, random_state=0).fit(frame, partly)
    named, table = as_training_table(clf, frame, partly, "table", "class")
    encoded = np.asarray(clf._encoder.encode(frame), dtype=float)
    codes = np.searchsorted(clf.classes_, labels)
    partly_coded = np.where(np.isin(rows, shown), codes, -1)
    ranked = predict_held_out(named, table, encoded, partly_coded, seed=0, with_others=False).relevances
    used = [column for column, kind in enumerate(clf.column_types_) if kind != "ignored"]
    hidden = hidden[:MOST_HIDDEN]
    effects = column_effects(clf, used, encoded[hidden], codes[hidden], encoded[:0], np.random.default_rng(draw))
    reported = {each.name: each.loss for each in ranked}
    return float(spearmanr(effects.seen.mean(axis=0), [reported[frame.columns[column]] for column in used])[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first draw; settings are chosen on draws 100 and up")
    parser.add_argument("--network", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    means = []
    for path in options.files:
        frame = pd.read_csv(path)
        labels = frame.pop(frame.columns[-1]).astype(str).to_numpy()
        draws = range(options.first, options.first + options.draws)
        found = [correlation(frame, labels, draw, options.network) for draw in draws]
        means.append(np.mean(found))
        print(f"{path.name:28} mean {means[-1]:+.2f}  draws {np.round(found, 2).tolist()}", flush=True)
    print(f"{'all':28} mean {np.mean(means):+.2f}")


if __name__ == "__main__":
    main()

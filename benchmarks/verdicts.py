"""Is what `safespn evaluate` says about the unlabelled rows true?

    python benchmarks/verdicts.py FOLDER RESULTS.jsonl [--tables banana,german] [--seeds 5] [--first 0] [--trials 10]
    python benchmarks/verdicts.py --summary RESULTS.jsonl

Pairs of a table and a seed. The seed draws a user's table from the rows of FOLDER/NAME.csv[.gz] (classes in the last
column): up to 600 rows, 400 of them labelled (half of all rows where there are fewer than 800). `evaluate` sees nothing
else, hides all but `--labelled` of the labels in each trial, and gives its verdict.

The truth is what the same kind of fits gain on rows whose labels `evaluate` never saw: the unlabelled rows of the
user's table and up to 1,000 other rows. Every fit of every trial also predicts these; the truth of a pair is the mean
over the trials of the *other* seeds of its table, so that no draw of labels serves for both. A verdict agrees if

- "helps", "harms": the true gain in accuracy has this sign;
- "better probabilities", "worse probabilities": the true change of the log loss has this sign;
- "no difference": the true gain in accuracy is within two points;
- "no better than guessing": the true gain over the most frequent class is at most two points.

"cannot tell" neither agrees nor disagrees. Verdicts do not depend on other models, so that only the class proportions
are fitted beside. Pairs that are in RESULTS already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from safespn import SafeSPNClassifier
from safespn.report import learning_curve
from safespn.report.evaluation import (
    BETTER_PROBABILITIES,
    CANNOT_TELL,
    DEPENDS,
    HARMS,
    HELPS,
    NO_BETTER_THAN_GUESSING,
    NO_DIFFERENCE,
    UNIMPORTANT,
    WORSE_PROBABILITIES,
)
from safespn.report.of_classifier import as_table_to_evaluate
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
from safespn.tables import UNLABELLED

TABLES = "banana,german,banknote,blood-transfusion,pid,magic,htru2,car,ringnorm,balance-scale"
N_ROWS, N_LABELLED, MOST_OTHERS = 600, 400, 1_000


class Recorded(SafeSPNClassifier):
    """A classifier whose fits also predict hidden rows."""

    hidden: pd.DataFrame
    truth: np.ndarray
    records: list[dict[str, float]]

    def fit(self, *args, **settings):
        super().fit(*args, **settings)
        log_posterior = self.predict_log_proba(Recorded.hidden)
        codes = np.searchsorted(self.classes_, Recorded.truth)
        losses = -log_posterior[np.arange(len(codes)), codes]
        accuracy = float(np.mean(log_posterior.argmax(axis=1) == codes))
        Recorded.records.append({"accuracy": accuracy, "log_loss": float(np.minimum(losses, 34.0).mean())})
        return self


def proportions(types, train, codes, test, n_classes, seed):
    """Class proportions in the place of all other models."""
    counts = np.bincount(codes, minlength=n_classes)
    log_posterior = np.tile(np.log(np.maximum(counts / counts.sum(), 1e-15)), (len(test), 1))
    return dict.fromkeys((BASE_RATE, LOGISTIC, FOREST), log_posterior)


def read(folder: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    path = next(path for suffix in (".csv.gz", ".csv") for path in folder.glob(f"**/{name}{suffix}"))
    frame = pd.read_csv(path)
    return frame, frame.pop(frame.columns[-1]).astype(str).to_numpy()


def run(frame: pd.DataFrame, labels: np.ndarray, seed: int, sizes: list[int], trials: int, network: str) -> dict:
    order = np.random.default_rng([seed, 16]).permutation(len(labels))
    n_labelled = min(N_LABELLED, len(labels) // 2)
    n_rows = min(N_ROWS, len(labels))
    partly = np.where(np.arange(n_rows) < n_labelled, labels[order[:n_rows]], None)
    hidden = order[n_labelled : n_rows + MOST_OTHERS]
    # Classes that no label shows cannot be predicted, whoever predicts.
    hidden = hidden[np.isin(labels[hidden], labels[order[:n_labelled]])]
    Recorded.hidden, Recorded.truth, Recorded.records = frame.iloc[hidden], labels[hidden], []
    classifier = Recorded(network=network, unlabeled=UNLABELLED, random_state=seed, n_jobs=1)
    table = as_table_to_evaluate(classifier, frame.iloc[order[:n_rows]], partly, "table", "class")
    started = time.process_time()
    evaluation = learning_curve.evaluate_table(
        classifier, table, sizes, trials, seed, lambda share: None, n_unguarded=0
    )
    seconds = time.process_time() - started
    ours, labels_only = Recorded.records[0::2], Recorded.records[1::2]
    common = Counter(labels[order[:n_labelled]]).most_common(1)[0][0]
    whole = evaluation.together
    return {
        "verdict": evaluation.verdict,
        "sentence": evaluation.recommendation,
        "accuracy_gain": whole.accuracy_gain,
        "log_loss_gain": whole.log_loss_gain,
        "true_accuracy_gains": [a["accuracy"] - b["accuracy"] for a, b in zip(ours, labels_only, strict=True)],
        "true_log_loss_gains": [b["log_loss"] - a["log_loss"] for a, b in zip(ours, labels_only, strict=True)],
        "true_gains_over_guessing": [a["accuracy"] - float(np.mean(Recorded.truth == common)) for a in ours],
        "seconds": seconds,
    }


def agrees(verdict: str, accuracy: float, log_loss: float, over_guessing: float) -> bool | None:
    """Whether a verdict is true; None if there is none."""
    return {
        HELPS: accuracy > 0,
        HARMS: accuracy < 0,
        BETTER_PROBABILITIES: log_loss > 0,
        WORSE_PROBABILITIES: log_loss < 0,
        NO_DIFFERENCE: abs(accuracy) <= UNIMPORTANT,
        NO_BETTER_THAN_GUESSING: over_guessing <= UNIMPORTANT,
        CANNOT_TELL: None,
        DEPENDS: None,
    }[verdict]


def summarise(path: Path) -> None:
    results = [json.loads(line) for line in path.read_text().splitlines()]
    found = []
    for result in results:
        others = [
            each
            for each in results
            if (each["table"], each["network"]) == (result["table"], result["network"])
            and each["seed"] != result["seed"]
        ]
        if not others:
            continue
        truth = [
            float(np.mean(np.concatenate([each[name] for each in others])))
            for name in ("true_accuracy_gains", "true_log_loss_gains", "true_gains_over_guessing")
        ]
        found.append(agrees(result["verdict"], *truth))
        print(
            f"{result['table']:18} seed {result['seed']:3} {result['verdict']:24} "
            f"found {100 * result['accuracy_gain'][0]:+5.1f} ± {100 * result['accuracy_gain'][1]:.1f}, "
            f"{result['log_loss_gain'][0]:+.3f} ± {result['log_loss_gain'][1]:.3f}; "
            f"truth {100 * truth[0]:+5.1f}, {truth[1]:+.3f}  {found[-1]}"
        )
    told = [each for each in found if each is not None]
    print(f"{len(found)} pairs; cannot tell {len(found) - len(told)}; right {sum(told)} of {len(told)} verdicts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed; settings are chosen on seeds 100 and up")
    parser.add_argument("--labelled", default="20")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--network", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    learning_curve.peer_log_posteriors = proportions
    results = options.paths[-1]
    if not options.summary:
        folder, names = options.paths[0], options.tables.split(",")
        done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        known = {(each["table"], each["seed"], each["network"]) for each in done}
        sizes = [int(size) for size in options.labelled.split(",")]
        tables = {name: read(folder, name) for name in names}
        for seed in range(options.first, options.first + options.seeds):
            for name in names:
                if (name, seed, options.network) not in known:
                    result = run(*tables[name], seed, sizes, options.trials, options.network)
                    with results.open("a") as file:
                        print(
                            json.dumps({"table": name, "seed": seed, "network": options.network, **result}), file=file
                        )
    summarise(results)


if __name__ == "__main__":
    main()

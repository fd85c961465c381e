"""The comparators over random splits, beside reference figures measured with the R package RSSL.

The reference tables are read from ``reference/baselines_100_trials.md`` beside the folder that SAFESPN_DATA names; a
figure holds when the two means differ by at most two standard errors of their difference.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from safespn import datasets
from safespn.baselines import ICLS, MCPLDA, TSVM, EntropyRegularizedLR
from safespn.experiments.protocol import Trial, draw_trial
from safespn.foundation.scoring import standard_error

TABLES = (*(name for name in datasets.NAMES if name != "wdbc"), "wdbc", "wdbc_noid")
"""The reference's "wdbc" has the patient number as a feature, "wdbc_noid" has not."""
METHODS = {
    "TSVM bal.": TSVM(),
    "TSVM no-bal.": TSVM(balance=False),
    "ICLS": ICLS(),
    "ICLS joint": ICLS(multiclass="joint"),
    "LR .1": EntropyRegularizedLR(entropy=0.0),
    "MER .1/.1": EntropyRegularizedLR(),
    "MCPLDA": MCPLDA("loog"),
    "MCPLDA exact": MCPLDA("exact"),
}
LIKELIHOOD = "MCPLDA mean±SE"
Figure = tuple[float, float]
"""Mean and its standard error."""


def reference_figures() -> dict[tuple[str, str], Figure]:
    """Figures by data set and column, from the Markdown tables; empty without them."""
    path = Path(os.environ["SAFESPN_DATA"]).resolve().parent / "reference" / "baselines_100_trials.md"
    figures: dict[tuple[str, str], Figure] = {}
    header: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            continue
        if cells[0] == "data":
            header = cells
        for column, cell in zip(header, cells, strict=True):
            if found := re.fullmatch(r"(-?[\d.]+)±([\d.]+)", cell):
                figures[cells[0], column] = (float(found[1]), float(found[2]))
    return figures


def run_trial(trial: Trial) -> dict[str, dict[str, float]]:
    """Test F1, mean test log-likelihood of MCPLDA, and processor seconds, by method."""
    X = np.concatenate([trial.labelled, trial.unlabelled])
    y = np.concatenate([trial.labelled_classes, np.full(len(trial.unlabelled), -1)])
    result = {}
    for name, method in METHODS.items():
        if name == "ICLS joint" and trial.n_classes == 2:
            continue
        begin = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            method.fit(X, y)
        scores = {"seconds": time.process_time() - begin, "warnings": len(caught), "f1": score(method, trial)}
        if isinstance(method, MCPLDA):
            joint = method.joint_log_likelihood(trial.test)
            scores["likelihood"] = float(joint[np.arange(len(joint)), trial.test_classes].mean())
        result[name] = scores
    return result


def score(method: Any, trial: Trial) -> float:
    """F1 of the minority class for two classes, macro-F1 for more."""
    predicted = method.predict(trial.test)
    if trial.n_classes > 2:
        return float(f1_score(trial.test_classes, predicted, average="macro"))
    return float(f1_score(trial.test_classes, predicted, pos_label=trial.minority, zero_division=0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=TABLES, choices=TABLES)
    arguments = parser.parse_args()
    reference = reference_figures()
    held: dict[str, list[bool]] = {}
    for table in arguments.only:
        source = datasets.load(table.removesuffix("_noid"), keep_identifier=table == "wdbc")
        classes = np.unique(source.target, return_inverse=True)[1]
        results = []
        for number in range(arguments.trials):
            results.append(run_trial(draw_trial(source.data, classes, number)))
            sys.stderr.write(f"\r{table}: {number + 1} trials ")
        sys.stderr.write("\n")
        print(f"\n{table}\n{'':24}{'measured':>18}{'reference':>18}{'difference':>12}{'seconds':>10}{'warnings':>10}")
        for method in results[0]:
            seconds = float(np.mean([result[method]["seconds"] for result in results]))
            n_warned = sum(result[method]["warnings"] > 0 for result in results)
            for measure in ("f1", "likelihood"):
                if measure not in results[0][method]:
                    continue
                values = np.array([result[method][measure] for result in results])
                column = LIKELIHOOD if measure == "likelihood" else method.removesuffix(" joint")
                # The reference's MCPLDA is Loog's: the exact one is to be better, not equal.
                known = None if method == "MCPLDA exact" else reference.get((table, column))
                figure = float(values.mean()), standard_error(values)
                row = f"{method + (', log p' if measure == 'likelihood' else ''):24}{show(figure):>18}"
                if known is not None:
                    distance = (figure[0] - known[0]) / np.hypot(figure[1], known[1])
                    held.setdefault(f"{method}, {measure}", []).append(bool(abs(distance) <= 2))
                    row += f"{show(known):>18}{distance:>9.1f} SE"
                print(f"{row:72}{seconds:>10.3f}{n_warned:>10}")
    print("\nwithin two standard errors of the reference:")
    for name, each in held.items():
        print(f"{name:24} {sum(each)} of {len(each)}")


def show(figure: Figure) -> str:
    return f"{figure[0]:.3f} ± {figure[1]:.3f}"


if __name__ == "__main__":
    main()

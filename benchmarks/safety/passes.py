"""How far the worst case of a certified fit has risen after some passes: ``passes.py [--only iris] [--trials 2]``.

Single class networks on the paper's data sets, one table row per family. Needs SAFESPN_DATA.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from safespn import SafeSPNClassifier, datasets
from safespn.experiments.protocol import draw_trial
from tables import load

NETWORKS = ("blocks", "components", "deep")
PASSES = (3, 10, 25)


def fit(name: str, network: str, seed: int) -> list[float]:
    """Best worst case after so many passes as a share of the best of all, number of passes, gain per test row."""
    trial = draw_trial(*load(name), seed)
    rest = np.concatenate([trial.validation, trial.unlabelled])
    labels = np.concatenate([trial.labelled_classes, np.full(len(rest), -1)])
    safe = SafeSPNClassifier(network=network, univariate=network == "deep", random_state=seed)
    safe.fit(np.concatenate([trial.labelled, rest]), labels)
    best = np.maximum.accumulate([0.0, *(entry["worst_case"] for entry in safe.history_)])
    shares = [best[min(n, len(best) - 1)] / max(best[-1], 1e-300) for n in PASSES]
    rows = np.arange(len(trial.test_classes)), trial.test_classes
    gain = safe.joint_log_likelihood(trial.test)[rows] - safe.supervised_.joint_log_likelihood(trial.test)[rows]
    return [*shares, float(best[3] > 0), float(best[-1] > 0), len(best) - 1.0, float(gain.mean())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=datasets.NAMES)
    parser.add_argument("--trials", type=int, default=2)
    options = parser.parse_args()
    print("| network | W after 3, 10, 25 passes / best | W > 0 after 3 | W > 0 | passes | test log p gained |")
    print("|---|---|---|---|---|---|")
    for network in NETWORKS:
        results = [fit(name, network, seed) for name in options.only for seed in range(options.trials)]
        third, tenth, last, early, positive, passes, gain = np.mean(results, axis=0)
        shares = f"{third:.2f}, {tenth:.2f}, {last:.2f}"
        print(f"| {network} | {shares} | {early:.0%} | {positive:.0%} | {passes:.1f} | {gain:+.3f} |")


if __name__ == "__main__":
    main()

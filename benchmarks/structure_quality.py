"""Quality of learned structures against scikit-learn and deeprob-kit: tables of test log-likelihood.

SAFESPN_DATA=<directory of the CSV files> python benchmarks/structure_quality.py [--peer-python PATH] [--splits 10]

Ten tables, random 80/20 splits, z-scored with training statistics.
GaussianMixture's number of components (1 to 15) is chosen by BIC. Every variance of a GaussianMixture is at least 1e-6,
and so is ours by default: columns with repeated values reward narrow components without limit. The columns `.broad` are
ours with the floor from the distances between neighbouring rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from safespn import learn_spn
from tables import NAMES, TUNED_ON, splits

OURS = {
    "univariate": {"multivariate": False},
    "uni.broad": {"multivariate": False, "variance_floor": "squared distance"},
    "multivar.": {"multivariate": True},
    "mv.broad": {"multivariate": True, "variance_floor": "squared distance"},
}


def mixtures(train, test, seed):
    """Test log-likelihood of the diagonal mixture, and of the best of three kinds, by BIC."""
    fits = []
    for kind in ("diag", "tied", "full"):
        candidates = [
            GaussianMixture(k, covariance_type=kind, random_state=seed).fit(train)
            for k in range(1, min(16, len(train)))
        ]
        fits.append(min(candidates, key=lambda model: model.bic(train)))
    best = min(fits, key=lambda model: model.bic(train))
    return fits[0].score(test), best.score(test)


def likelihood_table(n_splits, deeprob):
    columns = [*OURS, "GMM diag", "GMM best", "deeprob"]
    print("Mean test log-likelihood per row, no labels (* settings were tuned on this table's training rows)")
    print(f"{'':12}" + "".join(f"{column:>13}" for column in columns))
    rows = []
    for name in NAMES:
        values = []
        for seed, (train, test, _, _) in enumerate(splits(name, n_splits)):
            own = [
                learn_spn(train, leaves="gaussian", **options).log_likelihood(test).mean() for options in OURS.values()
            ]
            values.append([*own, *mixtures(train, test, seed)])
        rows.append([*np.mean(values, axis=0), np.mean(deeprob[name][:n_splits]) if deeprob else np.nan])
        mark = "*" if name in TUNED_ON else " "
        print(f"{name + mark:12}" + "".join(f"{value:13.3f}" for value in rows[-1]), flush=True)
    table = np.array(rows)
    for title, univariate, multivariate in (("default floor", 0, 2), ("broad floor", 1, 3)):
        wins = [
            np.sum(table[:, own] >= table[:, peer])
            for own, peer in ((univariate, 4), (univariate, 6), (multivariate, 5))
        ]
        print(
            f"{title}: univariate >= GMM diag on {wins[0]} of {len(NAMES)}, >= deeprob on {wins[1]}; "
            f"multivariate >= best GMM on {wins[2]}"
        )
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="a Python that has deeprob-kit")
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    deeprob = None
    if arguments.peer_python:
        script = Path(__file__).parent / "peers" / "deeprob_quality.py"
        output = subprocess.run([arguments.peer_python, script], capture_output=True, text=True, check=True).stdout
        deeprob = json.loads(output.splitlines()[-1])
    likelihood_table(arguments.splits, deeprob)


if __name__ == "__main__":
    main()

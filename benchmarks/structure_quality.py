"""Quality of learned structures against scikit-learn and deeprob-kit: tables of test log-likelihood and accuracy.

SAFESPN_DATA=<directory of the CSV files> python benchmarks/structure_quality.py [--peer-python PATH] [--splits 10]

Ten tables, random 80/20 splits (stratified for the accuracy tables), z-scored with training statistics.
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
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB

from safespn import learn_spn
from safespn.learning.structure import learn_class_spn
from tables import NAMES, TUNED_ON, splits

OURS = {
    "univariate": {"multivariate": False},
    "uni.broad": {"multivariate": False, "variance_floor": "squared distance"},
    "multivar.": {"multivariate": True},
    "mv.broad": {"multivariate": True, "variance_floor": "squared distance"},
}
CLASS_STRUCTURES = ("copied", "shared", "per_class", "tied", "naive", "linear", "quadratic", "discriminative", "auto")


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


def few_labels(classes, n_columns, seed):
    """Keep 2D + K labels, drawn by class; the others become -1."""
    n_classes = classes.max() + 1
    generator, result = np.random.default_rng(seed), np.full(len(classes), -1)
    for number in range(n_classes):
        rows = generator.permutation(np.nonzero(classes == number)[0])
        n_kept = max(1, round((2 * n_columns + n_classes) * len(rows) / len(classes)))
        result[rows[:n_kept]] = number
    return result


def class_table(n_splits, few):
    print(f"Accuracy | joint log-likelihood of test rows; {'2D + K labels' if few else 'all training labels'}")
    print(f"{'':12}" + "".join(f"{name:>15}" for name in CLASS_STRUCTURES) + f"{'LDA':>10}{'NB':>10}")
    rows = []
    for name in NAMES:
        values = []
        for seed, (train, test, classes, truth) in enumerate(splits(name, n_splits, stratified=True)):
            known = few_labels(classes, train.shape[1], seed) if few else classes
            n_classes = int(classes.max()) + 1
            result = []
            for structure in CLASS_STRUCTURES:
                spn = learn_class_spn(train, known, n_classes, structure=structure, leaves="gaussian")
                joint = spn.log_joint(test)
                result += [(joint.argmax(axis=1) == truth).mean(), joint[np.arange(len(test)), truth].mean()]
            has = known >= 0
            for peer in (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), GaussianNB()):
                result.append(peer.fit(train[has], known[has]).score(test, truth))
            values.append(result)
        row = np.mean(values, axis=0)
        rows.append(row)
        ours = "".join(f"{row[2 * i]:7.3f}{row[2 * i + 1]:8.2f}" for i in range(len(CLASS_STRUCTURES)))
        print(f"{name:12}{ours}{row[-2]:10.3f}{row[-1]:10.3f}", flush=True)
    table = np.array(rows)
    peers = table[:, -2:].max(axis=1)
    wins = [int(np.sum(table[:, 2 * i] >= peers - 1e-9)) for i in range(len(CLASS_STRUCTURES))]
    mean = table.mean(axis=0)
    print("mean        " + "".join(f"{mean[2 * i]:7.3f}{mean[2 * i + 1]:8.2f}" for i in range(len(CLASS_STRUCTURES))))
    print(f"at least the better of LDA and NB on: {dict(zip(CLASS_STRUCTURES, wins, strict=True))} of 10\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="a Python that has deeprob-kit")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", choices=["likelihood", "classes", "few"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.only in (None, "likelihood"):
        deeprob = None
        if arguments.peer_python:
            script = Path(__file__).parent / "peers" / "deeprob_quality.py"
            output = subprocess.run([arguments.peer_python, script], capture_output=True, text=True, check=True).stdout
            deeprob = json.loads(output.splitlines()[-1])
        likelihood_table(arguments.splits, deeprob)
    if arguments.only in (None, "classes"):
        class_table(arguments.splits, few=False)
    if arguments.only in (None, "few"):
        class_table(arguments.splits, few=True)


if __name__ == "__main__":
    main()

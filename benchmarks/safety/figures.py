"""What safe semi-supervised learning does on the paper's data sets: ``figures.py [--trials 20] [--first-seed 0]``.

For each trial a certified and an MCP fit, both with default settings. The MCP fit stops early on the validation rows,
as in the paper; the certified fit sees those rows without their labels. GaussianNB gets the labelled rows. Needs
SAFESPN_DATA. The settings were chosen with ``--first-seed 1000 --trials 5``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from safespn import SafeSPNClassifier, datasets
from safespn.experiments.protocol import Trial, draw_trial

FIELDS = ("accuracy", "log_loss", "log_likelihood")


def scores(joint: np.ndarray, classes: np.ndarray) -> list[float]:
    """Accuracy, log loss and mean joint log-likelihood."""
    probabilities = softmax(joint, axis=1)
    loss = log_loss(classes, np.clip(probabilities, 1e-15, 1), labels=range(joint.shape[1]))
    own = joint[np.arange(len(classes)), classes]
    return [float(np.mean(joint.argmax(axis=1) == classes)), float(loss), float(own.mean())]


def recomputed_worst_case(
    classifier: SafeSPNClassifier, labelled: np.ndarray, classes: np.ndarray, rest: np.ndarray
) -> float:
    """The certificate, from nothing but the two models' joint log-likelihoods."""
    reference = classifier.supervised_
    known = classifier.joint_log_likelihood(labelled) - reference.joint_log_likelihood(labelled)
    unknown = classifier.joint_log_likelihood(rest) - reference.joint_log_likelihood(rest)
    return float(known[np.arange(len(classes)), classes].sum() + unknown.min(axis=1).sum())


def run_trial(trial: Trial, seed: int) -> dict[str, list[float]]:
    rest = np.concatenate([trial.validation, trial.unlabelled])
    rows = np.concatenate([trial.labelled, rest])
    labels = np.concatenate([trial.labelled_classes, np.full(len(rest), -1)])
    started = time.perf_counter()
    certified = SafeSPNClassifier(safety="certified", random_state=seed).fit(rows, labels)
    seconds = time.perf_counter() - started
    mcp = SafeSPNClassifier(safety="mcp", random_state=seed).fit(
        np.concatenate([trial.labelled, trial.unlabelled]),
        np.concatenate([trial.labelled_classes, np.full(len(trial.unlabelled), -1)]),
        validation=(trial.validation, trial.validation_classes),
    )
    bayes = GaussianNB().fit(trial.labelled, trial.labelled_classes)
    return {
        "supervised": scores(certified.supervised_.joint_log_likelihood(trial.test), trial.test_classes),
        "certified": scores(certified.joint_log_likelihood(trial.test), trial.test_classes),
        "mcp": scores(mcp.joint_log_likelihood(trial.test), trial.test_classes),
        "GaussianNB": scores(bayes.predict_joint_log_proba(trial.test), trial.test_classes),
        "checks": [
            recomputed_worst_case(certified, trial.labelled, trial.labelled_classes, rest),
            float(certified.safety_.fallback),
            mcp.safety_.contrast,
            seconds,
        ],
    }


def run(names: Sequence[str], n_trials: int, first_seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Scores of every trial: name -> method -> array of shape (n_trials, n_scores)."""
    results = {}
    for name in names:
        table = datasets.load(name)
        codes = np.unique(table.target, return_inverse=True)[1]
        seeds = range(first_seed, first_seed + n_trials)
        trials = [run_trial(draw_trial(table.data, codes, seed), seed) for seed in seeds]
        results[name] = {method: np.array([trial[method] for trial in trials]) for method in trials[0]}
    return results


def print_tables(results: dict[str, dict[str, np.ndarray]]) -> None:
    methods = ("supervised", "certified", "mcp", "GaussianNB")
    for index, field in enumerate(FIELDS):
        print(f"\nmean test {field.replace('_', ' ')}")
        print(f"| {'data set':11} | " + " | ".join(f"{method:>10}" for method in methods) + " |")
        print("|---" * (len(methods) + 1) + "|")
        for name, scored in results.items():
            print(
                f"| {name:11} | " + " | ".join(f"{scored[method][:, index].mean():10.3f}" for method in methods) + " |"
            )
        means = [np.mean([scored[method][:, index].mean() for scored in results.values()]) for method in methods]
        print(f"| {'mean':11} | " + " | ".join(f"{mean:10.3f}" for mean in means) + " |")


def print_figures(results: dict[str, dict[str, np.ndarray]]) -> None:
    checks = np.concatenate([scored["checks"] for scored in results.values()])
    mean = {
        method: np.array([scored[method].mean(axis=0) for scored in results.values()])
        for method in ("supervised", "certified", "mcp", "GaussianNB")
    }
    above = np.concatenate([scored["certified"][:, 2] > scored["supervised"][:, 2] for scored in results.values()])
    change = 100 * (mean["certified"][:, 0] - mean["supervised"][:, 0]).mean()
    n = len(results)
    lower = np.sum(mean["certified"][:, 1] < mean["supervised"][:, 1])
    rows = {
        "certified: worst case not negative, recomputed": f"{np.sum(checks[:, 0] >= 0)} of {len(checks)} trials",
        "certified: test log-likelihood above supervised": f"{100 * above.mean():.1f} % of trials",
        "certified: fallback to the supervised model": f"{100 * checks[:, 1].mean():.1f} % of trials",
        "mcp: contrast at its soft labels not negative": f"{np.sum(checks[:, 2] >= -1e-6)} of {len(checks)} trials",
        "mcp: log-likelihood above supervised": f"{np.sum(mean['mcp'][:, 2] > mean['supervised'][:, 2])} of {n}",
        "supervised: accuracy, GaussianNB's": _pair(mean["supervised"][:, 0], mean["GaussianNB"][:, 0]),
        "supervised: log loss, GaussianNB's": _pair(mean["supervised"][:, 1], mean["GaussianNB"][:, 1]),
        "certified: lower log loss than supervised": f"{lower} of {n}",
        "certified: change of accuracy on average": f"{change:+.2f} points",
        "certified: log-likelihood at least mcp's": f"{np.sum(mean['certified'][:, 2] >= mean['mcp'][:, 2])} of {n}",
        "certified: time of a fit on average": f"{checks[:, 3].mean():.2f} s",
    }
    print("\n| figure | measured |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def _pair(ours: np.ndarray, theirs: np.ndarray) -> str:
    return f"{ours.mean():.3f}, {theirs.mean():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--data-sets", nargs="*", default=list(datasets.NAMES))
    arguments = parser.parse_args()
    results = run(arguments.data_sets, arguments.trials, arguments.first_seed)
    print_tables(results)
    print_figures(results)


if __name__ == "__main__":
    main()

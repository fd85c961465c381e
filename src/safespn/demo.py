"""A tour on embedded data: ``python -m safespn.demo``. Prints a summary and writes ``report.html``."""

from __future__ import annotations

import html
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from safespn.classifier import SafeSPNClassifier
from safespn.learning.structure import learn_spn
from safespn.network.files import write_whole
from safespn.typing import AnyArray, FloatArray, IntArray

N_LABELLED = 62


def main() -> None:
    """Run the tour."""
    X, y, names = _data()
    text = "\n\n".join([_density(X[:, :10], names[:10]), _semi_supervised(X, y)])
    sys.stdout.write(text + "\n\n")
    head = "<!doctype html><meta charset=utf-8><title>safespn demo</title>"
    page = f"{head}<h1>safespn demo</h1><pre>{html.escape(text)}</pre>"
    write_whole(Path("report.html"), page.encode())
    sys.stdout.write("The same as a page: report.html\n")


def _data() -> tuple[FloatArray, IntArray, list[str]]:
    bunch = load_breast_cancer()
    return bunch.data, bunch.target, bunch.feature_names.tolist()


def _density(X: FloatArray, names: list[str]) -> str:
    """Learn a network and ask it for a density, a missing cell and new rows."""
    spn = learn_spn(X[:-1], random_state=0)
    row = X[-1:]
    without = row.copy()
    without[0, 0] = np.nan
    drawn = spn.conditional_sample(np.repeat(without, 1000, axis=0), random_state=0)[:, 0]
    low, high = np.quantile(drawn, [0.05, 0.95])
    new = spn.sample(1000, random_state=0)
    lines = [
        f"A density of {X.shape[1]} measurements of breast tissue (569 rows, no labels)",
        f"  {spn!r}",
        f"  a row kept apart: log density {spn.log_likelihood(row)[0]:.2f}",
        f"  the same without its {names[0]}: {spn.log_likelihood(without)[0]:.2f} (marginalised exactly)",
        f"  its {names[0]} given the rest: best guess {spn.mpe(without)[0, 0]:.1f}, 90 % of draws within "
        f"{low:.1f} to {high:.1f}; it was {row[0, 0]:.1f}",
        f"  1,000 new rows drawn: average {names[0]} {new[:, 0].mean():.1f}; in the table {X[:, 0].mean():.1f}",
    ]
    return "\n".join(lines)


def _semi_supervised(X: FloatArray, y: IntArray) -> str:
    """Hide most labels, learn with and without the unlabelled rows, and compare on rows kept apart."""
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    shown, _ = train_test_split(np.arange(len(y_train)), train_size=N_LABELLED, stratify=y_train, random_state=0)
    partly = np.full(len(y_train), -1)
    partly[shown] = y_train[shown]
    safe = SafeSPNClassifier(random_state=0).fit(train, partly)
    head = f"{'test rows':22}{'accuracy':>10}{'log loss':>10}{'log p(x, y)':>13}"
    title = f"A classifier from {N_LABELLED} labelled and {len(train) - N_LABELLED} unlabelled rows"
    rows = [_scores("supervised only", safe.supervised_, test, y_test), _scores("safe", safe, test, y_test)]
    return "\n".join([title, f"  {head}", *rows, "", str(safe.safety_)])


def _scores(name: str, classifier: SafeSPNClassifier, X: FloatArray, y: AnyArray) -> str:
    joint = classifier.joint_log_likelihood(X)[np.arange(len(y)), y].mean()
    loss = log_loss(y, classifier.predict_proba(X))
    return f"  {name:22}{classifier.score(X, y):>10.3f}{loss:>10.3f}{joint:>13.2f}"


if __name__ == "__main__":
    main()

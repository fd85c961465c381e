"""What is compared in the paper's tables, each method fitted to the rows of one trial.

Table 2 compares densities given the 2D+K labels. The validation rows take part without their labels, except for MCP,
which stops early on them, as in the paper.

Table 3 compares classifiers that all see the labels of the labelled *and* the validation rows: MCP learns from the
first and stops early on the second, as in the paper; all others learn from both. Settings of the comparators are those
of the reference figures; nothing is tuned on test rows.

"committee" is the default; "generative" and "discriminative" are single networks of blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from safespn.baselines import ICLS, MCPLDA, TSVM, EntropyRegularizedLR
from safespn.classifier import SafeSPNClassifier
from safespn.experiments.protocol import Trial
from safespn.experiments.scores import certificate, score_model
from safespn.typing import FloatArray, IntArray

Scores = dict[str, dict[str, float]]


class Rows:
    """Rows of a trial with the labels that a method may see, -1 where it may not."""

    def __init__(self, trial: Trial, *, with_validation_labels: bool) -> None:
        hidden = np.full(len(trial.unlabelled), -1)
        of_validation = trial.validation_classes if with_validation_labels else np.full(len(trial.validation), -1)
        self.table: FloatArray = np.concatenate([trial.labelled, trial.validation, trial.unlabelled])
        self.codes: IntArray = np.concatenate([trial.labelled_classes, of_validation, hidden])

    @property
    def labelled(self) -> tuple[FloatArray, IntArray]:
        known = self.codes >= 0
        return self.table[known], self.codes[known]


def run_table2(trial: Trial) -> Scores:
    """Score the densities of Table 2 on one trial."""
    rows = Rows(trial, with_validation_labels=False)
    results: Scores = {}
    for name, options in {"": {}, " univariate": UNIVARIATE}.items():
        certified = _safe(trial, **options).fit(rows.table, rows.codes)
        results[f"supervised{name}"] = score_model(certified.supervised_, trial)
        results[f"certified{name}"] = score_model(certified, trial) | certificate(certified, rows.table, rows.codes)
    results["mcp"] = _early_stopped_mcp(trial)
    results["plain EM"] = score_model(_safe(trial, safety="none").fit(rows.table, rows.codes), trial)
    results["oracle"] = score_model(_safe(trial).fit(*_all_labels(trial)), trial)
    results["MCPLDA"] = score_model(MCPLDA().fit(rows.table, rows.codes), trial)
    return results


def run_table3(trial: Trial) -> Scores:
    """Score the classifiers of Table 3 on one trial."""
    rows = Rows(trial, with_validation_labels=True)
    results: Scores = {}
    for name, options in OURS.items():
        certified = _safe(trial, **options).fit(rows.table, rows.codes)
        results[f"supervised, {name}"] = score_model(certified.supervised_, trial)
        results[f"certified, {name}"] = score_model(certified, trial)
        results[f"oracle, {name}"] = score_model(_safe(trial, **options).fit(*_all_labels(trial)), trial)
    for name in ("generative", "discriminative"):
        results[f"mcp, {name}"] = _early_stopped_mcp(trial, **OURS[name])
    for name, make in COMPARATORS.items():
        model = make(trial.labelled.shape[1])
        given = rows.labelled if name in SUPERVISED_COMPARATORS else (rows.table, rows.codes)
        results[name] = score_model(model.fit(*given), trial)
    return results


UNIVARIATE: dict[str, Any] = {"network": "deep", "univariate": True, "max_depth": 4}
"""Leaves of one column, as in the paper; one depth for all data sets."""

OURS: dict[str, dict[str, Any]] = {
    "committee": {},
    "generative": {"network": "blocks"},
    "discriminative": {"network": "blocks", "objective": "discriminative"},
}

COMPARATORS: dict[str, Callable[[int], Any]] = {
    "TSVM": lambda n_features: TSVM(),
    "ICLS": lambda n_features: ICLS(),
    "MER": lambda n_features: EntropyRegularizedLR(),
    "self-training": lambda n_features: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "label spreading": lambda n_features: LabelSpreading(gamma=1 / n_features, max_iter=200),
    "logistic regression": lambda n_features: LogisticRegression(max_iter=1000),
    "GaussianNB": lambda n_features: GaussianNB(),
}
SUPERVISED_COMPARATORS = ("logistic regression", "GaussianNB")


def run_trial(trial: Trial, tables: tuple[str, ...]) -> dict[str, Scores]:
    """Run all methods of the given tables ("table2", "table3") on one trial: table -> method -> score -> value."""
    runs = {"table2": run_table2, "table3": run_table3}
    with warnings.catch_warnings():
        # Comparators that use up their iterations are scored as they are.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return {table: runs[table](trial) for table in tables}


def _safe(trial: Trial, **options: Any) -> SafeSPNClassifier:
    return SafeSPNClassifier(random_state=trial.seed, n_jobs=1, **options)


def _early_stopped_mcp(trial: Trial, **options: Any) -> dict[str, float]:
    table = np.concatenate([trial.labelled, trial.unlabelled])
    codes = np.concatenate([trial.labelled_classes, np.full(len(trial.unlabelled), -1)])
    model = _safe(trial, safety="mcp", **options)
    model.fit(table, codes, validation=(trial.validation, trial.validation_classes))
    return score_model(model, trial)


def _all_labels(trial: Trial) -> tuple[FloatArray, IntArray]:
    table = np.concatenate([trial.labelled, trial.validation, trial.unlabelled])
    return table, np.concatenate([trial.labelled_classes, trial.validation_classes, trial.unlabelled_classes])

"""What is compared in the paper's tables, each method fitted to the rows of one trial.

Table 2 compares densities given the 2D+K labels. The validation rows take part without their labels, except for MCP,
which stops early on them, as in the paper.

Table 3 compares classifiers that all see the labels of the labelled *and* the validation rows: MCP learns from the
first and stops early on the second, as in the paper; all others learn from both. Settings of the comparators are those
of the reference figures; nothing is tuned on test rows.

"committee" is the default, "labels only" the same without unlabelled rows; "generative" and "discriminative" are
single networks of blocks; "authors'" is the paper's own setting, univariate LearnSPN fitted by MCP.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
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


class Fits:
    """Classifiers of ours fitted to the rows of one trial, each once, whichever tables ask for it.

    Methods take the options of :class:`safespn.SafeSPNClassifier`.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._fitted: dict[str, SafeSPNClassifier] = {}

    def to_labelled(self, **options: Any) -> SafeSPNClassifier:
        """Fit all rows with the labels of the labelled rows."""
        return self._fit("labelled", Rows(self.trial, with_validation_labels=False), options)

    def to_labelled_and_validation(self, **options: Any) -> SafeSPNClassifier:
        """Fit all rows with the labels of the labelled and the validation rows."""
        return self._fit("labelled and validation", Rows(self.trial, with_validation_labels=True), options)

    def to_labels_only(self, **options: Any) -> SafeSPNClassifier:
        """Fit the labelled and the validation rows alone."""
        table, codes = Rows(self.trial, with_validation_labels=True).labelled
        return self._remember("labels only", options, lambda model: model.fit(table, codes))

    def oracle(self, **options: Any) -> SafeSPNClassifier:
        """Fit all rows with all labels."""
        rows = Rows(self.trial, with_validation_labels=True)
        codes = np.where(rows.codes < 0, rows.true_codes, rows.codes)
        return self._remember("oracle", options, lambda model: model.fit(rows.table, codes))

    def early_stopped_mcp(self, **options: Any) -> SafeSPNClassifier:
        """Fit the labelled and unlabelled rows by mcp, stopped early on the validation rows."""
        trial = self.trial
        table = np.concatenate([trial.labelled, trial.unlabelled])
        codes = np.concatenate([trial.labelled_classes, np.full(len(trial.unlabelled), -1)])
        validation = (trial.validation, trial.validation_classes)
        options = {"safety": "mcp", **options}
        return self._remember("mcp", options, lambda model: model.fit(table, codes, validation=validation))

    def _fit(self, what: str, rows: Rows, options: dict[str, Any]) -> SafeSPNClassifier:
        return self._remember(what, options, lambda model: model.fit(rows.table, rows.codes))

    def _remember(
        self, what: str, options: dict[str, Any], fit: Callable[[SafeSPNClassifier], SafeSPNClassifier]
    ) -> SafeSPNClassifier:
        key = f"{what}: {sorted(options.items())}"
        if key not in self._fitted:
            self._fitted[key] = fit(SafeSPNClassifier(random_state=self.trial.seed, n_jobs=1, **options))
        return self._fitted[key]


class Rows:
    """Rows of a trial with the labels that a method may see, -1 where it may not."""

    def __init__(self, trial: Trial, *, with_validation_labels: bool) -> None:
        hidden = np.full(len(trial.unlabelled), -1)
        of_validation = trial.validation_classes if with_validation_labels else np.full(len(trial.validation), -1)
        self.table: FloatArray = np.concatenate([trial.labelled, trial.validation, trial.unlabelled])
        self.codes: IntArray = np.concatenate([trial.labelled_classes, of_validation, hidden])
        self.true_codes: IntArray = np.concatenate(
            [trial.labelled_classes, trial.validation_classes, trial.unlabelled_classes]
        )

    @property
    def labelled(self) -> tuple[FloatArray, IntArray]:
        known = self.codes >= 0
        return self.table[known], self.codes[known]


def run_table2(fits: Fits) -> Scores:
    """Score the densities of Table 2 on one trial."""
    trial, rows = fits.trial, Rows(fits.trial, with_validation_labels=False)
    results: Scores = {}
    for name, options in {"": {}, " univariate": UNIVARIATE}.items():
        certified = fits.to_labelled(**options)
        results[f"supervised{name}"] = score_model(certified.supervised_, trial)
        results[f"certified{name}"] = score_model(certified, trial) | certificate(certified, rows.table, rows.codes)
    results["mcp"] = score_model(fits.early_stopped_mcp(**OURS["generative"]), trial)
    results["plain EM"] = score_model(fits.to_labelled(safety="none"), trial)
    results["oracle"] = score_model(fits.oracle(), trial)
    results["MCPLDA"] = score_model(MCPLDA().fit(rows.table, rows.codes), trial)
    return results


def run_table3(fits: Fits) -> Scores:
    """Score the classifiers of Table 3 on one trial."""
    trial, rows = fits.trial, Rows(fits.trial, with_validation_labels=True)
    results: Scores = {}
    for name, options in OURS.items():
        certified = fits.to_labelled_and_validation(**options)
        results[f"supervised, {name}"] = score_model(certified.supervised_, trial)
        results[f"certified, {name}"] = score_model(certified, trial)
        results[f"oracle, {name}"] = score_model(fits.oracle(**options), trial)
    results["labels only, committee"] = score_model(fits.to_labels_only(), trial)
    for name in ("generative", "discriminative"):
        results[f"mcp, {name}"] = score_model(fits.early_stopped_mcp(**OURS[name]), trial)
    for name, options in AUTHORS.items():
        mcp = fits.early_stopped_mcp(**options)
        results[f"supervised, {name}"] = score_model(mcp.supervised_, trial)
        results[f"mcp, {name}"] = score_model(mcp, trial)
        results[f"oracle, {name}"] = score_model(fits.oracle(**options), trial)
    for name, make in COMPARATORS.items():
        given = rows.labelled if name in SUPERVISED_COMPARATORS else (rows.table, rows.codes)
        results[name] = score_model(make(trial).fit(*given), trial)
    return results


UNIVARIATE: dict[str, Any] = {"network": "deep", "univariate": True, "max_depth": 4}
"""Leaves of one column, as in the paper; one depth for all data sets."""

OURS: dict[str, dict[str, Any]] = {
    "committee": {},
    "generative": {"network": "blocks"},
    "discriminative": {"network": "blocks", "objective": "discriminative"},
}

AUTHORS: dict[str, dict[str, Any]] = {
    "authors' generative": UNIVARIATE,
    "authors' discriminative": {**UNIVARIATE, "objective": "discriminative"},
}
"""The setting of the paper, fitted by its own algorithm."""

COMPARATORS: dict[str, Callable[[Trial], Any]] = {
    "TSVM": lambda trial: TSVM(),
    "ICLS": lambda trial: ICLS(),
    "MER": lambda trial: EntropyRegularizedLR(),
    "self-training": lambda trial: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "label spreading": lambda trial: LabelSpreading(gamma=1 / trial.labelled.shape[1], max_iter=200),
    "logistic regression": lambda trial: LogisticRegression(max_iter=1000),
    "GaussianNB": lambda trial: GaussianNB(),
    "base rate": lambda trial: DummyClassifier(strategy="prior"),
    "random forest": lambda trial: RandomForestClassifier(300, random_state=trial.seed),
    "extra trees": lambda trial: ExtraTreesClassifier(300, min_samples_leaf=2, random_state=trial.seed),
}
SUPERVISED_COMPARATORS = ("logistic regression", "GaussianNB", "base rate", "random forest", "extra trees")


def run_trial(trial: Trial, tables: tuple[str, ...]) -> dict[str, Scores]:
    """Run all methods of the given tables ("table2", "table3") on one trial: table -> method -> score -> value."""
    runs = {"table2": run_table2, "table3": run_table3}
    with warnings.catch_warnings():
        # Comparators that use up their iterations are scored as they are.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        fits = Fits(trial)
        return {table: runs[table](fits) for table in tables}

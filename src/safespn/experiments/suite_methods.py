"""What the wide comparison compares, each method fitted to one trial.

Ours see the raw data frame. Comparators see numbers (one-hot codes, medians for gaps, z-scores): label spreading and
self-training all rows, the others the labelled rows alone. A fit that fails is a result, too: its error is recorded.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from safespn.classifier import SafeSPNClassifier
from safespn.experiments.scores import certificate
from safespn.experiments.suite_protocol import SuiteTrial, numbers_of, suite_scores
from safespn.typing import FloatArray, IntArray

Scores = dict[str, Any]
LONGEST_ERROR = 200

OURS: dict[str, dict[str, Any]] = {
    "safespn": {},
    "labels_only": {},
    "plain_em": {"safety": "none"},
    "blocks": {"network": "blocks"},
    "components": {"network": "components"},
    "forest": {"network": "forest"},
}
"""Options of our fits. "labels_only" is the default fitted to the labelled rows; the fit "safespn" also supplies the
method "supervised", its members before they were fitted to the unlabelled rows."""


def _folds(counts: IntArray) -> int:
    return max(2, min(5, int(counts.min())))


def _leaf_rows(counts: IntArray) -> int:
    return max(2, min(20, int(counts.sum()) // 10))


COMPARATORS: dict[str, Callable[[int, IntArray], Any]] = {
    "base": lambda seed, counts: DummyClassifier(strategy="prior"),
    "lr": lambda seed, counts: LogisticRegression(max_iter=3000),
    "rf": lambda seed, counts: RandomForestClassifier(300, random_state=seed),
    "et": lambda seed, counts: ExtraTreesClassifier(300, min_samples_leaf=2, random_state=seed),
    "svc": lambda seed, counts: CalibratedClassifierCV(SVC(), ensemble=False, cv=_folds(counts)),
    "hgb": lambda seed, counts: HistGradientBoostingClassifier(min_samples_leaf=_leaf_rows(counts), random_state=seed),
    "spread": lambda seed, counts: LabelSpreading(kernel="knn", n_neighbors=10),
    "selftrain": lambda seed, counts: SelfTrainingClassifier(LogisticRegression(max_iter=3000), threshold=0.9),
}
"""From a seed and the number of labels of each class to a classifier."""
SEMI_SUPERVISED = ("spread", "selftrain")

OPTIONAL: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "xgboost": ("xgboost", lambda module, seed: module.XGBClassifier(random_state=seed, n_jobs=1)),
    "catboost": (
        "catboost",
        lambda module, seed: module.CatBoostClassifier(
            random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False
        ),
    ),
}
"""Comparators of other libraries: the module, and how to make the classifier from it with its own defaults."""


def available_fits() -> tuple[str, ...]:
    """Names of all fits that the installed libraries allow."""
    installed = [name for name, (module, _) in OPTIONAL.items() if find_spec(module) is not None]
    return (*OURS, *COMPARATORS, *installed)


def run_suite_trial(trial: SuiteTrial, number: int, fits: tuple[str, ...]) -> dict[str, dict[str, Scores]]:
    """Run fits on one trial, ``number`` being their seed: fit -> method -> score -> value."""
    with warnings.catch_warnings():
        # Comparators that use up their iterations are scored as they are, and ignored columns are as they should be.
        warnings.simplefilter("ignore")
        numbers = numbers_of(trial)
        return {name: _recorded(name, trial, numbers, number) for name in fits}


def _recorded(name: str, trial: SuiteTrial, numbers: FloatArray, number: int) -> dict[str, Scores]:
    try:
        if name in OURS:
            return _run_ours(name, trial, number)
        return {name: _run_comparator(name, trial, numbers, number)}
    except Exception as error:
        return {name: {"error": " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_ERROR]}}


def _run_ours(name: str, trial: SuiteTrial, number: int) -> dict[str, Scores]:
    frame, labels = trial.table.features, trial.labels
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in (trial.train, trial.test))
    if name == "labels_only":
        train, labels = train[labels >= 0], labels[labels >= 0]
    started = time.process_time()
    model = SafeSPNClassifier(random_state=number, n_jobs=1, **OURS[name]).fit(train, labels)
    probabilities = model.predict_proba(test)
    seconds = time.process_time() - started
    results: dict[str, Scores] = {name: {**suite_scores(probabilities, model.classes_, trial), "seconds": seconds}}
    if name != "labels_only":
        results[name] |= certificate(model, train, labels)
    if name == "safespn":
        supervised = model.supervised_
        results["supervised"] = dict(suite_scores(supervised.predict_proba(test), supervised.classes_, trial))
    return results


def _run_comparator(name: str, trial: SuiteTrial, numbers: FloatArray, number: int) -> Scores:
    known = trial.labels >= 0
    counts = np.bincount(trial.labels[known], minlength=trial.table.n_classes)
    rows = numbers[trial.train]
    started = time.process_time()
    if name in OPTIONAL:
        module, make = OPTIONAL[name]
        model = make(import_module(module), number)
    else:
        model = COMPARATORS[name](number, counts)
    model.fit(rows, trial.labels) if name in SEMI_SUPERVISED else model.fit(rows[known], trial.labels[known])
    probabilities = model.predict_proba(numbers[trial.test])
    seconds = time.process_time() - started
    return {**suite_scores(probabilities, model.classes_, trial), "seconds": seconds}

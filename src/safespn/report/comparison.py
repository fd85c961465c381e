"""Supervised against safe on labelled rows that neither has seen: accuracy, log loss, likelihood, calibration."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from safespn.classifier import SafeSPNClassifier
from safespn.foundation.posteriors import log_posterior
from safespn.foundation.scoring import SMALLEST_PROBABILITY, standard_error
from safespn.model_selection import SemiSupervisedSplit
from safespn.tables import TrainingTable
from safespn.typing import BoolArray, FloatArray, IntArray

MOST_FOLDS = 5
MOST_UNLABELLED = 5_000
"""Unlabelled rows that a fit with hidden labels uses at most."""
MOST_BINS = 5
ROWS_PER_BIN = 10


@dataclass(frozen=True, eq=False)
class Score:
    """How well one model predicts rows that it has not seen.

    Parameters
    ----------
    accuracy : float
        Share of rows predicted rightly.
    log_loss : float
        Mean of -log p(class | row), in nats.
    log_likelihood : float
        Mean of log p(row, class), in nats.
    calibration_error : float
        Mean difference between confidence and accuracy over bins of rows with like confidence.
    bins : list of tuple
        Mean confidence, accuracy and number of rows of each bin; bins have about as many rows.
    """

    accuracy: float
    log_loss: float
    log_likelihood: float
    calibration_error: float
    bins: list[tuple[float, float, int]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models on the same unseen rows, or the reason why they could not be compared."""

    n_rows: int
    n_folds: int
    scores: dict[str, Score] = field(default_factory=dict)
    accuracy_gain: float = 0.0
    accuracy_gain_error: float = 0.0
    """Standard error of the gain, from rows where only one of the two is right."""
    log_loss_gain: float = 0.0
    log_loss_gain_error: float = 0.0
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Say in one sentence whether the unlabelled rows helped."""
        if self.reason:
            return f"Whether the unlabelled rows helped could not be measured: {self.reason}."
        gain, error = 100 * self.accuracy_gain, 100 * self.accuracy_gain_error
        size = f"{gain:+.1f} points of accuracy (standard error {error:.1f}) on {self.n_rows} held-out labelled rows"
        if gain > 2 * error and gain > 0:
            return f"The unlabelled rows helped: {size}."
        if gain < -2 * error and gain < 0:
            return f"The unlabelled rows did harm: {size}. Prefer the supervised model, or label more rows."
        if self.log_loss_gain > 2 * self.log_loss_gain_error:
            return f"The unlabelled rows made the probabilities better and changed accuracy little: {size}."
        return f"The unlabelled rows made no difference that {self.n_rows} labelled rows can show: {size}."


def compare(classifier: SafeSPNClassifier, table: TrainingTable, seed: int) -> Comparison:
    """Fit again without one part of the labelled rows after the other, and score both models on that part."""
    codes = np.searchsorted(classifier.classes_, table.labels[table.is_labelled].astype(str))
    smallest = int(np.bincount(codes).min())
    if not (~table.is_labelled).any():
        return Comparison(len(codes), 0, reason="there are no unlabelled rows")
    if smallest < 2:
        rare = str(classifier.classes_[int(np.argmin(np.bincount(codes)))])
        return Comparison(
            len(codes), 0, reason=f"class {rare!r} has a single labelled row, and one to test on is needed"
        )
    n_folds = min(MOST_FOLDS, smallest)
    kept = _rows_for_folds(table.is_labelled, seed)
    features, labels = table.features.iloc[kept].reset_index(drop=True), table.labels[kept]
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    joints: dict[str, list[FloatArray]] = {"supervised": [], "safe": []}
    truth: list[IntArray] = []
    for train, test in SemiSupervisedSplit(folds, classifier.unlabeled).split(features, labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has told them already
            fitted = clone(classifier).fit(features.iloc[train], labels[train], column_types=table.column_types)
            joints["supervised"].append(fitted.supervised_.joint_log_likelihood(features.iloc[test]))
            joints["safe"].append(fitted.joint_log_likelihood(features.iloc[test]))
        truth.append(np.searchsorted(classifier.classes_, labels[test].astype(str)))
    supervised, safe = (np.concatenate(joints[name]) for name in ("supervised", "safe"))
    return compare_joints(supervised, safe, np.concatenate(truth), n_folds)


def compare_joints(supervised: FloatArray, safe: FloatArray, truth: IntArray, n_folds: int) -> Comparison:
    """Score two models by their joint log densities, shape (n_rows, n_classes), of unseen rows."""
    rows = np.arange(len(truth))
    posteriors = {name: log_posterior(joint) for name, joint in {"supervised": supervised, "safe": safe}.items()}
    right = {name: posterior.argmax(axis=1) == truth for name, posterior in posteriors.items()}
    losses = {
        name: -np.maximum(posterior[rows, truth], np.log(SMALLEST_PROBABILITY))
        for name, posterior in posteriors.items()
    }
    accuracy_gains = right["safe"].astype(float) - right["supervised"]
    loss_gains = losses["supervised"] - losses["safe"]
    return Comparison(
        len(truth),
        n_folds,
        {
            name: _score(posteriors[name], right[name], losses[name], joint[rows, truth])
            for name, joint in {"supervised": supervised, "safe": safe}.items()
        },
        float(accuracy_gains.mean()),
        standard_error(accuracy_gains),
        float(loss_gains.mean()),
        standard_error(loss_gains),
    )


def _rows_for_folds(is_labelled: BoolArray, seed: int) -> IntArray:
    unlabelled = np.nonzero(~is_labelled)[0]
    if len(unlabelled) > MOST_UNLABELLED:
        unlabelled = np.random.default_rng(seed).choice(unlabelled, MOST_UNLABELLED, replace=False)
    return np.sort(np.concatenate([np.nonzero(is_labelled)[0], unlabelled]))


def _score(posterior: FloatArray, right: BoolArray, losses: FloatArray, likelihoods: FloatArray) -> Score:
    confidence = np.exp(posterior.max(axis=1))
    order = np.argsort(confidence, kind="stable")
    n_bins = max(1, min(MOST_BINS, len(order) // ROWS_PER_BIN))
    bins = [
        (float(confidence[part].mean()), float(right[part].mean()), len(part)) for part in np.array_split(order, n_bins)
    ]
    error = sum(abs(mean - share) * count for mean, share, count in bins) / len(right)
    return Score(float(right.mean()), float(losses.mean()), float(likelihoods.mean()), error, bins)

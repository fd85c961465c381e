"""Do the unlabelled rows help here? Labels are hidden on purpose, and fits with and without them are scored.

The comparison is with the same classifier fitted to the labelled rows alone, which has never seen an unlabelled row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from safespn.classifier import SafeSPNClassifier
from safespn.exceptions import TableError
from safespn.foundation.scoring import HARM, SMALLEST_PROBABILITY, standard_error
from safespn.foundation.stratified import TEST_SHARE, draw_stratified
from safespn.report.comparison import MOST_UNLABELLED
from safespn.tables import UNLABELLED, TrainingTable
from safespn.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """Scores of fits to the labelled rows alone and to all rows, with so many labels; one entry per trial."""

    n_labelled: int
    labels_only_accuracy: FloatArray
    all_rows_accuracy: FloatArray
    labels_only_log_loss: FloatArray
    all_rows_log_loss: FloatArray

    @property
    def harm_rate(self) -> float:
        """Share of trials in which the unlabelled rows cost more than one point of accuracy."""
        return float((self.all_rows_accuracy < self.labels_only_accuracy - HARM).mean())

    @property
    def accuracy_gain(self) -> tuple[float, float]:
        """Mean gain from the unlabelled rows over trials, and its standard error."""
        return _mean_and_error(self.all_rows_accuracy - self.labels_only_accuracy)

    @property
    def log_loss_gain(self) -> tuple[float, float]:
        """Mean fall of the log loss over trials, and its standard error."""
        return _mean_and_error(self.labels_only_log_loss - self.all_rows_log_loss)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A learning curve without and with unlabelled rows, and what follows from it.

    Parameters
    ----------
    base_rate : float
        Accuracy of always guessing the most frequent class.
    """

    source: str
    target: str
    n_trials: int
    n_rows: int
    n_labelled: int
    n_test: int
    points: list[CurvePoint]
    base_rate: float = 0.0

    @property
    def recommendation(self) -> str:
        """Say in one sentence what to do."""
        better = [point for point in self.points if _is_clear(point.accuracy_gain)]
        worse = [point for point in self.points if _is_clear(point.accuracy_gain, sign=-1)]
        harm = f"harm in {100 * np.mean([point.harm_rate for point in self.points]):.0f} % of trials"
        gains = [100 * point.accuracy_gain[0] for point in self.points]
        span = " to ".join(dict.fromkeys(f"{gain:+.1f}" for gain in (min(gains), max(gains))))
        if all(point.all_rows_accuracy.mean() <= self.base_rate for point in self.points):
            return (
                f"No better than always guessing the most frequent class ({100 * self.base_rate:.0f} % right), with or "
                "without the unlabelled rows: these columns do not tell the classes apart, or it takes more labels."
            )
        if len(better) == len(self.points):
            return f"Yes, use the unlabelled rows: {span} points of accuracy, {harm}."
        if len(worse) == len(self.points):
            return f"No, leave the unlabelled rows out: {span} points of accuracy, {harm}."
        if better and worse:
            return (
                f"It depends on the number of labels: accuracy rises with {_sizes(better)}, falls with {_sizes(worse)}."
            )
        if better:
            return f"Yes, with {_sizes(better)} labels; else accuracy does not clearly change ({span} points, {harm})."
        if worse:
            return f"Rather not: accuracy falls with {_sizes(worse)} labels ({span} points, {harm})."
        if all(_is_clear(point.log_loss_gain) for point in self.points):
            return (
                "Use them if probabilities matter: the log loss falls with every number of labels, while accuracy does "
                f"not clearly change ({span} points, {harm})."
            )
        return (
            f"It makes no clear difference here ({span} points of accuracy, {harm}): "
            "more labels would give a clearer answer."
        )

    def to_dict(self) -> dict[str, object]:
        """Return means, bands and rates as plain values."""
        return {
            "source": self.source,
            "target": self.target,
            "trials": self.n_trials,
            "test_rows": self.n_test,
            "base_rate": self.base_rate,
            "points": [
                {
                    "labelled": point.n_labelled,
                    "labels_only": _summary(point.labels_only_accuracy, point.labels_only_log_loss),
                    "all_rows": _summary(point.all_rows_accuracy, point.all_rows_log_loss),
                    "accuracy_gain": point.accuracy_gain[0],
                    "accuracy_gain_error": point.accuracy_gain[1],
                    "harm_rate": point.harm_rate,
                }
                for point in self.points
            ],
            "recommendation": self.recommendation,
        }


def band(values: FloatArray) -> tuple[float, float]:
    """The 10-90 % band of the trials."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float(low), float(high)


def check_sizes(table: TrainingTable, sizes: Sequence[int]) -> None:
    """Complain about numbers of labels that cannot be tried."""
    classes, counts = np.unique(table.labels[table.is_labelled].astype(str), return_counts=True)
    if counts.min() < 2:
        raise TableError(
            f"{table.source}: class {str(classes[counts.argmin()])!r} has a single labelled row; it takes one to learn "
            "and one to test: label more rows of it, or remove it"
        )
    most = largest_size(table)
    for size in sizes:
        if not len(classes) <= size <= most:
            raise TableError(
                f"{table.source}: cannot keep {size} labels: with {counts.sum()} labelled rows, a fifth of them for "
                f"testing, and {len(classes)} classes, --labelled can be from {len(classes)} to {most}"
            )


def largest_size(table: TrainingTable) -> int:
    """The largest number of labels that leaves rows to test on and unlabelled rows to learn from."""
    n_labelled = int(table.is_labelled.sum())
    n_train = n_labelled - _n_test(n_labelled)
    return n_train if n_labelled < len(table.labels) else n_train - 1


def evaluate_table(
    classifier: SafeSPNClassifier,
    table: TrainingTable,
    sizes: Sequence[int],
    n_trials: int,
    seed: int,
    progress: Callable[[float], None],
) -> Evaluation:
    """Hide all but some labels in each trial, and score fits with and without unlabelled rows on held-out rows.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of labels to keep.
    progress : callable
        Called with the share of trials that are done.
    """
    check_sizes(table, sizes)
    known = np.nonzero(table.is_labelled)[0]
    codes = np.unique(table.labels[known].astype(str), return_inverse=True)[1]
    scores = np.empty((len(sizes), n_trials, 4))
    for trial in range(n_trials):
        generator = np.random.default_rng([seed, trial])
        test = draw_stratified(codes, _n_test(len(codes)), generator)
        train = np.setdiff1d(np.arange(len(codes)), test)
        for place, size in enumerate(sizes):
            shown = train[draw_stratified(codes[train], size, generator)]
            scores[place, trial] = _score_trial(classifier, table, known[shown], known[test], generator)
            progress((trial * len(sizes) + place + 1) / (n_trials * len(sizes)))
    points = [CurvePoint(size, *scores[place].T) for place, size in enumerate(sizes)]
    base_rate = float(np.bincount(codes).max() / len(codes))
    n_test = _n_test(len(codes))
    return Evaluation(table.source, table.target, n_trials, len(table.labels), len(known), n_test, points, base_rate)


def _n_test(n_labelled: int) -> int:
    return max(1, round(TEST_SHARE * n_labelled))


def _score_trial(
    classifier: SafeSPNClassifier,
    table: TrainingTable,
    shown: IntArray,
    test: IntArray,
    generator: np.random.Generator,
) -> tuple[float, float, float, float]:
    """Fit with the labels of some rows; accuracies and log losses on test rows, labels only before all rows."""
    hidden = np.setdiff1d(np.arange(len(table.labels)), np.concatenate([shown, test]))
    if len(hidden) > MOST_UNLABELLED:
        hidden = generator.choice(hidden, MOST_UNLABELLED, replace=False)
    rows = np.concatenate([shown, hidden])
    labels = np.concatenate([table.labels[shown], np.full(len(hidden), UNLABELLED, dtype=object)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one trial among many
        types = table.column_types
        fitted = clone(classifier).fit(table.features.iloc[rows], labels, column_types=types)
        labels_only = clone(classifier).fit(table.features.iloc[shown], table.labels[shown], column_types=types)
        features, truth = table.features.iloc[test], table.labels[test].astype(str)
        models = (labels_only, fitted)
        places = np.searchsorted(fitted.classes_, truth)
        accuracies = [model.score(features, truth) for model in models]
        of_truth = [model.predict_log_proba(features)[np.arange(len(test)), places] for model in models]
    losses = [float(-np.maximum(values, np.log(SMALLEST_PROBABILITY)).mean()) for values in of_truth]
    return accuracies[0], accuracies[1], losses[0], losses[1]


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), standard_error(values)


def _is_clear(gain: tuple[float, float], sign: int = 1) -> bool:
    """Whether a gain is more than two standard errors from zero, and not negligible."""
    mean, error = gain
    return sign * mean > max(2 * error, 1e-3)


def _sizes(points: Sequence[CurvePoint]) -> str:
    return ", ".join(str(point.n_labelled) for point in points)


def _summary(accuracy: FloatArray, log_loss: FloatArray) -> dict[str, object]:
    return {
        "accuracy": float(accuracy.mean()),
        "accuracy_band": list(band(accuracy)),
        "log_loss": float(log_loss.mean()),
        "log_loss_band": list(band(log_loss)),
    }

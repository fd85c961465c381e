"""Do the unlabelled rows help here? Labels are hidden on purpose, and fits with and without them are scored.

The comparison is with the same classifier fitted to the labelled rows alone, which has never seen an unlabelled row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t
from sklearn.base import clone

from safespn.classifier import SafeSPNClassifier
from safespn.exceptions import TableError
from safespn.foundation.scoring import HARM, SMALLEST_PROBABILITY, standard_error
from safespn.foundation.stratified import TEST_SHARE, draw_stratified
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY, MOST_UNLABELLED
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC, peer_log_posteriors
from safespn.tables import UNLABELLED, TrainingTable
from safespn.typing import FloatArray, IntArray

NEGLIGIBLE = 1e-3
"""Gains below this are not called gains, however certain."""
FEW_LABELS = (10, 20, 50)
"""Numbers of labels to try where every row has one."""


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """Scores of all models with so many labels.

    Parameters
    ----------
    n_labelled : int
    accuracies, log_losses : dict
        By the name of the model, arrays with one entry per trial.
    overlap : float
        Share of the rows to learn from whose labels a trial shows: how much trials have in common.
    """

    n_labelled: int
    accuracies: dict[str, FloatArray]
    log_losses: dict[str, FloatArray]
    overlap: float = 0.0

    @property
    def harm_rate(self) -> float:
        """Share of trials in which the unlabelled rows cost more than one point of accuracy."""
        return float((self.accuracies[ALL_ROWS] < self.accuracies[LABELS_ONLY] - HARM).mean())

    @property
    def accuracy_gain(self) -> tuple[float, float]:
        """Mean gain from the unlabelled rows, and its standard error."""
        return self.gain_over(LABELS_ONLY)

    @property
    def log_loss_gain(self) -> tuple[float, float]:
        """Mean fall of the log loss over trials, and its standard error."""
        return self.mean_and_error(self.log_losses[LABELS_ONLY] - self.log_losses[ALL_ROWS])

    @property
    def quantile(self) -> float:
        """Standard errors from the mean to the end of its 95 % interval: more where there are few trials."""
        return float(student_t.ppf(0.975, max(len(self.accuracies[ALL_ROWS]) - 1, 1)))

    def is_clear(self, gain: tuple[float, float], sign: int = 1) -> bool:
        """Whether the 95 % interval of a gain does not hold zero, and the gain is not negligible."""
        mean, error = gain
        return sign * mean > max(self.quantile * error, NEGLIGIBLE)

    @property
    def best_peer(self) -> str:
        """The most accurate of the models that people would use instead."""
        return max((LOGISTIC, FOREST), key=lambda name: float(self.accuracies[name].mean()))

    def gain_over(self, name: str) -> tuple[float, float]:
        """Mean gain in accuracy of the fit to all rows over another model, and its standard error."""
        return self.mean_and_error(self.accuracies[ALL_ROWS] - self.accuracies[name])

    def mean_and_error(self, values: FloatArray) -> tuple[float, float]:
        """Mean over trials and its standard error, larger where trials share labels (Nadeau and Bengio 2003)."""
        shared = TEST_SHARE * self.overlap
        return float(values.mean()), standard_error(values) * float(np.sqrt(1 + len(values) * shared / (1 - shared)))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A learning curve without and with unlabelled rows, and what follows from it."""

    source: str
    target: str
    n_trials: int
    n_rows: int
    n_labelled: int
    n_test: int
    points: list[CurvePoint]

    @property
    def base_rate(self) -> float:
        """Accuracy of always guessing the most frequent class."""
        return float(np.mean([point.accuracies[BASE_RATE].mean() for point in self.points]))

    @property
    def recommendation(self) -> str:
        """Say in a sentence or two what to do; only what the trials can show."""
        if not any(point.is_clear(point.gain_over(BASE_RATE)) for point in self.points):
            return self._no_better_than_guessing()
        better = [point for point in self.points if point.is_clear(point.accuracy_gain)]
        worse = [point for point in self.points if point.is_clear(point.accuracy_gain, sign=-1)]
        harm = f"harm in {100 * np.mean([point.harm_rate for point in self.points]):.0f} % of trials"
        gains = [100 * point.accuracy_gain[0] for point in self.points]
        span = " to ".join(dict.fromkeys(f"{gain:+.1f}" for gain in (min(gains), max(gains))))
        if better and worse:
            return (
                f"It depends on the number of labels: accuracy rises with {_sizes(better)}, falls with {_sizes(worse)}."
                + self._beside_peers()
            )
        if len(better) == len(self.points):
            return f"Yes, the unlabelled rows help: {span} points of accuracy, {harm}.{self._beside_peers()}"
        if len(worse) == len(self.points):
            return f"No, leave the unlabelled rows out: {span} points of accuracy, {harm}.{self._beside_peers()}"
        if better:
            return (
                f"Yes, with {_sizes(better)} labels; with other numbers the trials show no change "
                f"({span} points, {harm}).{self._beside_peers()}"
            )
        if worse:
            return (
                f"Rather not: accuracy falls with {_sizes(worse)} labels ({span} points, {harm}).{self._beside_peers()}"
            )
        return self._not_in_accuracy(harm) + self._beside_peers()

    def _no_better_than_guessing(self) -> str:
        never = all(point.gain_over(BASE_RATE)[0] <= 0 for point in self.points)
        text = (
            f"{'No' if never else 'Not clearly'} better than always guessing the most frequent class "
            f"({100 * self.base_rate:.0f} % right), with the unlabelled rows or without: "
        )
        last = self.points[-1]
        peer = last.accuracies[last.best_peer]
        if last.is_clear(last.mean_and_error(peer - last.accuracies[BASE_RATE])):
            return text + (
                f"this model does not suit these classes. A {last.best_peer} on {last.n_labelled} labels is right in "
                f"{100 * peer.mean():.0f} %."
            )
        return f"{text}these columns do not separate the classes, or it takes more labels or trials to see it."

    def _not_in_accuracy(self, harm: str) -> str:
        """Neither better nor worse in accuracy: by how much at most, and whether probabilities are better."""
        ranges = [
            (gain - point.quantile * error, gain + point.quantile * error)
            for point, (gain, error) in ((each, each.accuracy_gain) for each in self.points)
        ]
        low, high = (100 * edge for edge in (min(low for low, _ in ranges), max(high for _, high in ranges)))
        if not np.isfinite(high):
            return "Cannot tell from a single trial."
        within = f"between {low:+.1f} and {high:+.1f} points (95 % intervals), {harm}"
        useful = all(
            point.is_clear(point.log_loss_gain)
            and point.log_losses[ALL_ROWS].mean() < point.log_losses[BASE_RATE].mean()
            for point in self.points
        )
        if useful:
            return (
                "They make the probabilities better: the log loss falls with every number of labels, and is below that "
                f"of the class proportions. Whether accuracy changes, these trials cannot show: {within}."
            )
        if low >= -100 * HARM and high <= 100 * HARM:
            return f"They make no difference of more than a point: {within}."
        return f"Cannot tell: the change of accuracy is {within}; more trials or more labels would narrow this."

    def _beside_peers(self) -> str:
        """Add what simple models of the labels alone reach, where that is as much."""
        behind = [point for point in self.points if point.gain_over(point.best_peer)[0] <= 0]
        if not behind:
            return ""
        worst = min(behind, key=lambda point: point.gain_over(point.best_peer)[0])
        peer, ours = worst.accuracies[worst.best_peer].mean(), worst.accuracies[ALL_ROWS].mean()
        return (
            f" But with {_sizes(behind)} labels a {worst.best_peer} on the labels alone is as good or better "
            f"({100 * peer:.1f} % against {100 * ours:.1f} % with {worst.n_labelled})."
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
                    **{
                        name.replace(" ", "_"): _summary(point.accuracies[name], point.log_losses[name])
                        for name in point.accuracies
                    },
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


def default_sizes(table: TrainingTable) -> list[int]:
    """Numbers of labels to try: up to all that there are, or few of many if every row has one."""
    n_classes = len(np.unique(table.labels[table.is_labelled].astype(str)))
    most = largest_size(table)
    if table.is_labelled.all():
        return [size for size in FEW_LABELS if n_classes <= size <= most] or [most]
    return sorted({size for size in (most // 4, most // 2, most) if size >= n_classes})


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
    scores: list[list[dict[str, tuple[float, float]]]] = [[] for _ in sizes]
    for trial in range(n_trials):
        generator = np.random.default_rng([seed, trial])
        test = draw_stratified(codes, _n_test(len(codes)), generator)
        train = np.setdiff1d(np.arange(len(codes)), test)
        for place, size in enumerate(sizes):
            shown = train[draw_stratified(codes[train], size, generator)]
            scores[place].append(_score_trial(classifier, table, known[shown], known[test], generator))
            progress((trial * len(sizes) + place + 1) / (n_trials * len(sizes)))
    points = [
        CurvePoint(
            size,
            {name: np.array([each[name][0] for each in of_size]) for name in of_size[0]},
            {name: np.array([each[name][1] for each in of_size]) for name in of_size[0]},
            size / len(train),
        )
        for size, of_size in zip(sizes, scores, strict=True)
    ]
    return Evaluation(table.source, table.target, n_trials, len(table.labels), len(known), _n_test(len(codes)), points)


def _n_test(n_labelled: int) -> int:
    return max(1, round(TEST_SHARE * n_labelled))


def _score_trial(
    classifier: SafeSPNClassifier,
    table: TrainingTable,
    shown: IntArray,
    test: IntArray,
    generator: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Fit with the labels of some rows; accuracy and log loss of each model on test rows."""
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
        features = table.features.iloc[test]
        of_shown, of_test = (
            np.asarray(fitted._encoder.encode(part), dtype=np.float64)
            for part in (table.features.iloc[shown], features)
        )
        truth, codes = (np.searchsorted(fitted.classes_, table.labels[part].astype(str)) for part in (test, shown))
        seed = int(generator.integers(1 << 31))
        log_posteriors = peer_log_posteriors(fitted.column_types_, of_shown, codes, of_test, len(fitted.classes_), seed)
        log_posteriors |= {
            LABELS_ONLY: labels_only.predict_log_proba(features),
            ALL_ROWS: fitted.predict_log_proba(features),
        }
    places = np.arange(len(test))
    return {
        name: (
            float((values.argmax(axis=1) == truth).mean()),
            float(-np.maximum(values[places, truth], np.log(SMALLEST_PROBABILITY)).mean()),
        )
        for name, values in log_posteriors.items()
    }


def _sizes(points: Sequence[CurvePoint]) -> str:
    return ", ".join(str(point.n_labelled) for point in points)


def _summary(accuracy: FloatArray, log_loss: FloatArray) -> dict[str, object]:
    return {
        "accuracy": float(accuracy.mean()),
        "accuracy_band": list(band(accuracy)),
        "log_loss": float(log_loss.mean()),
        "log_loss_band": list(band(log_loss)),
    }

"""How good a model is on labelled rows that it has not seen, beside what people would use instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_auc_score, roc_curve

from safespn.decisions import decide
from safespn.foundation.scoring import SMALLEST_PROBABILITY, standard_error
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY, HeldOut
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
from safespn.report.quality import area_error
from safespn.typing import BoolArray, FloatArray, IntArray

MOST_BINS = 5
ROWS_PER_BIN = 10
CLEAR = 2.0
"""Standard errors from which a difference, in either direction, is more than chance."""
CLEARLY_ABOVE = 1.645
"""The same where only one direction is in question: whether predictions are better than guessing."""


@dataclass(frozen=True, eq=False)
class Score:
    """How well one model predicts rows that it has not seen.

    Parameters
    ----------
    accuracy : float
        Share of rows predicted rightly.
    log_loss : float
        Mean of -log p(class | row), in nats.
    accuracy_error, log_loss_error : float
        Standard errors.
    calibration_error : float
        Mean difference between confidence and accuracy over bins of rows with like confidence.
    bins : list of tuple
        Mean confidence, accuracy and number of rows of each bin; bins have about as many rows.
    """

    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float
    calibration_error: float
    bins: list[tuple[float, float, int]]


@dataclass(frozen=True)
class Gain:
    """Our model minus another on the same rows: means and standard errors, positive where ours is better."""

    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float

    @property
    def is_more_accurate(self) -> bool:
        return self.accuracy > CLEAR * self.accuracy_error and self.accuracy > 0

    @property
    def is_less_accurate(self) -> bool:
        return -self.accuracy > CLEAR * self.accuracy_error and self.accuracy < 0

    @property
    def has_lower_loss(self) -> bool:
        return self.log_loss > CLEAR * self.log_loss_error and self.log_loss > 0


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves of the second of two classes over all thresholds."""

    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    area: float
    area_error: float
    recall: FloatArray
    precision: FloatArray
    share: float
    """Share of the class: the precision of chance."""


@dataclass(frozen=True, eq=False)
class HeldOutComparison:
    """Models on the same unseen rows, or the reason why they could not be compared.

    Parameters
    ----------
    guess : str
        The class that is predicted without any features.
    scores : dict of Score
        By the name of the model.
    gains : dict of Gain
        Of our model of all rows over each of the others.
    confusion : array of shape (n_classes, n_classes)
        Unseen rows by true class (rows) and predicted class (columns).
    curves : Curves, optional
        If there are two classes.
    """

    n_rows: int
    n_folds: int = 0
    classes: list[str] = field(default_factory=list)
    guess: str = ""
    scores: dict[str, Score] = field(default_factory=dict)
    gains: dict[str, Gain] = field(default_factory=dict)
    confusion: IntArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.intp))
    curves: Curves | None = None
    reason: str = ""
    n_unlabelled: int = 0
    """Unlabelled rows that the fits used which are compared."""

    @property
    def beats_guessing(self) -> bool:
        """Whether predictions are right more often than those without any features (one-sided test at 5 %)."""
        if self.reason:
            return False
        gain = self.gains[BASE_RATE]
        return gain.accuracy > CLEARLY_ABOVE * gain.accuracy_error and gain.accuracy > 0

    def to_dict(self) -> dict[str, Any]:
        """Return scores, gains and sentences as plain values."""
        return {
            "rows": self.n_rows,
            "folds": self.n_folds,
            "reason": self.reason,
            "models": {
                name.replace(" ", "_"): {
                    "accuracy": score.accuracy,
                    "accuracy_error": score.accuracy_error,
                    "log_loss": score.log_loss,
                    "log_loss_error": score.log_loss_error,
                }
                for name, score in self.scores.items()
            },
            "beats_guessing": self.beats_guessing,
        }

    @property
    def quality(self) -> str:
        """Say in a sentence or two how good the model is."""
        if self.reason:
            return f"How good the predictions are could not be measured: {self.reason}."
        ours, base, gain = self.scores[ALL_ROWS], self.scores[BASE_RATE], self.gains[BASE_RATE]
        figures = (
            f"right in {_percent(ours.accuracy)} (standard error {100 * ours.accuracy_error:.1f}) of {self.n_rows} "
            f"held-out labelled rows, where always guessing {self.guess!r} is right in {_percent(base.accuracy)}"
        )
        if self.beats_guessing:
            return f"Predictions are {figures}.{self._better_peer()}"
        verdict = "No better" if gain.accuracy <= 0 else "Not clearly better"
        rest = (
            " The probabilities do carry information: their log loss is "
            f"{ours.log_loss:.2f}, that of the class proportions {base.log_loss:.2f}."
            if gain.has_lower_loss
            else ""
        )
        return f"{verdict} than always guessing {self.guess!r}: {figures}.{rest}{self._better_peer()}"

    @property
    def has_better_peer(self) -> bool:
        """Whether a usual classifier of the labelled rows is clearly more accurate."""
        return bool(self._better_peers())

    def _better_peers(self) -> list[str]:
        return [name for name in (LOGISTIC, FOREST) if name in self.gains and self.gains[name].is_less_accurate]

    def _better_peer(self) -> str:
        better = self._better_peers()
        if not better:
            return ""
        best = max(better, key=lambda name: self.scores[name].accuracy)
        return f" A {best} on the labelled rows alone does better: {_percent(self.scores[best].accuracy)}."

    @property
    def verdict(self) -> str:
        """Say in one sentence whether the unlabelled rows helped."""
        if self.reason or LABELS_ONLY not in self.gains:
            return f"Whether the unlabelled rows helped could not be measured: {self.reason or 'there are none'}."
        gain = self.gains[LABELS_ONLY]
        size = (
            f"{100 * gain.accuracy:+.1f} points of accuracy (standard error {100 * gain.accuracy_error:.1f}) against "
            f"the same model fitted to the labelled rows alone, on {self.n_rows} held-out labelled rows"
        )
        if gain.accuracy_error == 0 == gain.accuracy:
            size = "the same model fitted to the labelled rows alone is right on the very same held-out rows"
        if gain.is_more_accurate:
            return f"The unlabelled rows helped: {size}."
        if gain.is_less_accurate:
            return f"The unlabelled rows did harm: {size}. Fit the labelled rows alone, or label more rows."
        if gain.has_lower_loss and self.gains[BASE_RATE].log_loss > 0:
            return (
                f"The unlabelled rows made the probabilities better (log loss {-gain.log_loss:+.3f}, standard error "
                f"{gain.log_loss_error:.3f}); whether accuracy changed, {self.n_rows} labelled rows cannot show: "
                f"{size}."
            )
        return f"Whether the unlabelled rows helped, {self.n_rows} labelled rows cannot show: {size}."


def compare(held_out: HeldOut, classes: list[str], gains: FloatArray, n_labelled: int) -> HeldOutComparison:
    """Score all models by their posteriors of unseen rows.

    Parameters
    ----------
    gains : array of shape (n_classes, n_classes)
        The rule by which all of them decide.
    """
    if held_out.reason:
        return HeldOutComparison(n_labelled, classes=classes, reason=held_out.reason)
    truth, rows = held_out.truth, np.arange(len(held_out.truth))
    decided = {name: decide(np.exp(values), gains) for name, values in held_out.log_posteriors.items()}
    right = {name: codes == truth for name, codes in decided.items()}
    losses = {
        name: -np.maximum(values[rows, truth], np.log(SMALLEST_PROBABILITY))
        for name, values in held_out.log_posteriors.items()
    }
    confusion = np.zeros((len(classes), len(classes)), dtype=np.intp)
    np.add.at(confusion, (truth, decided[ALL_ROWS]), 1)
    ours = held_out.log_posteriors[ALL_ROWS]
    return HeldOutComparison(
        len(truth),
        held_out.n_folds,
        classes,
        classes[int(np.bincount(decided[BASE_RATE]).argmax())],
        {
            name: _score(held_out.log_posteriors[name], truth, right[name], losses[name])
            for name in held_out.log_posteriors
        },
        {
            name: _gain(right[ALL_ROWS].astype(float) - right[name], losses[name] - losses[ALL_ROWS])
            for name in held_out.log_posteriors
            if name != ALL_ROWS
        },
        confusion,
        _curves(np.exp(ours[:, 1]), truth == 1) if len(classes) == 2 else None,
        n_unlabelled=held_out.n_unlabelled,
    )


def recall_and_precision(confusion: IntArray) -> list[tuple[float, float, float, float]]:
    """For each class recall, its standard error, precision, its standard error; NaN where there are no such rows."""
    found = []
    for code in range(len(confusion)):
        pairs = [(confusion[code, code], total) for total in (confusion[code].sum(), confusion[:, code].sum())]
        values = []
        for hits, total in pairs:
            share = hits / total if total else np.nan
            # One row more of each kind: no share of few rows is certain.
            smooth = (hits + 1) / (total + 2)
            values += [share, float(np.sqrt(smooth * (1 - smooth) / total)) if total else np.nan]
        found.append((values[0], values[1], values[2], values[3]))
    return found


def _gain(accuracy: FloatArray, log_loss: FloatArray) -> Gain:
    return Gain(float(accuracy.mean()), standard_error(accuracy), float(log_loss.mean()), standard_error(log_loss))


def _curves(probabilities: FloatArray, positive: BoolArray) -> Curves:
    false_rate, true_rate, _ = roc_curve(positive, probabilities)
    precision, recall, _ = precision_recall_curve(positive, probabilities)
    area, n_positive = float(roc_auc_score(positive, probabilities)), int(positive.sum())
    return Curves(
        false_rate,
        true_rate,
        area,
        area_error(area, n_positive, len(positive) - n_positive),
        recall,
        precision,
        float(positive.mean()),
    )


def _score(log_posterior: FloatArray, truth: IntArray, right: BoolArray, losses: FloatArray) -> Score:
    confidence = np.exp(log_posterior.max(axis=1))
    n_bins = int(np.clip(len(right) // ROWS_PER_BIN, 1, MOST_BINS))
    most_probable_is_right = log_posterior.argmax(axis=1) == truth
    bins = [
        (float(confidence[part].mean()), float(most_probable_is_right[part].mean()), len(part))
        for part in np.array_split(np.argsort(confidence, kind="stable"), n_bins)
    ]
    calibration_error = sum(count * abs(mean - share) for mean, share, count in bins) / len(right)
    return Score(
        float(right.mean()),
        standard_error(right.astype(float)),
        float(losses.mean()),
        standard_error(losses),
        float(calibration_error),
        bins,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

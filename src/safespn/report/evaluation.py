"""What trials with hidden labels say about the unlabelled rows: scores, their uncertainty, and a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from safespn.foundation.html_tables import html_table
from safespn.foundation.scoring import HARM
from safespn.report.curve_point import CurvePoint
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
from safespn.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNIMPORTANT = 0.02
"""A change of accuracy that lies within two points with 95 % confidence is called no difference of more than that."""
MODELS = {
    BASE_RATE: "always guessing",
    LOGISTIC: "logistic regression",
    FOREST: "random forest",
    LABELS_ONLY: "safespn, labels only",
    ALL_ROWS: "safespn, all rows",
}
"""The models that are compared, and what they are called in tables."""

HELPS, HARMS, NO_DIFFERENCE, DEPENDS = "helps", "harms", "no difference", "depends"
BETTER_PROBABILITIES, WORSE_PROBABILITIES = "better probabilities", "worse probabilities"
NO_BETTER_THAN_GUESSING, CANNOT_TELL = "no better than guessing", "cannot tell"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A learning curve without and with unlabelled rows, and what follows from it."""

    source: str
    target: str
    n_trials: int
    n_rows: int
    n_labelled: int
    n_test: int
    """Labelled rows that neither model sees in a trial; the others whose labels are hidden are scored, too."""
    points: list[CurvePoint]

    @property
    def base_rate(self) -> float:
        """Accuracy of always guessing the most frequent class."""
        return float(np.mean([point.accuracies[BASE_RATE].mean() for point in self.points]))

    @property
    def together(self) -> CurvePoint:
        """All numbers of labels together: scores are means over them, trial by trial."""
        points, names = self.points, list(self.points[0].accuracies)
        # As if rows did the same with every number of labels, which can only make errors larger.
        rivals = set.intersection(*(set(point.row_variances) for point in points))
        return CurvePoint(
            points[0].n_labelled,
            {name: np.mean([point.accuracies[name] for point in points], axis=0) for name in names},
            {name: np.mean([point.log_losses[name] for point in points], axis=0) for name in names},
            float(np.mean([point.overlap for point in points])),
            {
                name: (
                    float(np.mean([point.row_variances[name][0] for point in points])),
                    float(np.mean([point.row_variances[name][1] for point in points])),
                )
                for name in rivals
            },
            np.concatenate([point.unguarded_gains for point in points]),
        )

    @property
    def better(self) -> list[CurvePoint]:
        """Numbers of labels with which accuracy clearly rises."""
        return [point for point in self.points if point.is_clear(point.accuracy_gain, 1, len(self.points))]

    @property
    def worse(self) -> list[CurvePoint]:
        """Numbers of labels with which accuracy clearly falls."""
        return [point for point in self.points if point.is_clear(point.accuracy_gain, -1, len(self.points))]

    @property
    def verdict(self) -> str:
        """What the trials show, in one or two words: "helps", "harms", "cannot tell", ..."""
        whole = self.together
        low, high = whole.interval(whole.accuracy_gain)
        if not any(point.is_clear(point.gain_over(BASE_RATE)) for point in self.points):
            # Also of what is only not clearly better: unless it may be much better, it is nothing to rely on.
            bounds = [point.interval(point.gain_over(BASE_RATE))[1] for point in self.points]
            return NO_BETTER_THAN_GUESSING if max(bounds) <= UNIMPORTANT else CANNOT_TELL
        if self.better and self.worse:
            return DEPENDS
        if whole.is_clear(whole.accuracy_gain) or self.better:
            return HELPS
        if whole.is_clear(whole.accuracy_gain, -1) or self.worse:
            return HARMS
        if whole.is_clear(whole.log_loss_gain) and all(
            point.log_losses[ALL_ROWS].mean() < point.log_losses[BASE_RATE].mean() for point in self.points
        ):
            return BETTER_PROBABILITIES
        if whole.is_clear(whole.log_loss_gain, -1):
            return WORSE_PROBABILITIES
        return NO_DIFFERENCE if low >= -UNIMPORTANT and high <= UNIMPORTANT else CANNOT_TELL

    @property
    def recommendation(self) -> str:
        """Say in a sentence or two what to do; only what the trials can show."""
        if not any(point.is_clear(point.gain_over(BASE_RATE)) for point in self.points):
            return self._no_better_than_guessing()
        return self._answer(self.verdict) + self._beside_peers()

    @property
    def sentences(self) -> list[str]:
        """All that is to be said: what to do, and what plain EM would have done."""
        return [self.recommendation, *([self.danger] if self.danger else [])]

    @property
    def danger(self) -> str:
        """Say what the unlabelled rows do without the guard; empty if that was not tried."""
        gains = self.together.unguarded_gains
        if not len(gains):
            return ""
        n_harmed = int((gains < -HARM).sum())
        return (
            f"Without the guard (plain EM) the unlabelled rows change accuracy by {100 * gains.mean():+.1f} points on "
            f"average, and cost more than a point in {n_harmed} of {len(gains)} fits."
        )

    def _answer(self, verdict: str) -> str:
        whole, better, worse = self.together, self.better, self.worse
        harm = f"harm in {100 * np.mean([point.harm_rate for point in self.points]):.0f} % of trials"
        gains = [100 * point.accuracy_gain[0] for point in self.points]
        span = " to ".join(dict.fromkeys(f"{gain:+.1f}" for gain in (min(gains), max(gains))))
        if verdict == DEPENDS:
            return (
                f"It depends on the number of labels: accuracy rises with {_sizes(better)}, falls with {_sizes(worse)}."
            )
        fall, error = whole.log_loss_gain
        loss = f"log loss {-fall:+.3f}, standard error {error:.3f}"
        if verdict == HELPS:
            probabilities = (
                f" But the probabilities get worse ({loss})." if whole.is_clear(whole.log_loss_gain, -1) else ""
            )
            if 0 < len(better) < len(self.points):
                text = (
                    f"Yes, with {_sizes(better)} labels; with other numbers the trials show no clear change "
                    f"({span} points of accuracy, {harm})."
                )
            else:
                text = f"Yes, the unlabelled rows help: {span} points of accuracy, {harm}."
            return text + probabilities
        if verdict == HARMS:
            if 0 < len(worse) < len(self.points):
                return f"Rather not: accuracy falls with {_sizes(worse)} labels ({span} points, {harm})."
            return f"No, leave the unlabelled rows out: {span} points of accuracy, {harm}."
        low, high = (100 * edge for edge in whole.interval(whole.accuracy_gain))
        if not np.isfinite(high):
            return "Cannot tell from a single trial."
        within = f"between {low:+.1f} and {high:+.1f} points (95 % interval), {harm}"
        if verdict == BETTER_PROBABILITIES:
            return (
                f"They make the probabilities better ({loss}), and these are better than the class proportions. "
                f"Whether accuracy changes, these trials cannot show: {within}."
            )
        if verdict == WORSE_PROBABILITIES:
            return (
                f"Rather not: they make the probabilities worse ({loss}). Whether accuracy changes, these trials "
                f"cannot show: {within}."
            )
        if verdict == NO_DIFFERENCE:
            return f"They make no difference of more than {100 * UNIMPORTANT:.0f} points: accuracy changes by {within}."
        return f"Cannot tell: the change of accuracy is {within}; more trials or more labels would narrow this."

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

    def to_dict(self) -> dict[str, Any]:
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
                    "log_loss_gain": point.log_loss_gain[0],
                    "log_loss_gain_error": point.log_loss_gain[1],
                    "harm_rate": point.harm_rate,
                    "unguarded_gains": point.unguarded_gains.tolist(),
                }
                for point in self.points
            ],
            "verdict": self.verdict,
            "recommendation": self.recommendation,
            "danger": self.danger,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a line for each number of labels and model: means over trials, gains and errors."""
        lines = []
        for point in self.points:
            for name in MODELS:
                gain, error = (np.nan, np.nan) if name == ALL_ROWS else point.gain_over(name)
                lines.append(
                    {
                        "labels": point.n_labelled,
                        "model": name,
                        "accuracy": float(point.accuracies[name].mean()),
                        "log_loss": float(point.log_losses[name].mean()),
                        "gain_of_all_rows": gain,
                        "gain_error": error,
                    }
                )
        return pd.DataFrame(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw accuracy against the number of labels, with the 10-90 % band of the trials for our two models."""
        from safespn.plotting.library import axes_or_new, colour_of

        axes = axes_or_new(ax)
        sizes = [point.n_labelled for point in self.points]
        for code, (name, shown) in enumerate(reversed(MODELS.items())):
            trials = [point.accuracies[name] for point in self.points]
            is_ours = name in (ALL_ROWS, LABELS_ONLY)
            axes.plot(
                sizes,
                [values.mean() for values in trials],
                color=colour_of(code),
                marker="o",
                linestyle="-" if name == ALL_ROWS else "--",
                label=shown,
            )
            if is_ours:
                axes.fill_between(
                    sizes, *np.array([band(values) for values in trials]).T, color=colour_of(code), alpha=0.15
                )
        axes.set(xlabel="labelled rows", ylabel="accuracy", title=self.target)
        axes.set_xticks(sizes)
        axes.legend()
        return axes

    def _cells(self) -> list[list[str]]:
        points = self.points
        return [
            *(
                [shown, *(f"{100 * point.accuracies[name].mean():.1f} %" for point in points)]
                for name, shown in MODELS.items()
            ),
            ["gain from unlabelled rows", *(_gain_text(point.accuracy_gain) for point in points)],
            ["harm, share of trials", *(f"{100 * point.harm_rate:.0f} %" for point in points)],
        ]

    def _headings(self) -> list[str]:
        return ["accuracy", *(f"{point.n_labelled} labels" for point in self.points)]

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(text)}</p>" for text in self.sentences)
        return html_table(self._headings(), self._cells()) + sentences

    def __str__(self) -> str:
        lines = [self._headings(), *self._cells()]
        first = max(len(line[0]) for line in lines)
        width = max(len(cell) for line in lines for cell in line[1:]) + 2
        table = [line[0].ljust(first) + "".join(cell.rjust(width) for cell in line[1:]) for line in lines]
        return "\n".join([*table, *self.sentences])


def band(values: FloatArray) -> tuple[float, float]:
    """The 10-90 % band of the trials."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float(low), float(high)


def _gain_text(gain: tuple[float, float]) -> str:
    mean, error = gain
    return f"{100 * mean:+.1f} ± {100 * error:.1f}"


def _sizes(points: Sequence[CurvePoint]) -> str:
    return ", ".join(str(point.n_labelled) for point in points)


def _summary(accuracy: FloatArray, log_loss: FloatArray) -> dict[str, object]:
    return {
        "accuracy": float(accuracy.mean()),
        "accuracy_band": list(band(accuracy)),
        "log_loss": float(log_loss.mean()),
        "log_loss_band": list(band(log_loss)),
    }

"""Which charts a report shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.report.charts import Chart, Mark
from safespn.report.comparison import HeldOutComparison
from safespn.report.evaluation import Evaluation, band
from safespn.report.features import Relevance
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY
from safespn.report.peers import BASE_RATE, FOREST, LOGISTIC
from safespn.summaries import FeatureDensity, history_series, soft_label_histogram
from safespn.typing import FloatArray

SUPERVISED, SAFE = 1, 0
"""Colours of the two models."""
OURS = {LABELS_ONLY: SUPERVISED, ALL_ROWS: SAFE}
CURVES = {BASE_RATE: 7, LOGISTIC: 2, FOREST: 4, **OURS}
"""Colours of the lines of learning curves."""
MOST_BARS = 12
LOW_BARS = 0.3
"""Probabilities of categories that are all below it get an axis of their own."""
MOST_AREAS = 3
"""Classes whose densities are filled; more would hide each other."""


def class_legend(classes: list[str]) -> list[tuple[int, str, bool]]:
    """Colours of classes."""
    return [(code, name, False) for code, name in enumerate(classes)]


def history_charts(history: list[dict[str, Any]], returned: float) -> list[Chart]:
    """Objective, and worst case with the gain at the soft labels, over the iterations.

    Parameters
    ----------
    returned : float
        Worst case of the model that was returned, in nats.
    """
    if not history:
        return []
    steps = np.arange(1, len(history) + 1, dtype=np.float64)
    series = {name: history_series(history, name) for name in ("objective", "worst_case", "contrast")}
    last = {name: values[-1] for name, values in series.items()}
    return [
        Chart(
            "Objective",
            f"Over {len(history)} iterations from {series['objective'][0]:,.1f} to {last['objective']:,.1f} nats.",
            "iteration",
            "nats",
            [Mark("line", steps, series["objective"], SAFE)],
        ),
        Chart(
            "Gain over the supervised model",
            f"Two lines over {len(history)} iterations; at the end the worst case over all labellings is "
            f"{last['worst_case']:+,.1f} nats and the gain at the soft labels {last['contrast']:+,.1f} nats. "
            f"The model that was returned has a worst case of {returned:+,.1f} nats.",
            "iteration",
            "nats",
            [
                Mark("line", steps, np.zeros(len(steps)), 7),
                Mark("line", steps, np.full(len(steps), returned), SAFE, dashed=True),
                Mark("line", steps, series["worst_case"], SAFE),
                Mark("line", steps, series["contrast"], 2, dashed=True),
            ],
            [
                (SAFE, "worst case", False),
                (SAFE, "of the returned model", True),
                (2, "at the soft labels", True),
                (7, "supervised", False),
            ],
        ),
    ]


def soft_label_chart(soft_labels: FloatArray, classes: list[str]) -> Chart:
    """Stacked histogram of the largest soft label of each row, by its class."""
    edges, counts = soft_label_histogram(soft_labels)
    middles, tops = (edges[:-1] + edges[1:]) / 2, counts.cumsum(axis=0).astype(np.float64)
    marks = [
        Mark("bars", middles, top, code, top - count, 0.9 * (edges[1] - edges[0]))
        for code, (top, count) in enumerate(zip(tops, counts, strict=True))
    ]
    sure = float((soft_labels.max(axis=1) > 0.95).mean())
    return Chart(
        "How sure the soft labels are",
        f"Rows by their largest soft label; {100 * sure:.0f} % of {len(soft_labels)} rows have one above 0.95.",
        "largest soft label",
        "rows",
        marks,
        class_legend(classes),
        x_range=(float(edges[0]), 1.0),
    )


def calibration_chart(comparison: HeldOutComparison) -> Chart:
    """Accuracy against confidence, of our models."""
    marks, texts = [], []
    shown = {name: colour for name, colour in OURS.items() if name in comparison.scores}
    for name, colour in shown.items():
        confidence, accuracy, _ = np.array(comparison.scores[name].bins, dtype=np.float64).T
        marks += [Mark("line", confidence, accuracy, colour), Mark("points", confidence, accuracy, colour)]
        texts.append(f"{name} {comparison.scores[name].calibration_error:.3f}")
    lowest = min(0.5, *(float(mark.x.min()) for mark in marks))
    marks.append(Mark("line", np.array([lowest, 1.0]), np.array([lowest, 1.0]), 7, dashed=True))
    return Chart(
        "Calibration",
        f"Share of right predictions against confidence; the diagonal is perfect. Mean distance: {', '.join(texts)}.",
        "confidence",
        "share right",
        marks,
        [*((colour, name, False) for name, colour in shown.items()), (7, "perfect", True)],
        x_range=(lowest, 1.0),
        y_range=(0.0, 1.05),
    )


def threshold_charts(comparison: HeldOutComparison) -> list[Chart]:
    """ROC curve, and precision against recall, of the second of two classes."""
    curves = comparison.curves
    if curves is None:
        return []
    positive, ends = comparison.classes[1], np.array([0.0, 1.0])
    return [
        Chart(
            f"ROC curve of {positive}",
            f"Area under the curve {curves.area:.2f}, standard error {curves.area_error:.2f}; 0.5 is chance.",
            "share of other rows called so",
            "share found",
            [
                Mark("line", ends, ends, 7, dashed=True),
                Mark("line", curves.false_positive_rate, curves.true_positive_rate, SAFE),
            ],
            [(SAFE, f"all rows, area {curves.area:.2f} ± {curves.area_error:.2f}", False), (7, "chance", True)],
            x_range=(0.0, 1.0),
            y_range=(0.0, 1.05),
        ),
        Chart(
            f"Precision and recall of {positive}",
            f"Share of right calls against share found, over all thresholds; chance has {curves.share:.2f}.",
            "recall",
            "precision",
            [
                Mark("line", ends, np.full(2, curves.share), 7, dashed=True),
                Mark("line", curves.recall, curves.precision, SAFE),
            ],
            [(SAFE, "all rows", False), (7, "chance", True)],
            x_range=(0.0, 1.0),
            y_range=(0.0, 1.05),
        ),
    ]


def density_chart(density: FeatureDensity, classes: list[str]) -> Chart:
    """Distribution of a column in each class."""
    if density.categories is not None:
        return _category_chart(density, classes)
    edges, heights = density.histogram
    marks = []
    if len(edges):
        middles = (edges[:-1] + edges[1:]) / 2
        marks.append(Mark("histogram", middles, heights, 7, width=float(edges[1] - edges[0])))
    if len(classes) <= MOST_AREAS:
        marks += [Mark("area", density.values, density.densities[:, code], code) for code in range(len(classes))]
    marks += [
        Mark("line", density.values, density.densities[:, code], code, dashed=False) for code in range(len(classes))
    ]
    marks += [Mark("rug", values, np.empty(0), code) for code, values in enumerate(density.labelled)]
    peaks = density.values[density.densities.argmax(axis=0)]
    seen = "; ".join(f"{name} peaks at {peak:.3g}" for name, peak in zip(classes, peaks, strict=True))
    return Chart(density.name, f"Density of {density.name} by class: {seen}.", "", "density", marks)


def _category_chart(density: FeatureDensity, classes: list[str]) -> Chart:
    assert density.categories is not None
    n_bars = min(MOST_BARS, len(density.categories))
    shown = np.sort(np.argsort(-density.densities.max(axis=1), kind="stable")[:n_bars])
    width = 0.8 / len(classes)
    marks = [
        Mark(
            "bars",
            np.arange(n_bars, dtype=np.float64) + (code - (len(classes) - 1) / 2) * width,
            density.densities[shown, code],
            code,
            width=0.92 * width,
        )
        for code in range(len(classes))
    ]
    names = [density.categories[at] for at in shown]
    likeliest = "; ".join(
        f"{name}: most often {density.categories[int(density.densities[:, code].argmax())]}"
        for code, name in enumerate(classes)
    )
    rest = "" if n_bars == len(density.categories) else f" ({n_bars} of {len(density.categories)} categories)"
    return Chart(
        f"{density.name}{rest}",
        f"Probability of the categories of {density.name} by class. {likeliest}.",
        "",
        "probability",
        marks,
        x_names=names,
        y_range=(0.0, 1.0 if (highest := float(density.densities.max())) > LOW_BARS else 1.15 * highest),
    )


def curve_charts(evaluation: Evaluation) -> list[Chart]:
    """Accuracy and log loss against the number of labels, of our models with bands, and of others."""
    return [
        _curve_chart(evaluation, "Accuracy", "accuracies"),
        _curve_chart(evaluation, "Log loss", "log_losses"),
    ]


def _curve_chart(evaluation: Evaluation, title: str, attribute: str) -> Chart:
    sizes = np.array([point.n_labelled for point in evaluation.points], dtype=np.float64)
    marks, texts = [], []
    for name, colour in CURVES.items():
        trials = [getattr(point, attribute)[name] for point in evaluation.points]
        means = np.array([values.mean() for values in trials])
        low, high = np.array([band(values) for values in trials]).T
        if name in OURS:
            marks.append(Mark("band", sizes, high, colour, low))
        marks.append(Mark("line", sizes, means, colour, dashed=name != ALL_ROWS))
        marks.append(Mark("points", sizes, means, colour))
        texts.append(f"{name} from {means[0]:.3f} to {means[-1]:.3f}")
    return Chart(
        title,
        f"{title} with {int(sizes[0])} to {int(sizes[-1])} labels: {'; '.join(texts)}. Bands hold 80 % of trials.",
        "labelled rows",
        "",
        marks,
        [(colour, name, name != ALL_ROWS) for name, colour in CURVES.items()],
    )


def relevance_bars(relevances: list[Relevance], most: int = 20) -> list[tuple[str, float, float, float]]:
    """Name, loss, standard error and length in per cent of the bar of columns that matter beyond doubt."""
    clear = [relevance for relevance in relevances if relevance.is_clear][:most]
    largest = max((relevance.loss for relevance in clear), default=1.0)
    return [(each.name, each.loss, each.error, 100 * each.loss / largest) for each in clear]


def soft_label_counts(soft_labels: FloatArray, classes: list[str]) -> list[tuple[str, float, int]]:
    """Name of each class, sum of its soft labels, and number of rows where it has the largest."""
    best = soft_labels.argmax(axis=1) if len(soft_labels) else np.empty(0)
    return [(name, float(soft_labels[:, code].sum()), int((best == code).sum())) for code, name in enumerate(classes)]

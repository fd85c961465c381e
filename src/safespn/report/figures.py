"""Which charts a report shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.report.charts import Chart, Mark
from safespn.report.comparison import Comparison
from safespn.report.features import Relevance
from safespn.report.learning_curve import Evaluation, band
from safespn.summaries import FeatureDensity, history_series, soft_label_histogram
from safespn.typing import FloatArray

SUPERVISED, SAFE = 1, 0
"""Colours of the two models."""
MOST_BARS = 12


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


def calibration_chart(comparison: Comparison) -> Chart:
    """Accuracy against confidence, of both models."""
    marks, texts = [], []
    for name, colour in {"supervised": SUPERVISED, "safe": SAFE}.items():
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
        [(SUPERVISED, "supervised", False), (SAFE, "safe", False), (7, "perfect", True)],
        x_range=(lowest, 1.0),
        y_range=(0.0, 1.05),
    )


def density_chart(density: FeatureDensity, classes: list[str]) -> Chart:
    """Distribution of a column in each class."""
    if density.categories is not None:
        return _category_chart(density, classes)
    marks = [Mark("area", density.values, density.densities[:, code], code) for code in range(len(classes))]
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
        y_range=(0.0, 1.0),
    )


def curve_charts(evaluation: Evaluation) -> list[Chart]:
    """Accuracy and log loss against the number of labels, of both models, with bands."""
    return [
        _curve_chart(evaluation, "Accuracy", "labels_only_accuracy", "all_rows_accuracy"),
        _curve_chart(evaluation, "Log loss", "labels_only_log_loss", "all_rows_log_loss"),
    ]


def _curve_chart(evaluation: Evaluation, title: str, labels_only: str, all_rows: str) -> Chart:
    sizes = np.array([point.n_labelled for point in evaluation.points], dtype=np.float64)
    marks, texts = [], []
    for name, attribute, colour in (("labels only", labels_only, SUPERVISED), ("all rows", all_rows, SAFE)):
        trials = [getattr(point, attribute) for point in evaluation.points]
        means = np.array([values.mean() for values in trials])
        low, high = np.array([band(values) for values in trials]).T
        marks += [
            Mark("band", sizes, high, colour, low),
            Mark("line", sizes, means, colour, dashed=name == "labels only"),
            Mark("points", sizes, means, colour),
        ]
        texts.append(f"{name} from {means[0]:.3f} to {means[-1]:.3f}")
    return Chart(
        title,
        f"{title} with {int(sizes[0])} to {int(sizes[-1])} labels: {'; '.join(texts)}. Bands hold 80 % of trials.",
        "labelled rows",
        "",
        marks,
        [(SUPERVISED, "labels only", True), (SAFE, "all rows", False)],
    )


def relevance_bars(relevances: list[Relevance], most: int = 20) -> list[tuple[str, float, float]]:
    """Name, loss in nats and length in per cent of the bar of the columns that matter most."""
    largest = max((relevance.loss for relevance in relevances), default=0.0)
    scale = 100 / largest if largest > 0 else 0.0
    return [(each.name, each.loss, scale * max(each.loss, 0.0)) for each in relevances[:most]]


def soft_label_counts(soft_labels: FloatArray, classes: list[str]) -> list[tuple[str, float, int]]:
    """Name of each class, sum of its soft labels, and number of rows where it has the largest."""
    best = soft_labels.argmax(axis=1) if len(soft_labels) else np.empty(0)
    return [(name, float(soft_labels[:, code].sum()), int((best == code).sum())) for code, name in enumerate(classes)]

"""Pictures of how a fit went: gains over the supervised model by iteration, and the soft labels it ended with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safespn.plotting.inputs import class_names
from safespn.plotting.library import axes_or_new, colour_of, require_matplotlib
from safespn.summaries import history_series, soft_label_histogram
from safespn.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from safespn.classifier import SafeSPNClassifier

ZERO = "0.5"


@dataclass(eq=False)
class HistoryDisplay:
    """Gains over the supervised model by iteration; made by :func:`plot_history`.

    Parameters
    ----------
    worst_case, contrast : array of shape (n_iterations,)
        In nats.
    validation_score : array of shape (n_iterations,)
        In nats per validation row, NaN if there are none.
    returned : float
        Worst case of the model that was returned, in nats.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    worst_case: FloatArray
    contrast: FloatArray
    validation_score: FloatArray
    returned: float
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, ax: Axes | None = None) -> HistoryDisplay:
        """Draw into the given axes, or into a new figure; returns itself, with ``ax_`` and ``figure_``."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        iterations = np.arange(1, len(self.worst_case) + 1)
        self.ax_.axhline(0.0, color=ZERO, linewidth=0.8, label="supervised model")
        self.ax_.plot(iterations, self.contrast, color=colour_of(2), linestyle="--", label="at the soft labels")
        self.ax_.plot(iterations, self.worst_case, color=colour_of(0), label="worst case")
        if np.isfinite(self.returned):
            self.ax_.axhline(
                self.returned,
                color=colour_of(0),
                linestyle=":",
                linewidth=1.0,
                label="worst case of the returned model",
            )
        self.ax_.set(xlabel="iteration", ylabel="gain over the supervised model (nats)")
        lines = list(self.ax_.get_lines())
        if not np.isnan(self.validation_score).all():
            right = self.ax_.twinx()
            lines += right.plot(iterations, self.validation_score, color=colour_of(1), label="validation rows (right)")
            right.set_ylabel("log-likelihood per validation row (nats)")
        self.ax_.legend(handles=lines, fontsize="small")
        return self


def plot_history(classifier: SafeSPNClassifier, *, ax: Axes | None = None) -> HistoryDisplay:
    """Draw how the semi-supervised fit gained on the supervised model.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted with unlabelled rows.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    HistoryDisplay
        With ``ax_`` and ``figure_``, and the values drawn.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the classifier has seen no unlabelled rows.
    """
    require_matplotlib()
    if not classifier.history_:
        raise ValueError("the classifier was fitted without unlabelled rows, so it has no history to draw")
    return HistoryDisplay(
        history_series(classifier.history_, "worst_case"),
        history_series(classifier.history_, "contrast"),
        history_series(classifier.history_, "validation_score"),
        classifier.safety_.worst_case,
    ).plot(ax)


@dataclass(eq=False)
class SoftLabelsDisplay:
    """How certain the soft labels are; made by :func:`plot_soft_labels`.

    Parameters
    ----------
    edges : array of shape (n_bins + 1,)
        Edges of the bins of the largest soft label.
    counts : array of shape (n_classes, n_bins)
        Number of unlabelled rows in each bin, by the class of the largest soft label.
    class_names : list of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    edges: FloatArray
    counts: IntArray
    class_names: list[str]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, ax: Axes | None = None) -> SoftLabelsDisplay:
        """Draw into the given axes, or into a new figure; returns itself, with ``ax_`` and ``figure_``."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        tops = self.counts.cumsum(axis=0)
        for code, name in enumerate(self.class_names):
            self.ax_.bar(
                self.edges[:-1],
                self.counts[code],
                0.94 * np.diff(self.edges),
                bottom=tops[code] - self.counts[code],
                align="edge",
                color=colour_of(code),
                label=f"class {name}",
            )
        self.ax_.set(xlabel="largest soft label", ylabel="unlabelled rows", xlim=(self.edges[0], self.edges[-1]))
        self.ax_.legend(fontsize="small")
        return self


def plot_soft_labels(classifier: SafeSPNClassifier, *, ax: Axes | None = None) -> SoftLabelsDisplay:
    """Draw how certain the soft labels are: unlabelled rows by their largest soft label, stacked by its class.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted with unlabelled rows.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    SoftLabelsDisplay
        With ``ax_`` and ``figure_``, and the values drawn.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the classifier has seen no unlabelled rows.
    """
    require_matplotlib()
    if not len(classifier.soft_labels_):
        raise ValueError("the classifier was fitted without unlabelled rows, so it has no soft labels to draw")
    edges, counts = soft_label_histogram(classifier.soft_labels_)
    return SoftLabelsDisplay(edges, counts, class_names(classifier)).plot(ax)

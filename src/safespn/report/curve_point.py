"""Scores of one point of a learning curve, and how uncertain their differences are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student_t

from safespn.foundation.scoring import HARM, standard_error
from safespn.foundation.stratified import TEST_SHARE
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY
from safespn.report.peers import FOREST, LOGISTIC
from safespn.typing import FloatArray

NEGLIGIBLE = 1e-3
"""Gains below this are not called gains, however certain."""
CONFIDENCE = 0.95


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
    row_variances : dict
        By the name of a model, what the choice of the labelled rows adds to the squared standard errors of our gains
        over it in accuracy and in log loss; see :func:`row_variance`.
    unguarded_gains : array
        Gain in accuracy over the labels only of plain EM, which uses unlabelled rows without a guard; one entry for
        each trial in which it was fitted.
    """

    n_labelled: int
    accuracies: dict[str, FloatArray]
    log_losses: dict[str, FloatArray]
    overlap: float = 0.0
    row_variances: dict[str, tuple[float, float]] = field(default_factory=dict)
    unguarded_gains: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def n_trials(self) -> int:
        return len(self.accuracies[ALL_ROWS])

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
        falls = self.log_losses[LABELS_ONLY] - self.log_losses[ALL_ROWS]
        return self.mean_and_error(falls, self.row_variances.get(LABELS_ONLY, (0.0, 0.0))[1])

    @property
    def best_peer(self) -> str:
        """The most accurate of the models that people would use instead."""
        return max((LOGISTIC, FOREST), key=lambda name: float(self.accuracies[name].mean()))

    def quantile(self, n_questions: int = 1) -> float:
        """Standard errors from the mean to the end of its 95 % interval: more where there are few trials.

        With several questions all intervals hold together (Bonferroni).
        """
        return float(student_t.ppf(1 - (1 - CONFIDENCE) / (2 * n_questions), max(self.n_trials - 1, 1)))

    def is_clear(self, gain: tuple[float, float], sign: int = 1, n_questions: int = 1) -> bool:
        """Whether the 95 % interval of a gain does not hold zero, and the gain is not negligible."""
        mean, error = gain
        return sign * mean > max(self.quantile(n_questions) * error, NEGLIGIBLE)

    def interval(self, gain: tuple[float, float]) -> tuple[float, float]:
        """The 95 % interval of a gain."""
        mean, error = gain
        return mean - self.quantile() * error, mean + self.quantile() * error

    def gain_over(self, name: str) -> tuple[float, float]:
        """Mean gain in accuracy of the fit to all rows over another model, and its standard error."""
        gains = self.accuracies[ALL_ROWS] - self.accuracies[name]
        return self.mean_and_error(gains, self.row_variances.get(name, (0.0, 0.0))[0])

    def mean_and_error(self, values: FloatArray, of_rows: float = 0.0) -> tuple[float, float]:
        """Mean over trials and its standard error.

        Trials have labels and rows to score in common, so that there is more doubt than their spread shows. What comes
        on top is the larger of two estimates: the one for overlapping training sets (Nadeau and Bengio 2003), and
        ``of_rows``, the one for rows that are scored again and again.
        """
        error = standard_error(values)
        if not np.isfinite(error):
            return float(values.mean()), error
        shared = TEST_SHARE * self.overlap
        of_labels = error**2 * len(values) * shared / (1 - shared)
        return float(values.mean()), float(np.sqrt(error**2 + max(of_labels, of_rows)))


def row_variance(gains: FloatArray) -> float:
    """What the choice of the rows adds to the squared standard error of a mean over trials and rows.

    Two-way clustering (Cameron, Gelbach and Miller 2011): squared standard errors by trials and by rows are added, less
    that of independent cells, which both contain. This is the part beside that of the trials.

    Parameters
    ----------
    gains : array of shape (n_trials, n_rows)
        NaN where a trial did not score a row.
    """
    scored = np.isfinite(gains)
    seen = scored.any(axis=0)
    if seen.sum() < 2:
        return 0.0
    of_rows = np.where(scored, gains, 0.0)[:, seen].sum(axis=0) / scored[:, seen].sum(axis=0)
    of_cells = gains[scored]
    return max(0.0, float(of_rows.var(ddof=1) / len(of_rows) - of_cells.var(ddof=1) / len(of_cells)))

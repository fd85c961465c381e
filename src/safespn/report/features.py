"""What the model says about single columns: their densities by class, and how much each one matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from safespn.classifier import SafeSPNClassifier
from safespn.report.comparison import SMALLEST_PROBABILITY
from safespn.typing import FloatArray, IntArray

N_GRID = 81
MOST_ROWS = 2_000
"""Labelled rows that relevance is measured on at most."""
MOST_COLUMNS = 200
"""Columns beyond which measuring relevance would take too long."""
MOST_RUG_ROWS = 60


@dataclass(frozen=True, eq=False)
class FeatureDensity:
    """Distribution of one column in each class, all other columns marginalised exactly.

    Parameters
    ----------
    name : str
    values : array of shape (n_values,)
        Where the density was computed; numbers of categories if there are any.
    densities : array of shape (n_values, n_classes)
        Densities, or probabilities of categories.
    categories : list of str, optional
    labelled : list of arrays
        For each class the values of labelled rows, for a continuous column.
    """

    name: str
    values: FloatArray
    densities: FloatArray
    categories: list[str] | None
    labelled: list[FloatArray]


@dataclass(frozen=True)
class Relevance:
    """Loss of mean log p(class | row) on labelled rows, in nats, when a column is not known."""

    name: str
    loss: float


def relevances(
    classifier: SafeSPNClassifier, names: list[str], table: FloatArray, codes: IntArray
) -> list[Relevance] | None:
    """Measure how much each column matters, most important first; None if there are too many.

    Parameters
    ----------
    table : array of shape (n_labelled, n_features)
        Encoded labelled rows.
    codes : array of shape (n_labelled,)
        Numbers of their classes.
    """
    if len(names) > MOST_COLUMNS:
        return None
    table, codes = table[:MOST_ROWS], codes[:MOST_ROWS]
    full = _mean_log_posterior(classifier, table, codes)
    measured = []
    for column, name in enumerate(names):
        without = table.copy()
        without[:, column] = np.nan
        measured.append(Relevance(name, full - _mean_log_posterior(classifier, without, codes)))
    return sorted(measured, key=lambda relevance: -relevance.loss)


def feature_density(
    classifier: SafeSPNClassifier, column: int, name: str, table: FloatArray, codes: IntArray
) -> FeatureDensity:
    """Compute the distribution of a column in each class; ``codes`` is -1 for unlabelled rows."""
    categories: list[Any] | None = classifier._encoder.categories[column]
    if categories is None:
        seen = table[:, column][~np.isnan(table[:, column])]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        room = 0.08 * (high - low) or max(abs(low), 1.0)
        values = np.linspace(low - room, high + room, N_GRID)
    else:
        values = np.arange(len(categories), dtype=np.float64)
    rows = np.full((len(values), table.shape[1]), np.nan)
    rows[:, column] = values
    weights = classifier.spn_.log_joint(np.full((1, table.shape[1]), np.nan))
    densities = np.exp(classifier.spn_.log_joint(rows) - weights)
    labelled = [
        table[codes == code, column][:MOST_RUG_ROWS] for code in range(len(classifier.classes_)) if categories is None
    ]
    names = None if categories is None else [str(category) for category in categories]
    return FeatureDensity(name, values, densities, names, labelled)


def _mean_log_posterior(classifier: SafeSPNClassifier, table: FloatArray, codes: IntArray) -> float:
    joint = classifier.spn_.log_joint(table)
    posterior = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return float(np.maximum(posterior[np.arange(len(codes)), codes], np.log(SMALLEST_PROBABILITY)).mean())

"""How much each column matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.classifier import SafeSPNClassifier
from safespn.foundation.scoring import SMALLEST_PROBABILITY
from safespn.typing import FloatArray, IntArray

MOST_ROWS = 2_000
"""Labelled rows that relevance is measured on at most."""
MOST_COLUMNS = 200
"""Columns beyond which measuring relevance would take too long."""


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
    used = [column for column, kind in enumerate(classifier.column_types_) if kind != "ignored"]
    if len(used) > MOST_COLUMNS:
        return None
    table, codes = table[:MOST_ROWS], codes[:MOST_ROWS]
    full = _mean_log_posterior(classifier, table, codes)
    measured = []
    for column in used:
        without = table.copy()
        without[:, column] = np.nan
        measured.append(Relevance(names[column], full - _mean_log_posterior(classifier, without, codes)))
    return sorted(measured, key=lambda relevance: -relevance.loss)


def _mean_log_posterior(classifier: SafeSPNClassifier, table: FloatArray, codes: IntArray) -> float:
    _, posterior = classifier._committee.evaluate(table)
    return float(np.maximum(posterior[np.arange(len(codes)), codes], np.log(SMALLEST_PROBABILITY)).mean())

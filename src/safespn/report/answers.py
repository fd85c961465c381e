"""Answers for the rows that a report lists: why they are predicted as they are, and what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import entr

from safespn.classifier import SafeSPNClassifier
from safespn.typing import FloatArray, IntArray

MOST_EXPLAINED_COLUMNS = 40
"""Explanations of wider tables would take too long."""
MOST_MEASURED_COLUMNS = 200
TOLERANCE, MOST_ORDERS = 0.1, 500
"""Of the values shown, which have one digit after the point."""
N_SHOWN, N_LISTED = 3, 10
SMALLEST_SHOWN = 0.05
"""Smaller values would be shown as zero."""


@dataclass(frozen=True)
class Measurement:
    """An uncertain row with missing cells, and the one to measure next."""

    row: int
    best: str
    probability: float
    column: str
    entropy: float
    drop: float
    """By how much the entropy is expected to fall, in nats."""


def contributions(
    classifier: SafeSPNClassifier, features: pd.DataFrame, rows: Sequence[int], seed: int
) -> dict[int, list[tuple[str, float]]]:
    """Columns with the largest Shapley values of some rows, for the predicted class; none where there are too many."""
    if not len(rows) or features.shape[1] > MOST_EXPLAINED_COLUMNS:
        return {}
    found = classifier.explain(
        features.iloc[list(rows)], random_state=seed, tolerance=TOLERANCE, max_permutations=MOST_ORDERS
    )
    result = {}
    for row, values in zip(rows, found.values, strict=True):
        largest = np.argsort(-np.abs(values), kind="stable")[:N_SHOWN].tolist()
        result[row] = [
            (found.columns[column], float(values[column]))
            for column in largest
            if abs(values[column]) >= SMALLEST_SHOWN
        ]
    return result


def measurements(
    classifier: SafeSPNClassifier, features: pd.DataFrame, encoded: FloatArray, rows: IntArray, seed: int
) -> list[Measurement]:
    """List the least certain of some rows that miss cells, those first where a measurement should be most informative.

    Parameters
    ----------
    features : DataFrame
        Features of the whole table.
    encoded : array of shape (n_rows, n_columns)
        The same, encoded.
    rows : array of shape (n_unlabelled,)
        Numbers of the rows to look at.
    """
    rows = rows[np.isnan(encoded[rows]).any(axis=1)]
    if not len(rows) or features.shape[1] > MOST_MEASURED_COLUMNS:
        return []
    probabilities = classifier.predict_proba(features.iloc[rows])
    entropy = entr(probabilities).sum(axis=1)
    least_certain = np.argsort(-entropy, kind="stable")[:N_LISTED]
    drops = classifier.next_measurement(features.iloc[rows[least_certain]], random_state=seed)
    names, classes = [str(name) for name in features.columns], [str(name) for name in classifier.classes_]
    found = [
        Measurement(
            int(rows[at]),
            classes[int(probabilities[at].argmax())],
            float(probabilities[at].max()),
            names[int(of_row.argmax())],
            float(entropy[at]),
            float(of_row.max()),
        )
        for at, of_row in zip(least_certain.tolist(), drops, strict=True)
        if of_row.max() > 0
    ]
    return sorted(found, key=lambda each: -each.drop)

"""What may be wrong with the data: gaps, copies, and labelled rows that are not like the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from safespn.typing import BoolArray, FloatArray

FEWEST_ROWS = 10
"""Labelled and unlabelled rows that it takes to compare them."""
MOST_ROWS = 2_000
NOTICEABLE = 0.6
"""Area under the curve above which the difference between labelled and unlabelled rows is reported."""


@dataclass(frozen=True)
class Shift:
    """How well a classifier separates labelled from unlabelled rows by their features, cross-validated.

    Parameters
    ----------
    area : float
        Area under the ROC curve; 0.5 is chance.
    standard_error : float
    columns : list of str
        The most informative columns, if labelled and unlabelled rows differ.
    reason : str
        Why it was not measured; empty if it was.
    """

    area: float = float("nan")
    standard_error: float = float("nan")
    columns: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_noticeable(self) -> bool:
        return self.area - 2 * self.standard_error > 0.5 and self.area > NOTICEABLE


@dataclass(frozen=True)
class Gaps:
    """Shares of missing cells in a column."""

    name: str
    labelled: float
    unlabelled: float


@dataclass(frozen=True)
class Quality:
    """Notes on the data."""

    gaps: list[Gaps]
    n_copies: int
    """Rows whose features equal those of an earlier row."""
    shift: Shift


def look_at_quality(features: pd.DataFrame, table: FloatArray, is_labelled: BoolArray, seed: int) -> Quality:
    """Look for gaps, copies and shift; ``table`` holds the features as numbers."""
    missing = np.isnan(table)
    gaps = [
        Gaps(
            str(name),
            float(missing[is_labelled, column].mean()),
            float(missing[~is_labelled, column].mean()) if (~is_labelled).any() else float("nan"),
        )
        for column, name in enumerate(features.columns)
        if missing[:, column].any()
    ]
    gaps.sort(key=lambda each: -np.nanmax([each.labelled, each.unlabelled]))
    n_copies = int(features.duplicated().sum())
    return Quality(gaps, n_copies, measure_shift([str(name) for name in features.columns], table, is_labelled, seed))


def measure_shift(names: list[str], table: FloatArray, is_labelled: BoolArray, seed: int) -> Shift:
    """Cross-validate a classifier of labelled against unlabelled rows."""
    n_labelled, n_unlabelled = int(is_labelled.sum()), int((~is_labelled).sum())
    if min(n_labelled, n_unlabelled) < FEWEST_ROWS:
        return Shift(
            reason=f"it takes {FEWEST_ROWS} labelled and {FEWEST_ROWS} unlabelled rows; "
            f"there are {n_labelled} and {n_unlabelled}"
        )
    generator = np.random.default_rng(seed)
    rows = np.concatenate(
        [generator.permutation(np.nonzero(part)[0])[: MOST_ROWS // 2] for part in (is_labelled, ~is_labelled)]
    )
    forest = RandomForestClassifier(
        100, min_samples_leaf=3, class_weight="balanced_subsample", random_state=seed, n_jobs=1
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    answer = is_labelled[rows]
    scores = cross_val_predict(forest, table[rows], answer, cv=folds, method="predict_proba")[:, 1]
    area = float(roc_auc_score(answer, scores))
    shift = Shift(area, area_error(area, int(answer.sum()), int((~answer).sum())))
    if not shift.is_noticeable:
        return shift
    telling = np.argsort(-forest.fit(table[rows], answer).feature_importances_, kind="stable")[:3]
    return Shift(shift.area, shift.standard_error, tuple(names[column] for column in telling))


def area_error(area: float, n_positive: int, n_negative: int) -> float:
    """Standard error of an area under the ROC curve (Hanley and McNeil, 1982)."""
    both_above = area / (2 - area)
    both_below = 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n_positive - 1) * (both_above - area**2) + (n_negative - 1) * (both_below - area**2)
    return float(np.sqrt(max(variance, 0.0) / (n_positive * n_negative)))

"""Trials of the wide comparison as one data frame, and the means that tables and pictures show."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.exceptions import DatasetNotFoundError
from safespn.foundation.atomic_files import atomic_write
from safespn.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

SCORES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "log_loss": "log loss",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
"""Scores and their names."""
LOWER_IS_BETTER = ("log_loss", "brier", "calibration_error")

NAMES = {
    "safespn": "safespn",
    "supervised": "safespn, supervised members",
    "labels_only": "safespn, labels only",
    "plain_em": "safespn, plain EM",
    "blocks": "safespn, blocks alone",
    "components": "safespn, components alone",
    "forest": "safespn, forest alone",
    "lr": "logistic regression",
    "rf": "random forest",
    "et": "extra trees",
    "svc": "SVC",
    "hgb": "histogram gradient boosting",
    "spread": "label spreading",
    "selftrain": "self-training",
    "base": "base rate",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
}
"""Methods and their names."""
VARIANTS = ("supervised", "labels_only", "plain_em", "blocks", "components", "forest")
"""Variants of ours, which are not ranked beside the default: they would only crowd the comparators out."""

KEY = ["table", "budget", "trial"]
CERTIFICATE = ["worst_case", "fallback", "disagreement"]
FIELDS = [*KEY, "method", *SCORES, *CERTIFICATE, "seconds", "error"]
REQUIRED = [*KEY, "method", "accuracy", "macro_f1", "log_loss", "brier"]


def as_frame(trials: Iterable[tuple[str, int, int, dict[str, dict[str, dict[str, Any]]]]]) -> pd.DataFrame:
    """Put trials (table, budget, number, fit -> method -> score -> value) into rows, one per method."""
    import pandas as pd

    rows = [
        {"table": table, "budget": budget, "trial": number, "method": method, **scores}
        for table, budget, number, fits in trials
        for methods in fits.values()
        for method, scores in methods.items()
    ]
    return pd.DataFrame(rows, columns=FIELDS)


def read_recorded(path: Path) -> pd.DataFrame:
    """Read recorded trials: a CSV file with the columns of ours, or those that matter."""
    import pandas as pd

    frame = pd.read_csv(path, dtype={"error": str})
    lacking = [column for column in REQUIRED if column not in frame]
    if lacking:
        raise DatasetNotFoundError(
            f"{path} has no column {lacking[0]!r}; recorded trials need the columns {', '.join(REQUIRED)}"
        )
    return frame.reindex(columns=FIELDS)


def write_trials(path: Path, trials: pd.DataFrame) -> None:
    """Write all trials as one compressed CSV file, the same bytes for the same trials."""
    atomic_write(path, gzip.compress(trials.to_csv(index=False, float_format="%.10g").encode(), mtime=0))


def methods_in(trials: pd.DataFrame) -> list[str]:
    """Methods that have finished some of the trials, in the order of :data:`NAMES`, unknown ones last."""
    present = set(trials.loc[trials["log_loss"].notna(), "method"])
    return [*(name for name in NAMES if name in present), *sorted(present - set(NAMES))]


def name_of(method: str) -> str:
    """Name of a method for readers."""
    return NAMES.get(method, method)


def complete(trials: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Trials that all of some methods have finished, with these methods only."""
    chosen = trials[trials["method"].isin(methods) & trials["log_loss"].notna()]
    n_finished = chosen.groupby(KEY)["method"].transform("nunique")
    return chosen[n_finished == len(set(methods))]


def mean_by_table(trials: pd.DataFrame, score: str) -> pd.DataFrame:
    """Mean of a score over trials: one row per table, one column per method."""
    return trials.pivot_table(index="table", columns="method", values=score, aggfunc="mean", dropna=False)


def higher_is_better(values: FloatArray, score: str) -> FloatArray:
    """Turn a score round where lower is better."""
    return np.asarray(-values if score in LOWER_IS_BETTER else values, dtype=np.float64)

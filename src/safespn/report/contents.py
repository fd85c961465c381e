"""The contents of a report as plain values, independent of its layout."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import sklearn

from safespn import __version__
from safespn.classifier import SafeSPNClassifier
from safespn.foundation.labels import codes_of
from safespn.report.answers import Measurement, contributions, measurements
from safespn.report.comparison import HeldOutComparison, compare
from safespn.report.features import MOST_COLUMNS, Relevance, by_class_difference
from safespn.report.held_out import predict_held_out
from safespn.report.quality import Quality, look_at_quality
from safespn.report.rows import (
    Disagreement,
    Query,
    Unlikely,
    comparable_densities,
    disagreements,
    queries,
    unlikely_rows,
    usual_cell_densities,
)
from safespn.safety.report import SafetyReport
from safespn.summaries import FeatureDensity, feature_density
from safespn.tables import ColumnType, TrainingTable
from safespn.typing import FloatArray, IntArray

FEW_FOLDS = 3
"""Folds of a quick look at the quality of a fit, which then takes a few times as long as the fit."""
MOST_DENSITIES = 24
N_SHOWN_CELLS = 4


@dataclass(frozen=True, eq=False)
class Report:
    """What was fitted on what, what came out, and what should be looked at."""

    version: str
    date: str
    versions: dict[str, str]
    """Of Python and of the libraries that computed this."""
    source: str
    target: str
    classes: list[str]
    class_counts: dict[str, int]
    n_rows: int
    n_labelled: int
    columns: list[ColumnType]
    settings: dict[str, Any]
    network: dict[str, int]
    notes: list[str]
    warnings: list[str]
    safety: SafetyReport
    comparison: HeldOutComparison
    history: list[dict[str, Any]]
    soft_labels: FloatArray
    densities: list[FeatureDensity]
    relevances: list[Relevance] | None
    disagreements: list[Disagreement]
    n_disagreements: int
    queries: list[Query]
    whys: dict[int, list[tuple[str, float]]]
    """Columns with the largest Shapley values of the rows that are listed."""
    measurements: list[Measurement]
    unlikely: list[Unlikely]
    quality: Quality
    shown_columns: list[str]
    """Columns whose cells are listed beside rows: those that matter most."""
    features: pd.DataFrame
    labels: Any
    ids: Any = None
    """Names of the rows, if a column has them."""

    @property
    def n_unlabelled(self) -> int:
        return self.n_rows - self.n_labelled

    def row_number(self, row: int) -> int | str:
        """Number of a row in the file, counted from 1 (the table may be a sample of it), or its name if it has one."""
        name = "" if self.ids is None else str(self.ids[row])
        return name or int(self.features.index[row]) + 1

    def cells(self, row: int) -> list[Any]:
        """Cells of a row in the columns that are shown."""
        return [self.features[name].iloc[row] for name in self.shown_columns]


def collect_report(classifier: SafeSPNClassifier, table: TrainingTable, seed: int = 0) -> Report:
    """Compute the contents of a report on a fitted classifier and its table."""
    table, places = table.for_report(seed)
    names = [str(name) for name in table.features.columns]
    known, unknown = table.is_labelled, np.nonzero(~table.is_labelled)[0]
    encoded, codes = _encoded(classifier, table)
    held_out = predict_held_out(classifier, table, encoded, codes, seed)
    used = table.used_columns
    if held_out.relevances is None:
        ranked = by_class_difference(used, names, encoded, codes)
    else:
        ranked = [relevance.name for relevance in held_out.relevances]
    usual = usual_cell_densities(classifier, encoded) if len(names) <= MOST_COLUMNS else None
    densities = comparable_densities(classifier.score_samples(table.features), encoded, usual)
    safe = classifier.predict_proba(table.features)[unknown]
    supervised = classifier.supervised_.predict_proba(table.features)[unknown]
    listed, n_listed = disagreements(supervised, safe, unknown, classifier.classes_)
    to_label = queries(classifier, table.features.iloc[unknown], safe, densities[unknown], unknown, seed)
    rows = list(dict.fromkeys([each.row for each in to_label] + [each.row for each in listed]))
    classes = [str(name) for name in classifier.classes_]
    return Report(
        version=__version__,
        date=date.today().isoformat(),
        versions={"Python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__},
        source=table.source,
        target=table.target,
        classes=classes,
        class_counts=dict(sorted(Counter(table.labels[known].tolist()).items())),
        n_rows=len(encoded),
        n_labelled=int(known.sum()),
        columns=table.columns,
        settings=_settings(classifier),
        network=_network(classifier),
        notes=table.notes,
        warnings=table.warnings,
        safety=classifier.safety_,
        comparison=compare(held_out, classes, classifier._gains, int(known.sum())),
        history=classifier.history_,
        soft_labels=np.asarray(classifier.soft_labels_[places]),
        densities=_densities(classifier, ranked[:MOST_DENSITIES], names, encoded, codes),
        relevances=held_out.relevances,
        disagreements=listed,
        n_disagreements=n_listed,
        queries=to_label,
        whys=contributions(classifier, table.features, rows, seed),
        measurements=measurements(classifier, table.features, encoded, unknown, seed),
        unlikely=unlikely_rows(classifier, names, encoded, densities, usual),
        quality=look_at_quality(table.features[used], encoded[:, [names.index(name) for name in used]], known, seed),
        shown_columns=ranked[:N_SHOWN_CELLS],
        features=table.features,
        labels=table.labels,
        ids=table.ids,
    )


def quick_comparison(classifier: SafeSPNClassifier, table: TrainingTable, seed: int = 0) -> HeldOutComparison:
    """Compare a fit with what people would use instead, as a report does but with fewer folds."""
    table, _ = table.for_report(seed)
    encoded, codes = _encoded(classifier, table)
    held_out = predict_held_out(classifier, table, encoded, codes, seed, n_folds=FEW_FOLDS, with_columns=False)
    classes = [str(name) for name in classifier.classes_]
    return compare(held_out, classes, classifier._gains, int(table.is_labelled.sum()))


def _encoded(classifier: SafeSPNClassifier, table: TrainingTable) -> tuple[FloatArray, IntArray]:
    """Features as numbers, and numbers of the classes, -1 for unlabelled rows."""
    encoded = np.asarray(classifier._encoder.encode(table.features), dtype=np.float64)
    known = table.is_labelled
    codes = np.full(len(encoded), -1)
    codes[known] = codes_of(table.labels[known], classifier.classes_.astype(str), np.nonzero(known)[0])
    return encoded, codes


def _densities(
    classifier: SafeSPNClassifier, chosen: list[str], names: list[str], encoded: FloatArray, codes: IntArray
) -> list[FeatureDensity]:
    return [feature_density(classifier, names.index(name), name, encoded, codes) for name in chosen]


def _settings(classifier: SafeSPNClassifier) -> dict[str, Any]:
    shown = (
        "objective",
        "safety",
        "network",
        "decision",
        "class_weight",
        "prior_rows",
        "variance_floor",
        "max_iter",
        "random_state",
    )
    return {name: value for name, value in classifier.get_params().items() if name in shown}


def _network(classifier: SafeSPNClassifier) -> dict[str, int]:
    spn = classifier.spn_
    return {"nodes": spn.n_nodes, "edges": spn.n_edges, "depth": spn.depth, "parameters": spn.n_parameters}

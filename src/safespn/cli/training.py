"""What the commands that learn have in common: show the table, fit, tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from safespn.classifier import SafeSPNClassifier
from safespn.cli.console import Talk
from safespn.report import collect_report, render_report
from safespn.table_encoder import is_lazy
from safespn.tables import UNLABELLED, ColumnChoices, TableError, TrainingTable

MOST_LISTED = 20
"""Columns up to which each is listed on its own."""


def column_choices(
    categorical: Sequence[str] | None,
    continuous: Sequence[str] | None,
    ignore: Sequence[str] | None,
    missing: Sequence[str] | None,
    unlabelled: Sequence[str] | None,
) -> ColumnChoices:
    """Gather what options say about columns."""
    return ColumnChoices(
        tuple(categorical or ()),
        tuple(continuous or ()),
        tuple(ignore or ()),
        tuple(missing or ()),
        tuple(unlabelled or ()),
    )


def show_table(talk: Talk, table: TrainingTable) -> None:
    """Tell what was read and what became of each column."""
    for note in table.notes:
        talk.note(f"{table.source}: {note}")
    n_labelled = int(table.is_labelled.sum())
    classes = ", ".join(f"{name} ({count})" for name, count in class_counts(table).items())
    talk.note(f"{len(table.labels)} rows: {n_labelled} labelled, {len(table.labels) - n_labelled} unlabelled")
    talk.note(f"target {table.target}: {classes}")
    shown = table.columns
    if len(shown) > MOST_LISTED:
        names = [column.name for column in shown if column.kind == "continuous"]
        shown = [column for column in shown if column.kind != "continuous"]
        talk.note(f"continuous: {len(names)} columns, {', '.join(names[:5])}{', …' if len(names) > 5 else ''}")
    for column in shown[:200]:
        talk.note(str(column))
    for line in table.warnings:
        talk.warning(line)


def class_counts(table: TrainingTable) -> dict[str, int]:
    """Count the labelled rows of each class."""
    return dict(sorted(Counter(table.labels[table.is_labelled].tolist()).items()))


def fit_classifier(talk: Talk, table: TrainingTable, **parameters: Any) -> SafeSPNClassifier:
    """Fit a classifier and note in it what predictions need to know."""
    classifier = SafeSPNClassifier(unlabeled=UNLABELLED, **parameters)
    with (
        talk.stage(f"fitting {len(table.labels)} rows of {len(table.features.columns)} columns"),
        talk.gathering_warnings(),
    ):
        try:
            classifier.fit(table.features, table.targets)
        except TableError:
            raise
        except ValueError as error:
            raise TableError(f"{table.source}: {error}") from error
    classifier.notes_ = {"target": table.target, "missing": list(table.choices.missing)}
    return classifier


def make_report(talk: Talk, classifier: SafeSPNClassifier, table: TrainingTable) -> bytes:
    """Write the report on a fit as one HTML page."""
    with talk.stage("writing the report"), talk.gathering_warnings():
        return render_report(collect_report(classifier, table)).encode()


def summary(classifier: SafeSPNClassifier, table: TrainingTable) -> dict[str, Any]:
    """Describe a fit as plain values."""
    return {
        "source": table.source,
        "target": table.target,
        "rows": len(table.labels),
        "labelled": int(table.is_labelled.sum()),
        "out_of_core": is_lazy(table.features),
        "classes": class_counts(table),
        "columns": [{"name": each.name, "type": each.kind, "reason": each.reason} for each in table.columns],
        "iterations": classifier.n_iter_,
        "safety": classifier.safety_.to_dict(),
    }

"""What the commands that learn have in common: show the table, fit, report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from safespn.class_networks.families import FAMILIES
from safespn.classifier import SafeSPNClassifier
from safespn.cli.console import Reporter, printable
from safespn.decisions import RULES
from safespn.exceptions import TableError
from safespn.foundation.lazy_frames import is_lazy
from safespn.report import HeldOutComparison, collect_report, quick_comparison, render_report
from safespn.report.evaluation import MODELS
from safespn.report.peers import BASE_RATE
from safespn.tables import UNLABELLED, ColumnChoices, TrainingTable

SECONDS_PER_CELL, SECONDS_PER_CELL_OF_ALL = 5e-5, 1e-5
"""Processor time of fits, more or less: class networks learned from a sample, and passes over all rows."""
LONG = 60.0
"""Seconds from which a fit is announced as a long one."""
MOST_LISTED = 20
"""Columns up to which each is listed on its own."""


def column_choices(
    categorical: Sequence[str] | None,
    continuous: Sequence[str] | None,
    ignore: Sequence[str] | None,
    missing: Sequence[str] | None,
    unlabelled: Sequence[str] | None,
    id_column: str | None = None,
) -> ColumnChoices:
    """Gather what options say about columns."""
    return ColumnChoices(
        tuple(categorical or ()),
        tuple(continuous or ()),
        tuple(ignore or ()),
        tuple(missing or ()),
        tuple(unlabelled or ()),
        id_column,
    )


def chosen_network(names: Sequence[str] | None) -> str | list[str]:
    """Turn the option --network into the classifier's parameter."""
    unknown = [name for name in names or () if name not in ("auto", *FAMILIES)]
    if unknown:
        known = ", ".join(("auto", *FAMILIES))
        raise typer.BadParameter(f"{unknown[0]!r} is none of {known}", param_hint="--network")
    if not names or "auto" in names:
        return "auto"
    return names[0] if len(names) == 1 else list(names)


def chosen_decision(text: str) -> str | list[list[float]]:
    """Turn the option --decision into the classifier's parameter."""
    if text in RULES:
        return text
    try:
        costs = [[float(cell) for cell in line.split(",")] for line in text.split(";")]
    except ValueError:
        expected = f"{', '.join(RULES)}, or costs such as 0,1;5,0"
        raise typer.BadParameter(f"{text!r} is none of {expected}", param_hint="--decision") from None
    return costs


def chosen_class_weight(given: Sequence[str] | None) -> str | dict[str, float] | None:
    """Turn the option --class-weight into the classifier's parameter."""
    if not given or list(given) == ["balanced"]:
        return given[0] if given else None
    weights = {}
    for text in given:
        name, equals, weight = text.rpartition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            equals = ""
        if not equals:
            raise typer.BadParameter(
                f"{text!r}: expected a class and its weight, such as yes=5, or balanced", param_hint="--class-weight"
            )
    return weights


def show_table(reporter: Reporter, table: TrainingTable) -> None:
    """Show what was read and the type of each column."""
    for note in table.notes:
        reporter.note(f"{table.source}: {note}")
    n_labelled = int(table.is_labelled.sum())
    classes = ", ".join(f"{name} ({count})" for name, count in class_counts(table).items())
    reporter.note(f"{len(table.labels)} rows: {n_labelled} labelled, {len(table.labels) - n_labelled} unlabelled")
    reporter.note(f"target {table.target}: {classes}")
    shown = table.columns
    if len(shown) > MOST_LISTED:
        names = [column.name for column in shown if column.kind == "continuous"]
        shown = [column for column in shown if column.kind != "continuous"]
        reporter.note(f"continuous: {len(names)} columns, {', '.join(names[:5])}{', …' if len(names) > 5 else ''}")
    for column in shown[:200]:
        reporter.note(str(column))
    codes = table.possible_codes
    if codes:
        listed = ", ".join(codes[:MOST_LISTED]) + (", …" if len(codes) > MOST_LISTED else "")
        advice = "if they are codes, pass --categorical"
        reporter.note(f"a few different whole numbers, taken as amounts: {listed}; {advice}")
    for line in table.warnings:
        reporter.warning(line)


def class_counts(table: TrainingTable) -> dict[str, int]:
    """Count the labelled rows of each class."""
    return dict(sorted(Counter(table.labels[table.is_labelled].tolist()).items()))


def expected_seconds(n_rows: int, n_columns: int, sample_size: int) -> float:
    """How long a fit of a committee takes on one core of a usual machine, to a factor of two or three."""
    return SECONDS_PER_CELL * min(n_rows, sample_size) * n_columns + SECONDS_PER_CELL_OF_ALL * n_rows * n_columns


def fit_classifier(reporter: Reporter, table: TrainingTable, **parameters: Any) -> SafeSPNClassifier:
    """Fit a classifier and note in it what predictions need to know."""
    classifier = SafeSPNClassifier(unlabeled=UNLABELLED, **parameters)
    seconds = expected_seconds(len(table.labels), len(table.used_columns), classifier.sample_size)
    if classifier.network == "auto" and seconds > LONG:
        reporter.note(
            f"this fit will take about {max(2, round(seconds / 60))} minutes, more on a busy machine; "
            "--network blocks, a single network, takes a fraction of it"
        )
    with (
        reporter.passes(f"fitting {len(table.labels)} rows of {len(table.used_columns)} columns"),
        reporter.gathering_warnings(),
    ):
        try:
            classifier.fit(table.features, table.targets, column_types=table.column_types)
        except TableError:
            raise
        except ValueError as error:
            raise TableError(f"{table.source}: {error}") from error
    classifier.notes_ = {"target": table.target, "missing": list(table.choices.missing), "id": table.choices.id}
    return classifier


def make_report(
    reporter: Reporter, classifier: SafeSPNClassifier, table: TrainingTable
) -> tuple[bytes, HeldOutComparison]:
    """Write the report on a fit as one HTML page; also return how good the fit is."""
    with reporter.stage("writing the report"), reporter.gathering_warnings():
        report = collect_report(classifier, table)
        return render_report(report).encode(), report.comparison


def check_quality(reporter: Reporter, classifier: SafeSPNClassifier, table: TrainingTable) -> HeldOutComparison:
    """See how good a fit is on held-out labels, beside what people would use instead."""
    with reporter.stage("checking predictions on held-out labels"), reporter.gathering_warnings():
        return quick_comparison(classifier, table)


def verdicts(comparison: HeldOutComparison, n_unlabelled: int) -> dict[str, str]:
    """Say how good predictions are, and whether the unlabelled rows helped."""
    found = {"quality": comparison.quality}
    if n_unlabelled:
        found["unlabelled_rows"] = comparison.verdict
    return found


def show_quality(comparison: HeldOutComparison, sentences: dict[str, str]) -> list[RenderableType]:
    """Scores of all models on the same held-out rows, and what they say: in red where that is not to rely on."""
    title = f"{comparison.n_rows} held-out labelled rows, {comparison.n_folds} fold{'s' * (comparison.n_folds > 1)}"
    table = Table("", title=title, title_justify="left")
    table.add_column("accuracy", justify="right")
    table.add_column("log loss", justify="right")
    for name, score in comparison.scores.items():
        table.add_row(
            f"always guessing {printable(comparison.guess)}" if name == BASE_RATE else MODELS[name],
            f"{100 * score.accuracy:.1f} ± {100 * score.accuracy_error:.1f} %",
            f"{score.log_loss:.3f} ± {score.log_loss_error:.3f}",
        )
    is_bad = not (comparison.beats_guessing or comparison.reason)
    texts = [
        Text(printable(text), style="red" if is_bad and name == "quality" else "") for name, text in sentences.items()
    ]
    return [table, *texts] if comparison.scores else [*texts]


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

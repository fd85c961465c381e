"""``safespn audit``: draw rows to label, and find from their labels whether the unlabelled rows helped."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from safespn.answers.audit import audit_predictions, draw_disagreeing
from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.cli.outputs import check_outputs
from safespn.cli.predict import by_chunks, load_model
from safespn.cli.to_label import LABEL, ROW, write_rows
from safespn.exceptions import AuditWarning, TableError
from safespn.foundation.randomness import as_generator
from safespn.tables import TableFile, open_table
from safespn.tables.cells import cells_of
from safespn.typing import IntArray


def audit(
    model: Annotated[Path, typer.Argument(help="A model written by `safespn fit`.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the fit.", show_default=False)],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of rows to label.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the rows to label.", show_default=False)
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="The same file with its column `label` filled in.", show_default=False)
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the interval, between 0 and 1.")] = 0.95,
    look: Annotated[
        int | None,
        typer.Option(min=1, help="Number of this interval, if labels come in batches.", show_default=False),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Another model to compare with; by default the supervised one.", show_default=False),
    ] = None,
    missing: options.MissingMarkers = None,
    escape_formulas: options.EscapeFormulas = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find from a few labels whether the unlabelled rows made the model more accurate.

    The model and its supervised version can differ in accuracy only on rows that they predict differently. Some of
    these are drawn for a person to label; from the labels follows the difference on all rows, with an exact
    confidence interval.

    Examples
    --------
    - `safespn audit model.safespn data.csv -n 20 -o to_label.csv`

    - `safespn audit model.safespn data.csv --answers to_label.csv`
    """
    reporter = Reporter(quiet=quiet, as_json=as_json)
    if (output is None) == (answers is None):
        raise typer.BadParameter("give either --output, to draw rows to label, or --answers, with their labels")
    if not 0 < confidence < 1:
        raise typer.BadParameter(f"--confidence {confidence:g}: expected a number between 0 and 1")
    inputs = [model, data, *([reference] if reference else []), *([answers] if answers else [])]
    check_outputs(output, inputs=inputs)
    classifier = load_model(model)
    other = classifier.supervised_ if reference is None else load_model(reference)
    file = open_table(data)
    rows, labels = _read_answers(answers, classifier)
    ours = _predicted(reporter, classifier, classifier, file, missing)
    theirs = _predicted(reporter, classifier, other, file, missing)
    if output is not None:
        with reporter.gathering_warnings():
            drawn = draw_disagreeing(ours, theirs, number, as_generator(seed))
        write_rows(file, drawn, output, escape_formulas=escape_formulas)
        counts = {"output": str(output), "rows": len(ours), "disagreeing": int((ours != theirs).sum())}
        text = (
            f"{counts['disagreeing']} of {len(ours)} rows are predicted differently; to label: {len(drawn)}, {output}"
        )
        reporter.result(text, {**counts, "to_label": len(drawn)})
    elif answers is not None:
        _check_drawn(answers, rows, ours, theirs, seed)
        found = audit_predictions(ours, theirs, rows, labels, len(classifier.classes_), confidence, look)
        reporter.result(str(found), asdict(found))


def _predicted(
    reporter: Reporter,
    classifier: SafeSPNClassifier,
    predicting: SafeSPNClassifier,
    file: TableFile,
    missing: list[str] | None,
) -> IntArray:
    """Code of the class that a model predicts for each row, by the classes of ``classifier``."""
    codes = {str(name): code for code, name in enumerate(classifier.classes_)}
    unknown = [str(name) for name in predicting.classes_ if str(name) not in codes]
    if unknown:
        raise TableError(f"the reference knows a class {unknown[0]!r} that the model does not; fit both to one target")
    number = np.array([codes[str(name)] for name in predicting.classes_])
    best = partial(_best, predicting)
    return np.asarray(number[np.concatenate(list(by_chunks(reporter, predicting, file, missing, best)))])


def _best(classifier: SafeSPNClassifier, features: pd.DataFrame) -> IntArray:
    return np.asarray(classifier._evaluate(features)[1].argmax(axis=1))


def _read_answers(path: Path | None, classifier: SafeSPNClassifier) -> tuple[IntArray, IntArray]:
    """Read numbers of rows, counted from 0, and codes of their labels; none without a file."""
    if path is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    file = open_table(path)
    for name in (ROW, LABEL):
        if name not in file.kinds:
            raise TableError(f"{path}: no column {name!r}; give the file that safespn audit -o wrote, with labels")
    chunks = list(file.chunks([ROW, LABEL]))
    if not chunks:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in (ROW, LABEL)}
    numbers = cells_of(columns[ROW], file.kinds[ROW], (), file.decimal).numbers
    wrong = ~((numbers >= 1) & (numbers == np.floor(numbers)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise TableError(f"{path}: {columns[ROW][at]!r} is not a row number; leave the column {ROW!r} as it was")
    codes = {str(name): code for code, name in enumerate(classifier.classes_)}
    known = ", ".join(map(repr, codes))
    labels = np.empty(len(numbers), dtype=np.intp)
    for at, label in enumerate(cells_of(columns[LABEL], file.kinds[LABEL], (), file.decimal).categories()):
        if not label:
            raise TableError(f"{path}: row {numbers[at]:g} has no label; label every row, as those left out may differ")
        if label not in codes:
            raise TableError(f"{path}: row {numbers[at]:g} has the label {label!r}; expected one of {known}")
        labels[at] = codes[label]
    return numbers.astype(np.intp) - 1, labels


def _check_drawn(path: Path, rows: IntArray, ours: IntArray, theirs: IntArray, seed: int) -> None:
    """Refuse rows that were not drawn at random."""
    if not len(rows):
        if (ours != theirs).any():
            raise TableError(f"{path}: no rows; draw some with safespn audit -o")
        return
    if rows.max() >= len(ours):
        raise TableError(f"{path}: there is no row {rows.max() + 1}; the table has rows 1 to {len(ours)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AuditWarning)
        drawn = draw_disagreeing(ours, theirs, len(rows), as_generator(seed))
    other = np.setdiff1d(rows, drawn)
    if len(other) or len(np.unique(rows)) < len(rows):
        which = f"row {other[0] + 1} was not drawn" if len(other) else "a row occurs twice"
        raise TableError(
            f"{path}: {which}; give all rows that safespn audit -o wrote, once each, with the same model, data, --seed"
        )

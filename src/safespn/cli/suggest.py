"""``safespn suggest``: choose the rows whose labels are expected to be most informative."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from safespn.answers import label_studio
from safespn.answers.suggestion import Suggestions
from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.cli.outputs import check_outputs
from safespn.cli.predict import by_chunks, load_model
from safespn.cli.to_label import read_rows, write_rows
from safespn.exceptions import EnoughLabelsWarning, TableError
from safespn.foundation.atomic_files import atomic_write
from safespn.tables import TableFile, open_table
from safespn.tables.cells import cells_of
from safespn.typing import BoolArray


def suggest(
    model: Annotated[Path, typer.Argument(help="A model written by `safespn fit`.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the fit.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV or Parquet file, or JSON with tasks for Label Studio.")
    ],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of rows to suggest.")] = 20,
    curve: Annotated[
        Path | None,
        typer.Option(
            help="Output of `safespn evaluate --json`: suggest nothing if more labels bring less than a point.",
            show_default=False,
        ),
    ] = None,
    outliers: Annotated[bool, typer.Option("--outliers", help="Suggest very unlikely rows, too.")] = False,
    missing: options.MissingMarkers = None,
    escape_formulas: options.EscapeFormulas = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Suggest which rows to label next: uncertain ones that stand for many others and differ from each other.

    Rows that have a label, in the column that the model predicts, are left out. With a name that ends in .json the
    output has tasks that Label Studio imports; the labelling interface for them is written beside it, as .xml.

    Examples
    --------
    - `safespn suggest model.safespn data.csv -n 20 -o to_label.csv`

    - `safespn suggest model.safespn data.csv -n 20 -o tasks.json`
    """
    reporter = Reporter(quiet=quiet, as_json=as_json)
    is_tasks = output.suffix.lower() == ".json"
    interface = output.with_suffix(".xml") if is_tasks else None
    check_outputs(output, interface, inputs=[model, data, *([curve] if curve else [])])
    classifier = load_model(model)
    reached = None if curve is None else read_curve(curve)
    file = open_table(data)
    features = pd.concat(list(by_chunks(reporter, classifier, file, missing, lambda chunk: chunk)), ignore_index=True)
    rows = np.flatnonzero(~_labelled(classifier, file, len(features)))
    if not len(rows):
        raise TableError(f"{data}: every row has a label; there is nothing to suggest")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EnoughLabelsWarning)
        found = classifier.suggestions(
            features.iloc[rows], min(number, len(rows)), outliers=outliers, curve=reached, random_state=seed
        )
    for warning in caught:
        if isinstance(warning.message, EnoughLabelsWarning):
            reporter.warning(str(warning.message))
    chosen = rows[found.rows]
    if interface is not None:
        _write_tasks(classifier, file, chosen, found, output)
        atomic_write(interface, label_studio.interface(classifier.classes_).encode())
    else:
        write_rows(file, chosen, output, found.reasons, escape_formulas=escape_formulas)
    written = {"output": str(output), **({"interface": str(interface)} if interface else {})}
    text = "\n".join(f"row {row + 1}: {reason}" for row, reason in zip(chosen.tolist(), found.reasons, strict=True))
    files = "\n".join(f"{'to label' if name == 'output' else name}: {path}" for name, path in written.items())
    result = {"rows": (chosen + 1).tolist(), "reasons": found.reasons}
    reporter.result(f"{text}\n{files}" if text else files, {**written, **result})


def read_curve(path: Path) -> dict[int, float]:
    """Read from the output of ``safespn evaluate --json`` which accuracy is reached with how many labels."""
    try:
        points = json.loads(path.read_text(encoding="utf-8"))["points"]
        return {int(point["labelled"]): float(point["all_rows"]["accuracy"]) for point in points}
    except FileNotFoundError:
        raise TableError(f"{path}: no such file; write it with safespn evaluate --json") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise TableError(f"{path}: not the output of safespn evaluate --json") from None


def _labelled(classifier: SafeSPNClassifier, file: TableFile, n_rows: int) -> BoolArray:
    """Which rows have a label, if the file has the column that the model predicts."""
    target = classifier.notes_.get("target")
    if target not in file.kinds:
        return np.zeros(n_rows, dtype=np.bool_)
    known = {str(name) for name in classifier.classes_}
    labels = cells_of(file.read([target])[target], file.kinds[target], (), file.decimal).categories()
    return np.array([label in known for label in labels], dtype=np.bool_)


def _write_tasks(
    classifier: SafeSPNClassifier, file: TableFile, rows: Any, suggestions: Suggestions, output: Path
) -> None:
    target = classifier.notes_.get("target")
    cells = read_rows(file, rows).drop(columns=[target], errors="ignore")
    records = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    tasks = label_studio.tasks(suggestions, records, (rows + 1).tolist())
    atomic_write(output, json.dumps(tasks, indent=1, ensure_ascii=False).encode())

"""``safespn predict``: classes, probabilities and log densities of new rows, a chunk at a time."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import typer

from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.cli.outputs import atomic_stdout, check_outputs, check_standard_output
from safespn.exceptions import ModelFileError, TableError, UnseenCategoryWarning
from safespn.foundation.atomic_files import atomic_open
from safespn.tables import TableFile, check_id, columns_for, features_for, open_table, result_writer
from safespn.tables.cells import cells_of

Answer = TypeVar("Answer")


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by `safespn fit`.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the fit.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file; standard output without it.")
    ] = None,
    id_column: options.IdColumn = None,
    missing: options.MissingMarkers = None,
    escape_formulas: options.EscapeFormulas = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--next-measurement",
            help="For rows with missing cells, add which column to measure next and what it brings.",
        ),
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write the class, the probability of each class and the log density of each row.

    Rows keep their order; the column that names them, of `--id` here or at the fit, comes first.
    Columns of the fit are found by their names; others are not looked at. Texts are written as they are:
    use `--escape-formulas` if someone else chose them and a spreadsheet will open the file.

    Examples
    --------
    - `safespn predict model.safespn new.csv -o predictions.csv`

    - `safespn predict model.safespn new.parquet > predictions.csv`
    """
    reporter = Reporter(quiet=quiet, as_json=as_json)
    if as_json and output is None:
        raise typer.BadParameter("--json needs --output: standard output cannot take both predictions and a summary")
    check_outputs(output, inputs=[model, data])
    check_standard_output([model, data], is_needed=output is None)
    classifier = load_model(model)
    file = open_table(data)
    id_column = _id_column(classifier, file, id_column)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        stream = stack.enter_context(atomic_stdout() if output is None else atomic_open(output))
        schema = _schema(classifier, id_column, measure)
        writer = stack.enter_context(result_writer(stream, schema, output, escape_formulas=escape_formulas))
        answer = partial(_predictions, classifier, id_column, measure)
        for batch in by_chunks(reporter, classifier, file, missing, answer, id_column):
            counts.update(batch["class"].tolist())
            writer.write_batch(pa.RecordBatch.from_pandas(batch, schema=schema, preserve_index=False))
    if output is not None:
        shares = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        data_out = {"output": str(output), "rows": counts.total(), "classes": dict(sorted(counts.items()))}
        reporter.result(f"{counts.total()} rows: {shares}\npredictions: {output}", data_out)


def load_model(path: Path) -> SafeSPNClassifier:
    """Read a classifier from a file, or say what is wrong with it and what to do."""
    try:
        classifier = SafeSPNClassifier.load(path)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such model; write one with safespn fit") from None
    except ModelFileError as error:
        raise ModelFileError(f"{error}; fit it again, or get another copy") from error
    missing = classifier.notes_.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(marker, str) for marker in missing):
        raise ModelFileError(f"{path}: the markers of missing cells are not texts; fit it again, or get another copy")
    return classifier


def by_chunks(
    reporter: Reporter,
    classifier: SafeSPNClassifier,
    file: TableFile,
    missing: Sequence[str] | None,
    answer: Callable[[pd.DataFrame], Answer],
    id_column: str | None = None,
) -> Iterator[Answer]:
    """Ask a classifier about chunk after chunk, and report at the end which categories were unknown.

    Parameters
    ----------
    missing : sequence of str, optional
        Texts that mark a missing cell besides those that the model knows.
    answer : callable
        From features to what is wanted about them.
    id_column : str, optional
        Column that names rows: it becomes the index of the features.
    """
    markers = [*classifier.notes_.get("missing", ()), *(missing or ())]
    unseen: dict[str, tuple[str, int]] = {}
    start = 0
    with reporter.progress(f"predicting {file.path}") as progress:
        names = columns_for(classifier, file)
        for read in file.chunks(list(dict.fromkeys([*names, *([id_column] if id_column else [])])), progress):
            features = features_for(classifier, file, {name: read[name] for name in names}, markers, start)
            if id_column:
                features.index = pd.Index(cells_of(read[id_column], file.kinds[id_column]).texts)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnseenCategoryWarning)
                result = answer(features)
            for warning in caught:
                if isinstance(warning.message, UnseenCategoryWarning):
                    name = str(warning.message.column)
                    example, n_rows = unseen.get(name, (warning.message.example, 0))
                    unseen[name] = example, n_rows + warning.message.n_rows
            yield result
            start += len(features)
    for name, (example, n_rows) in unseen.items():
        reporter.warning(f"{file.path}: {UnseenCategoryWarning(name, example, n_rows)}")


def _predictions(
    classifier: SafeSPNClassifier, id_column: str | None, measure: bool, features: pd.DataFrame
) -> pd.DataFrame:
    log_density, log_posterior = classifier._evaluate(features)
    probabilities = np.exp(log_posterior)
    names = [str(name) for name in classifier.classes_]
    result = {} if id_column is None else {id_column: features.index.to_numpy()}
    result["class"] = np.array(names, dtype=object)[classifier._decide(log_posterior)]
    result |= {f"probability_{name}": probabilities[:, code] for code, name in enumerate(names)}
    result["log_density"] = log_density
    if measure:
        drops = classifier.next_measurement(features)
        columns = np.array([str(name) for name in features.columns], dtype=object)[drops.argmax(axis=1)]
        columns[drops.max(axis=1) == 0] = None
        result |= {"next_measurement": columns, "expected_entropy_drop": drops.max(axis=1)}
    return pd.DataFrame(result)


def _schema(classifier: SafeSPNClassifier, id_column: str | None = None, measure: bool = False) -> pa.Schema:
    numbers = [*(f"probability_{name}" for name in classifier.classes_), "log_density"]
    texts = ["class"] if id_column is None else [id_column, "class"]
    fields = [*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in numbers)]
    if measure:
        fields += [("next_measurement", pa.string()), ("expected_entropy_drop", pa.float64())]
    return pa.schema(fields)


def _id_column(classifier: SafeSPNClassifier, file: TableFile, asked: str | None) -> str | None:
    """Column that names rows: as asked, or as at the fit if the file has it."""
    noted = classifier.notes_.get("id")
    name = noted if asked is None and isinstance(noted, str) and noted in file.kinds else asked
    if name is None:
        return None
    check_id(name, file)
    if name in _schema(classifier, measure=True).names:
        raise TableError(f"{file.path}: --id {name!r} is the name of a column of predictions; rename it in the file")
    return name

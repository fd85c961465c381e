"""``safespn predict``: classes, probabilities and log densities of new rows, a chunk at a time."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pyarrow as pa
import typer

from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Talk
from safespn.cli.outputs import check_writable
from safespn.network.files import ModelFileError, whole_file
from safespn.table_encoder import UnseenCategoryWarning
from safespn.tables import TableFile, columns_for, features_for, open_table, result_writer
from safespn.typing import FloatArray


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by `safespn fit`.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the fit.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file; standard output without it.")
    ] = None,
    missing: options.MissingMarkers = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write the class, the probability of each class and the log density of each row.

    Rows keep their order. Columns of the fit are found by their names; others are not looked at.

    Examples
    --------
    - `safespn predict model.safespn new.csv -o predictions.csv`

    - `safespn predict model.safespn new.parquet > predictions.csv`
    """
    talk = Talk(quiet=quiet, as_json=as_json)
    if as_json and output is None:
        raise typer.BadParameter("--json needs --output: standard output cannot take both predictions and a summary")
    check_writable(output)
    classifier = load_model(model)
    file = open_table(data)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        stream = sys.stdout.buffer if output is None else stack.enter_context(whole_file(output))
        schema = _schema(classifier)
        writer = stack.enter_context(result_writer(stream, schema, output))
        for batch in _predictions(talk, classifier, file, [*classifier.notes_.get("missing", ()), *(missing or ())]):
            counts.update(batch["class"].tolist())
            writer.write_batch(pa.RecordBatch.from_pandas(batch, schema=schema, preserve_index=False))
    if output is not None:
        shares = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        data_out = {"output": str(output), "rows": counts.total(), "classes": dict(sorted(counts.items()))}
        talk.result(f"{counts.total()} rows: {shares}\npredictions: {output}", data_out)


def load_model(path: Path) -> SafeSPNClassifier:
    """Read a classifier from a file, or say what is wrong with it and what to do."""
    try:
        classifier = SafeSPNClassifier.load(path)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such model; write one with safespn fit") from None
    except ModelFileError as error:
        raise ModelFileError(f"{error}; fit it anew, or get another copy") from error
    missing = classifier.notes_.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(marker, str) for marker in missing):
        raise ModelFileError(f"{path}: the markers of missing cells are no texts; fit it anew, or get another copy")
    return classifier


def _predictions(
    talk: Talk, classifier: SafeSPNClassifier, file: TableFile, missing: list[str]
) -> Iterator[pd.DataFrame]:
    """Predict chunk after chunk, and tell at the end which categories were unknown."""
    unseen: dict[str, tuple[str, int]] = {}
    start = 0
    with talk.progress(f"predicting {file.path}") as tell:
        for chunk in file.chunks(columns_for(classifier, file), tell):
            features = features_for(classifier, file, chunk, missing, start)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnseenCategoryWarning)
                joint = classifier.joint_log_likelihood(features)
            for warning in caught:
                if isinstance(warning.message, UnseenCategoryWarning):
                    name = str(warning.message.column)
                    example, n_rows = unseen.get(name, (warning.message.example, 0))
                    unseen[name] = example, n_rows + warning.message.n_rows
            yield _result(classifier, joint)
            start += len(joint)
    for name, (example, n_rows) in unseen.items():
        talk.warning(f"{file.path}: {UnseenCategoryWarning(name, example, n_rows)}")


def _result(classifier: SafeSPNClassifier, joint: FloatArray) -> pd.DataFrame:
    probabilities = np.exp(classifier._log_posterior(joint))
    names = [str(name) for name in classifier.classes_]
    result = {"class": np.array(names, dtype=object)[probabilities.argmax(axis=1)]}
    result |= {f"probability_{name}": probabilities[:, code] for code, name in enumerate(names)}
    return pd.DataFrame({**result, "log_density": np.logaddexp.reduce(joint, axis=1)})


def _schema(classifier: SafeSPNClassifier) -> pa.Schema:
    numbers = [*(f"probability_{name}" for name in classifier.classes_), "log_density"]
    return pa.schema([("class", pa.string()), *((name, pa.float64()) for name in numbers)])

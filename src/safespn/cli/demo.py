"""``safespn demo``: a tour on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Talk
from safespn.cli.outputs import check_writable
from safespn.cli.training import fit_classifier, make_report, show_table
from safespn.network.files import write_whole
from safespn.tables import UNLABELLED, ColumnType, TrainingTable
from safespn.typing import AnyArray

N_LABELLED = 62


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the report.")] = Path("report.html"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Learn from 62 labelled and 393 unlabelled measurements of breast tissue, and compare on rows kept apart.

    Writes a report, one HTML file. Takes less than a minute.
    """
    talk = Talk(quiet=quiet)
    check_writable(output)
    table, test, truth = demo_table(seed)
    show_table(talk, table)
    classifier = fit_classifier(talk, table, random_state=seed)
    write_whole(output, make_report(talk, classifier, table))
    talk.result(_comparison(classifier, test, truth), {})
    talk.result(f"{classifier.safety_}\n\nreport: {output}", {})


def demo_table(seed: int) -> tuple[TrainingTable, pd.DataFrame, AnyArray]:
    """Hide most labels of the breast cancer data; also return test rows and their classes."""
    bunch = load_breast_cancer(as_frame=True)
    classes = np.array(bunch.target_names.tolist(), dtype=object)[bunch.target.to_numpy()]
    train, test, of_train, of_test = train_test_split(
        bunch.data, classes, test_size=0.2, stratify=classes, random_state=seed
    )
    shown, _ = train_test_split(np.arange(len(train)), train_size=N_LABELLED, stratify=of_train, random_state=seed)
    labels = np.full(len(train), UNLABELLED, dtype=object)
    labels[shown] = of_train[shown]
    types = [ColumnType(str(name), "continuous") for name in train.columns]
    return TrainingTable("breast cancer", "diagnosis", train.reset_index(drop=True), labels, types), test, of_test


def _comparison(classifier: SafeSPNClassifier, test: pd.DataFrame, truth: AnyArray) -> Table:
    table = Table("", "accuracy", "log loss", "log p(x, y)", title=f"{len(test)} test rows", title_justify="left")
    codes = np.searchsorted(classifier.classes_, truth.astype(str))
    for name, model in {"supervised": classifier.supervised_, "safe": classifier}.items():
        joint = model.joint_log_likelihood(test)[np.arange(len(test)), codes].mean()
        loss = log_loss(codes, model.predict_proba(test))
        table.add_row(name, f"{model.score(test, truth):.3f}", f"{loss:.3f}", f"{joint:.2f}")
    return table

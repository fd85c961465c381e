"""``safespn demo``: a tour on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.cli.outputs import check_outputs
from safespn.cli.training import fit_classifier, make_report, show_table
from safespn.foundation.atomic_files import atomic_write
from safespn.tables import UNLABELLED, ColumnType, TrainingTable
from safespn.typing import AnyArray

N_LABELLED = 62


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the report.")] = Path("report.html"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Learn from 62 labelled and 393 unlabelled measurements of breast tissue, and compare on held-out rows.

    Writes a report, one HTML file. Takes less than a minute.
    """
    reporter = Reporter(quiet=quiet)
    check_outputs(output)
    table, test, truth = demo_table(seed)
    show_table(reporter, table)
    classifier = fit_classifier(reporter, table, random_state=seed)
    atomic_write(output, make_report(reporter, classifier, table)[0])
    reporter.result(_comparison(classifier, table, test, truth), {})
    reporter.result(f"{classifier.safety_}\n\nreport: {output}", {})


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


def _comparison(classifier: SafeSPNClassifier, training: TrainingTable, test: pd.DataFrame, truth: AnyArray) -> Table:
    """Compare with what people would use instead, on the same test rows."""
    table = Table("", "sees", "accuracy", "log loss", title=f"{len(test)} test rows", title_justify="left")
    features, labels = training.features[training.is_labelled], training.labels[training.is_labelled].astype(str)
    models = {
        "always the most frequent class": DummyClassifier(strategy="prior"),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(300, random_state=0),
        "safespn": clone(classifier),
    }
    fitted = {(name, "labelled rows"): model.fit(features, labels) for name, model in models.items()}
    for (name, seen), model in {**fitted, ("safespn", "all rows"): classifier}.items():
        loss = log_loss(truth.astype(str), model.predict_proba(test), labels=model.classes_)
        accuracy = np.mean(model.predict(test).astype(str) == truth.astype(str))
        table.add_row(name, seen, f"{accuracy:.3f}", f"{loss:.3f}")
    return table

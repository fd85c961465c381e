"""``safespn fit``: learn from a table with a half-empty target column."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from safespn.cli import options
from safespn.cli.console import Reporter, printable
from safespn.cli.out_of_core import read_table, scratch_of
from safespn.cli.outputs import check_outputs
from safespn.cli.training import (
    check_quality,
    chosen_class_weight,
    chosen_decision,
    chosen_network,
    column_choices,
    fit_classifier,
    make_report,
    show_quality,
    show_table,
    summary,
    verdicts,
)
from safespn.foundation.atomic_files import atomic_open


def fit(
    data: options.DataFile,
    target: options.Target,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")] = Path("model.safespn"),
    report: Annotated[Path | None, typer.Option(help="Where to write a report, one HTML file.")] = None,
    categorical: options.CategoricalColumns = None,
    continuous: options.ContinuousColumns = None,
    ignore: options.IgnoredColumns = None,
    id_column: options.IdColumn = None,
    missing: options.MissingMarkers = None,
    unlabelled: options.UnlabelledMarkers = None,
    objective: options.Objective = "generative",
    safety: options.Safety = "auto",
    network: options.Network = None,
    decision: options.Decision = "probable",
    class_weight: options.ClassWeights = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Fit again without some of the labels, and score these and other models on them. It takes a few times "
            "as long as the fit.",
        ),
    ] = True,
    out_of_core: options.OutOfCore = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn from a table whose target column is filled in some rows only.

    Rows with an empty target are unlabelled. Types of columns are found and shown before the fit; after it, how good
    predictions are on held-out labels, beside other models. Tables that would fill memory stay on disk and are fitted
    in blocks.

    Examples
    --------
    - `safespn fit patients.csv --target outcome -o model.safespn --report report.html`

    - `safespn fit measurements.parquet -t kind --categorical site --ignore sample --missing -999`
    """
    reporter = Reporter(quiet=quiet, as_json=as_json)
    check_outputs(output, report, inputs=[data])
    settings = {
        "network": chosen_network(network),
        "decision": chosen_decision(decision),
        "class_weight": chosen_class_weight(class_weight),
    }
    choices = column_choices(categorical, continuous, ignore, missing, unlabelled, id_column)
    with ExitStack() as stack:
        table = read_table(
            reporter,
            data,
            target,
            choices,
            asked=out_of_core,
            objective=objective,
            seed=seed,
            output=output,
            stack=stack,
        )
        show_table(reporter, table)
        classifier = fit_classifier(
            reporter,
            table,
            objective=objective,
            safety=safety,
            **settings,
            random_state=seed,
            scratch=scratch_of(table),
        )
        comparison = None
        if report is not None:
            # The report goes to its place after the model has been written: both appear, or neither.
            file = stack.enter_context(atomic_open(report))
            page, comparison = make_report(reporter, classifier, table)
            file.write(page)
            file.flush()
        elif check and (as_json or not quiet):
            comparison = check_quality(reporter, classifier, table)
        classifier.save(output)
    files = {"model": str(output), "report": None if report is None else str(report)}
    written = "\n".join(f"{name}: {path}" for name, path in files.items() if path)
    # First how good it is: what is certified says nothing about that.
    shown: list[Any] = []
    told: dict[str, Any] = {}
    if comparison is not None:
        sentences = verdicts(comparison, classifier.safety_.n_unlabelled)
        told = {**sentences, "held_out": comparison.to_dict()}
        shown += [*show_quality(comparison, sentences), ""]
    shown += [printable(f"{classifier.safety_}\n\n{written}")]
    reporter.result(Group(*shown), {**files, **told, **summary(classifier, table)})

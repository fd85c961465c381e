"""``safespn evaluate``: find out whether unlabelled rows help."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from safespn.classifier import SafeSPNClassifier
from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.cli.outputs import check_outputs
from safespn.cli.training import chosen_network, column_choices, show_table
from safespn.exceptions import LabelWarning
from safespn.foundation.atomic_files import atomic_write
from safespn.report import Evaluation, evaluate_table, render_evaluation
from safespn.report.curve_point import CurvePoint
from safespn.report.evaluation import MODELS, band
from safespn.report.held_out import ALL_ROWS, LABELS_ONLY
from safespn.report.learning_curve import N_TRIALS, check_sizes, default_sizes
from safespn.tables import UNLABELLED, open_table, read_training_table
from safespn.typing import FloatArray

PICTURE_WIDTH = 44


def evaluate(
    data: options.DataFile,
    target: options.Target,
    labelled: Annotated[
        str | None,
        typer.Option(metavar="10,20,50", help="Numbers of labels to keep.", show_default="up to all of them"),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="How often to hide labels, for each number.")] = N_TRIALS,
    report: Annotated[Path | None, typer.Option(help="Where to write the learning curve, one HTML file.")] = None,
    categorical: options.CategoricalColumns = None,
    continuous: options.ContinuousColumns = None,
    ignore: options.IgnoredColumns = None,
    missing: options.MissingMarkers = None,
    unlabelled: options.UnlabelledMarkers = None,
    objective: options.Objective = "generative",
    safety: options.Safety = "auto",
    network: options.Network = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Hide labels on purpose and see whether the unlabelled rows help.

    In each trial a fifth of the labelled rows is held out, and all but some of the other labels are hidden. One model
    learns from the labels left alone, the other from all rows; both are scored on the labelled rows whose labels were
    not shown.

    Examples
    --------
    - `safespn evaluate patients.csv --target outcome --labelled 10,20,50 --trials 20`

    - `safespn evaluate patients.csv -t outcome --report curve.html --json > curve.json`
    """
    reporter = Reporter(quiet=quiet, as_json=as_json)
    given = None if labelled is None else _sizes(labelled)
    check_outputs(report, inputs=[data])
    with reporter.stage(f"reading {data}", only_on_terminal=True):
        choices = column_choices(categorical, continuous, ignore, missing, unlabelled)
        table = read_training_table(open_table(data), target, choices)
    sizes = given or default_sizes(table)
    chosen = chosen_network(network)
    classifier = SafeSPNClassifier(objective, safety, network=chosen, unlabeled=UNLABELLED, random_state=seed)
    check_sizes(table, sizes)
    show_table(reporter, table)
    title = f"{trials} trials with {', '.join(map(str, sizes))} labels"
    with warnings.catch_warnings(), reporter.progress(title) as progress:
        warnings.simplefilter("ignore", LabelWarning)  # given with the table
        evaluation = evaluate_table(classifier, table, sizes, trials, seed, progress)
    if report is not None:
        atomic_write(report, render_evaluation(evaluation).encode())
    files = {} if report is None else {"report": str(report)}
    written = [] if report is None else [f"\nreport: {report}"]
    picture = Text("\n" + "\n".join(_picture(evaluation)))
    shown = Group(*_tables(evaluation), picture, "", *evaluation.sentences, *written)
    reporter.result(shown, {**evaluation.to_dict(), **files})


def _sizes(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise typer.BadParameter(f"--labelled {text!r}: expected numbers of labels, such as 10,20,50") from None


def _tables(evaluation: Evaluation) -> list[Table]:
    """Accuracies and log losses: a line for each model, a column for each number of labels."""
    points = evaluation.points
    trials = "1 trial" if evaluation.n_trials == 1 else f"{evaluation.n_trials} trials"
    title = f"{trials}, scored on at least {evaluation.n_test} labelled rows each"
    accuracy, log_loss = Table("accuracy", title=title, title_justify="left"), Table("log loss")
    for point in points:
        for table in (accuracy, log_loss):
            table.add_column(f"{point.n_labelled} labels", justify="right")
    for name, shown in MODELS.items():
        accuracy.add_row(shown, *(f"{100 * point.accuracies[name].mean():.1f} %" for point in points))
        log_loss.add_row(shown, *(f"{point.log_losses[name].mean():.3f}" for point in points))
    gains = [point.accuracy_gain for point in points]
    accuracy.add_section()
    accuracy.add_row("gain from unlabelled rows", *(f"{100 * gain:+.1f} ± {100 * error:.1f}" for gain, error in gains))
    accuracy.add_row("harm, share of trials", *(f"{100 * point.harm_rate:.0f} %" for point in points))
    return [accuracy, log_loss]


def _picture(evaluation: Evaluation) -> list[str]:
    """Draw the accuracies as lines of text: a dot for the mean, a bar for the 10-90 % band of the trials."""
    bands = [band(values) for point in evaluation.points for values in _accuracies(point).values()]
    low, high = min(start for start, _ in bands), max(end for _, end in bands)
    lines = []
    for point in evaluation.points:
        for name, values in _accuracies(point).items():
            places = [_place(value, low, high) for value in (*band(values), float(values.mean()))]
            bar = [" "] * PICTURE_WIDTH
            bar[places[0] : places[1] + 1] = ["─"] * (places[1] - places[0] + 1)
            bar[places[2]] = "●"
            lines.append(f"{point.n_labelled:>6} {name:11} │{''.join(bar)}│")
    lines.append(f"{'accuracy':>18}  {f'{100 * low:.0f} %':<{PICTURE_WIDTH - 5}}{f'{100 * high:.0f} %':>5}")
    return lines


def _accuracies(point: CurvePoint) -> dict[str, FloatArray]:
    return {name: point.accuracies[name] for name in (LABELS_ONLY, ALL_ROWS)}


def _place(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return min(max(round(share * (PICTURE_WIDTH - 1)), 0), PICTURE_WIDTH - 1)

"""``safespn reproduce``: the paper's tables and figure, and the wide comparison."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.datasets import NAMES
from safespn.exceptions import DatasetNotFoundError
from safespn.experiments.outputs import Reproduction
from safespn.experiments.reproduce import reproduce as reproduce_experiments
from safespn.experiments.runner import Settings
from safespn.experiments.suite import Plan, reproduce_suite
from safespn.experiments.suite_methods import available_fits
from safespn.experiments.suite_protocol import BUDGETS, PROTOCOL
from safespn.foundation.atomic_files import atomic_write
from safespn.report.render import render_experiments

INCOMPLETE = 1
PAPER_TRIALS, SUITE_TRIALS = 100, 5
PAPER = (
    "The paper's experiments, reproduced",
    "Trapp, Madl, Peharz, Pernkopf and Trappl: Safe Semi-Supervised Learning of Sum-Product Networks (UAI 2017)",
)
SUITE = ("The wide comparison", "Many tables with few labels and many unlabelled rows, one protocol for all")
_SUITE_PANEL = "Options of suite"
_PAPER_PANEL = "Options of the paper's experiments"


def reproduce(
    what: Annotated[Literal["table2", "table3", "figure1", "all", "suite"], typer.Argument(help="What to make.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("results"),
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Trials for each data set.", show_default=f"{PAPER_TRIALS}; {SUITE_TRIALS} for suite"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder of CSV files; otherwise the one that SAFESPN_DATA names, for suite SAFESPN_SUITE.",
        ),
    ] = None,
    data_sets: Annotated[
        str | None,
        typer.Option(
            metavar="iris,wine", help="Only these data sets.", show_default="all ten", rich_help_panel=_PAPER_PANEL
        ),
    ] = None,
    split: Annotated[
        Literal["new", "fixed"],
        typer.Option(
            help="A new test set for each trial, or one for all (the paper's standard errors suggest that).",
            rich_help_panel=_PAPER_PANEL,
        ),
    ] = "new",
    seed: options.Seed = 0,
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="a,b", help="Only these tables of the folder.", show_default="all", rich_help_panel=_SUITE_PANEL
        ),
    ] = None,
    budgets: Annotated[
        str, typer.Option(metavar="20,100", help="Numbers of labels.", rich_help_panel=_SUITE_PANEL)
    ] = ",".join(map(str, BUDGETS)),
    methods: Annotated[
        str | None,
        typer.Option(metavar="safespn,rf", help="Only these.", show_default="all", rich_help_panel=_SUITE_PANEL),
    ] = None,
    comparators: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="CSV file of recorded trials, such as trials.csv.gz of another run: what it has is not run.",
            rich_help_panel=_SUITE_PANEL,
        ),
    ] = None,
    first_trial: Annotated[
        int, typer.Option(min=0, help="Number of the first trial.", rich_help_panel=_SUITE_PANEL)
    ] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Reproduce the tables and the figure of the paper, with its figures beside ours, or run the wide comparison.

    The paper's data sets come from a folder of CSV files, from scikit-learn or from OpenML; missing ones are
    skipped, and the status is 1. `suite` compares on all tables of a folder: files NAME.csv or NAME.csv.gz with the
    label in the column `class`. Trials are kept in the output folder: an interrupted run resumes where it stopped.

    Examples
    --------
    - `safespn reproduce all --jobs 2 -o results`

    - `safespn reproduce table2 --trials 10 --data-dir data -o quick`

    - `safespn reproduce suite --data-dir tables --budgets 20,100 --jobs 2 -o results`
    """
    reporter = Reporter(quiet=quiet)
    foreign = {"--data-sets": data_sets} if what == "suite" else {"--tables": tables, "--methods": methods}
    for option, value in foreign.items():
        if value is not None:
            raise typer.BadParameter(f"{what} has no such option", param_hint=option)
    if what == "suite":
        numbers = range(first_trial, first_trial + (trials or SUITE_TRIALS))
        plan = Plan(
            _suite_folder(data_dir),
            tables=_split(tables),
            budgets=_numbers(budgets),
            trials=numbers,
            fits=_fits(methods),
            recorded=comparators,
        )
        made = _run_suite(plan, output, jobs, reporter)
    else:
        folder = None if data_dir is None else str(data_dir)
        names = NAMES if data_sets is None else _names(data_sets)
        made = _run_paper(what, output, trials or PAPER_TRIALS, jobs, folder, names, Settings(seed, split), reporter)
    reporter.result(f"results: {output / 'index.html'}", {})
    if made.missing:
        sys.stderr.write(f"safespn: incomplete, without {', '.join(made.missing)}\n")
        raise typer.Exit(INCOMPLETE)


def _run_paper(
    what: str,
    output: Path,
    trials: int,
    jobs: int,
    folder: str | None,
    names: Sequence[str],
    settings: Settings,
    reporter: Reporter,
) -> Reproduction:
    with reporter.progress(f"{trials} trials of each data set") as progress:
        made = reproduce_experiments(
            what,
            output,
            n_trials=trials,
            n_jobs=jobs,
            data_dir=folder,
            names=names,
            settings=settings,
            progress=lambda done, total: progress(done / total),
        )
    command = f"safespn reproduce {what} --trials {trials} --split {settings.split} --seed {settings.seed}"
    _write_page(output, made, PAPER, _protocol(trials, settings.split) if made.tables else "", command)
    for reason in made.missing.values():
        reporter.warning(f"skipped {reason}")
    if made.tables:
        reporter.result(_summary(made.tables[0].rows), {})
    return made


def _run_suite(plan: Plan, output: Path, jobs: int, reporter: Reporter) -> Reproduction:
    n_trials = len(plan.trials)
    with reporter.progress(f"{n_trials} trials of each table and number of labels") as progress:
        made = reproduce_suite(plan, output, n_jobs=jobs, progress=lambda done, total: progress(done / total))
    command = f"safespn reproduce suite --trials {n_trials} --budgets {','.join(map(str, plan.budgets))}"
    if plan.trials.start:
        command += f" --first-trial {plan.trials.start}"
    for option, value in {"tables": ",".join(plan.tables), "methods": ",".join(plan.fits)}.items():
        command += f" --{option} {value}" if value else ""
    if plan.recorded is not None:
        command += f" --comparators {plan.recorded.name}"
    _write_page(output, made, SUITE, PROTOCOL, command)
    for reason in made.missing.values():
        reporter.warning(reason)
    shown = {f"suite_{budget}" for budget in plan.budgets}
    texts = [table.text() for table in made.tables if table.name in shown]
    texts += [_summary(table.rows) for table in made.tables if table.name == "summary"]
    reporter.result("\n\n".join(texts), {})
    return made


def _write_page(output: Path, made: Reproduction, heading: tuple[str, str], protocol: str, command: str) -> None:
    title, subtitle = heading
    page = render_experiments(made, title=title, subtitle=subtitle, protocol=protocol, command=command)
    atomic_write(output / "index.html", page.encode())


def _suite_folder(data_dir: Path | None) -> Path:
    named = os.environ.get("SAFESPN_SUITE", "")
    folder = data_dir or (Path(named) if named else None)
    if folder is None:
        raise DatasetNotFoundError("suite needs a folder of tables: name it by --data-dir or SAFESPN_SUITE")
    if not folder.is_dir():
        raise DatasetNotFoundError(f"SAFESPN_SUITE names {folder}, which is not a folder")
    return folder


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    parts = _split(text)
    wrong = [part for part in parts if not part.isdecimal() or int(part) == 0]
    if wrong or not parts:
        raise typer.BadParameter(
            f"expected numbers of labels such as 20,100, got {wrong[0] if wrong else text!r}", param_hint="--budgets"
        )
    return sorted({int(part) for part in parts})


def _fits(text: str | None) -> list[str]:
    """Fits that supply the methods asked for; the supervised members come with the default."""
    names = _split(text)
    unknown = [name for name in names if name not in (*available_fits(), "supervised")]
    if unknown:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join([*available_fits(), 'supervised'])}", param_hint="--methods"
        )
    return list(dict.fromkeys("safespn" if name == "supervised" else name for name in names))


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(NAMES)}", param_hint="--data-sets")
    return names


def _summary(rows: Sequence[Sequence[str]]) -> str:
    width = max(len(claim) for claim, _ in rows)
    return "\n".join(f"{claim:{width}}  {measured}" for claim, measured in rows)


def _protocol(trials: int, split: str) -> str:
    test = "a new stratified split for each" if split == "new" else "one stratified split for all"
    return (
        f"{trials} trials for each data set, {test}: a fifth of the rows for testing; features without variance "
        "removed; z-scores with training statistics; 2D+K labelled rows drawn stratified from the training part, at "
        "least two of each class, and as many validation rows; the rest unlabelled. Table 2: the labels of the "
        "labelled rows only, validation rows unlabelled, except that mcp stops early on their labels. Table 3: the "
        "labels of both for every method; mcp learns from the first and stops early on the second. No setting was "
        "chosen on these trials."
    )

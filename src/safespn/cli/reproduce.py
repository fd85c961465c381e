"""``safespn reproduce``: the paper's tables and figure, and the wide comparison."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from safespn.cli import options
from safespn.cli import reproduce_options as own
from safespn.cli.console import Reporter
from safespn.cli.outputs import check_not_an_input
from safespn.experiments.outputs import Reproduction
from safespn.experiments.reproduce import reproduce as reproduce_experiments
from safespn.experiments.runner import TrialSettings
from safespn.experiments.suite import TRIALS_FILE, Plan, reproduce_suite
from safespn.experiments.suite_protocol import PROTOCOL
from safespn.foundation.atomic_files import atomic_write
from safespn.report.render import render_experiments

INCOMPLETE = 1
PAPER = (
    "The paper's experiments, reproduced",
    "Trapp, Madl, Peharz, Pernkopf and Trappl: Safe Semi-Supervised Learning of Sum-Product Networks (UAI 2017)",
)
SUITE = ("The wide comparison", "Many tables with few labels and many unlabelled rows, one protocol for all")


def reproduce(
    what: own.What,
    output: own.Output = Path("results"),
    trials: own.Trials = None,
    jobs: own.Jobs = 1,
    data_dir: own.DataDir = None,
    data_sets: own.DataSets = None,
    split: own.Split = "new",
    seed: options.Seed = 0,
    tables: own.Tables = None,
    budgets: own.Budgets = own.ALL_BUDGETS,
    methods: own.Methods = None,
    comparators: own.Comparators = None,
    first_trial: own.FirstTrial = 0,
    quiet: options.Quiet = False,
) -> None:
    """Reproduce the tables and the figure of the paper, with its figures beside ours, or run the wide comparison.

    The paper's data sets come from a folder of CSV files, from scikit-learn or from OpenML; missing ones are
    skipped, and the status is 1. `suite` compares on all tables of a folder: files NAME.csv or NAME.csv.gz with the
    label in the column `class`. `all` makes both, the comparison in the folder `suite` of the output, if
    SAFESPN_SUITE names its tables. Trials are kept in the output folder: an interrupted run resumes where it stopped.

    Examples
    --------
    - `safespn reproduce all --jobs 2 -o results`

    - `safespn reproduce table2 --trials 10 --data-dir data -o quick`

    - `safespn reproduce suite --data-dir tables --budgets 20,100 --jobs 2 -o results`
    """
    reporter = Reporter(quiet=quiet)
    own.check_options(what, of_paper={"--data-sets": data_sets}, of_suite={"--tables": tables, "--methods": methods})
    suite = own.suite_folder(what, data_dir)
    of_suite = output if what == "suite" else output / "suite"
    if suite is not None and comparators is not None:
        check_not_an_input(of_suite / TRIALS_FILE, [comparators], "choose another output folder")
    missing: list[str] = []
    if what != "suite":
        folder, names = None if data_dir is None else str(data_dir), own.data_sets_of(data_sets)
        n_trials, settings = trials or own.PAPER_TRIALS, TrialSettings(seed, split)
        made = _run_paper(what, output, n_trials, jobs, folder, names, settings, reporter)
        missing += made.missing
        reporter.result(f"results: {output / 'index.html'}", {})
    if suite is not None:
        plan = Plan(
            suite,
            tables=own.split_list(tables),
            budgets=own.budgets_of(budgets),
            trials=range(first_trial, first_trial + (trials or own.SUITE_TRIALS)),
            fits=own.fits_of(methods),
            recorded=comparators,
        )
        missing += _run_suite(plan, of_suite, jobs, reporter).missing
        reporter.result(f"results: {of_suite / 'index.html'}", {})
    elif what == "all":
        reporter.warning("without the wide comparison: SAFESPN_SUITE names no folder with its tables")
    if missing:
        sys.stderr.write(f"safespn: incomplete, without {', '.join(missing)}\n")
        raise typer.Exit(INCOMPLETE)


def _run_paper(
    what: str,
    output: Path,
    trials: int,
    jobs: int,
    folder: str | None,
    names: Sequence[str],
    settings: TrialSettings,
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

"""``safespn reproduce``: the paper's tables and figure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from safespn.cli import options
from safespn.cli.console import Reporter
from safespn.datasets import NAMES
from safespn.experiments.reproduce import reproduce as reproduce_experiments
from safespn.experiments.runner import Settings
from safespn.foundation.atomic_files import atomic_write
from safespn.report.render import render_experiments

INCOMPLETE = 1


def reproduce(
    what: Annotated[Literal["table2", "table3", "figure1", "all"], typer.Argument(help="What to make.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("results"),
    trials: Annotated[int, typer.Option(min=1, help="Trials for each data set.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Folder of CSV files; otherwise the one that SAFESPN_DATA names."
        ),
    ] = None,
    data_sets: Annotated[
        str | None, typer.Option(metavar="iris,wine", help="Only these data sets.", show_default="all ten")
    ] = None,
    split: Annotated[
        Literal["new", "fixed"],
        typer.Option(help="A new test set for each trial, or one for all (the paper's standard errors suggest that)."),
    ] = "new",
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Reproduce the tables and the figure of the paper, with its figures beside ours.

    Data sets come from a folder of CSV files, from scikit-learn or from OpenML; one that cannot be had is skipped, and
    the status is 1. Trials are kept in the output folder: an interrupted run goes on where it stopped.

    Examples
    --------
    - `safespn reproduce all --jobs 2 -o results`

    - `safespn reproduce table2 --trials 10 --data-dir data -o quick`
    """
    reporter = Reporter(quiet=quiet)
    folder = None if data_dir is None else str(data_dir)
    with reporter.progress(f"{trials} trials of each data set") as progress:
        made = reproduce_experiments(
            what,
            output,
            n_trials=trials,
            n_jobs=jobs,
            data_dir=folder,
            names=NAMES if data_sets is None else _names(data_sets),
            settings=Settings(seed, split),
            progress=lambda done, total: progress(done / total),
        )
    command = f"safespn reproduce {what} --trials {trials} --split {split} --seed {seed}"
    page = render_experiments(made, command=command, protocol=_protocol(trials, split) if made.tables else "")
    atomic_write(output / "index.html", page.encode())
    for reason in made.missing.values():
        reporter.warning(f"skipped {reason}")
    if made.tables:
        reporter.result(_summary(made.tables[0].rows), {})
    reporter.result(f"results: {output / 'index.html'}", {})
    if made.missing:
        sys.stderr.write(f"safespn: incomplete, without {', '.join(made.missing)}\n")
        raise typer.Exit(INCOMPLETE)


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

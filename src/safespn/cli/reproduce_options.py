"""Options of ``safespn reproduce``, and what their texts mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from safespn.datasets import NAMES
from safespn.exceptions import DatasetNotFoundError
from safespn.experiments.suite_methods import available_fits
from safespn.experiments.suite_protocol import BUDGETS

PAPER_TRIALS, SUITE_TRIALS = 100, 5
ALL_BUDGETS = ",".join(map(str, BUDGETS))
_SUITE_PANEL = "Options of suite"
_PAPER_PANEL = "Options of the paper's experiments"

What = Annotated[Literal["table2", "table3", "figure1", "all", "suite"], typer.Argument(help="What to make.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")]
Trials = Annotated[
    int | None,
    typer.Option(min=1, help="Trials for each data set.", show_default=f"{PAPER_TRIALS}; {SUITE_TRIALS} for suite"),
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes to use.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        file_okay=False,
        help="Folder of CSV files; otherwise the one that SAFESPN_DATA names, for suite SAFESPN_SUITE.",
    ),
]
DataSets = Annotated[
    str | None,
    typer.Option(
        metavar="iris,wine", help="Only these data sets.", show_default="all ten", rich_help_panel=_PAPER_PANEL
    ),
]
Split = Annotated[
    Literal["new", "fixed"],
    typer.Option(
        help="A new test set for each trial, or one for all (the paper's standard errors suggest that).",
        rich_help_panel=_PAPER_PANEL,
    ),
]
Tables = Annotated[
    str | None,
    typer.Option(
        metavar="a,b", help="Only these tables of the folder.", show_default="all", rich_help_panel=_SUITE_PANEL
    ),
]
Budgets = Annotated[str, typer.Option(metavar="20,100", help="Numbers of labels.", rich_help_panel=_SUITE_PANEL)]
Methods = Annotated[
    str | None,
    typer.Option(metavar="safespn,rf", help="Only these.", show_default="all", rich_help_panel=_SUITE_PANEL),
]
Comparators = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="CSV file of recorded trials, such as trials.csv.gz of another run: what it has is not run.",
        rich_help_panel=_SUITE_PANEL,
    ),
]
FirstTrial = Annotated[int, typer.Option(min=0, help="Number of the first trial.", rich_help_panel=_SUITE_PANEL)]


def check_options(what: str, of_paper: dict[str, str | None], of_suite: dict[str, str | None]) -> None:
    """Refuse options that are for something else than what is asked for; ``all`` takes them all."""
    refused = {"suite": of_paper, "all": {}}.get(what, of_suite)
    for option, value in refused.items():
        if value is not None:
            raise typer.BadParameter(f"{what} has no such option", param_hint=option)


def suite_folder(what: str, data_dir: Path | None) -> Path | None:
    """Folder with the tables of the wide comparison; None where it is not asked for, or not named for ``all``."""
    if what not in ("suite", "all"):
        return None
    if what == "suite" and data_dir is not None:
        return data_dir
    named = os.environ.get("SAFESPN_SUITE", "")
    if named and not Path(named).is_dir():
        raise DatasetNotFoundError(f"SAFESPN_SUITE names {named}, which is not a folder")
    if not named and what == "suite":
        raise DatasetNotFoundError("suite needs a folder of tables: name it by --data-dir or SAFESPN_SUITE")
    return Path(named) if named else None


def split_list(text: str | None) -> list[str]:
    """Entries of a list with commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def budgets_of(text: str) -> list[int]:
    """Numbers of labels, in order."""
    parts = split_list(text)
    wrong = [part for part in parts if not part.isdecimal() or int(part) == 0]
    if wrong or not parts:
        raise typer.BadParameter(
            f"expected numbers of labels such as 20,100, got {wrong[0] if wrong else text!r}", param_hint="--budgets"
        )
    return sorted({int(part) for part in parts})


def fits_of(text: str | None) -> list[str]:
    """Fits that supply the methods asked for; the supervised members come with the default."""
    names = split_list(text)
    unknown = [name for name in names if name not in (*available_fits(), "supervised")]
    if unknown:
        raise typer.BadParameter(
            f"{unknown[0]!r} is none of {', '.join([*available_fits(), 'supervised'])}", param_hint="--methods"
        )
    return list(dict.fromkeys("safespn" if name == "supervised" else name for name in names))


def data_sets_of(text: str | None) -> Sequence[str]:
    """Data sets of the paper, all of them by default."""
    if text is None:
        return NAMES
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(NAMES)}", param_hint="--data-sets")
    return names

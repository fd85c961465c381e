"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from safespn.cli.out_of_core import SHARE_OF_MEMORY

DataFile = Annotated[
    Path, typer.Argument(help="CSV or Parquet file with a target column.", metavar="DATA", show_default=False)
]
Target = Annotated[
    str, typer.Option("--target", "-t", help="Column to predict; rows where it is empty are unlabelled.")
]
CategoricalColumns = Annotated[
    list[str] | None,
    typer.Option("--categorical", metavar="COLUMN", help="Take this column as categorical; may be repeated."),
]
ContinuousColumns = Annotated[
    list[str] | None,
    typer.Option("--continuous", metavar="COLUMN", help="Take this column as numbers; may be repeated."),
]
IgnoredColumns = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Leave this column out; may be repeated.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column that names rows: never learned from, and written with results."
    ),
]
MissingMarkers = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="TEXT", help="Text that marks a missing cell, such as -999; may be repeated."),
]
UnlabelledMarkers = Annotated[
    list[str] | None,
    typer.Option(
        "--unlabeled", "--unlabelled", metavar="LABEL", help="Label that marks an unlabelled row, such as -1."
    ),
]
Objective = Annotated[
    Literal["generative", "discriminative"], typer.Option(help="Learn rows and classes, or classes given rows.")
]
Safety = Annotated[
    Literal["auto", "certified", "mcp", "none"], typer.Option(help="How to guard against the unlabelled rows.")
]
Network = Annotated[
    list[str] | None,
    typer.Option(
        "--network",
        metavar="NAME",
        help="What classes are made of: auto (a committee), or blocks, components, forest or deep; "
        "repeated, a committee of these.",
        show_default="auto",
    ),
]
Decision = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="What predicted classes aim at: probable (accuracy), f1, balanced (mean recall of the classes), or costs "
        'such as "0,1;5,0": a line for each true class, a number for each predicted one, classes in sorted order.',
    ),
]
ClassWeights = Annotated[
    list[str] | None,
    typer.Option(
        "--class-weight",
        metavar="CLASS=WEIGHT",
        help="How much labelled rows of a class count, repeated for several classes; or balanced.",
        show_default="1 for all",
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe before texts that spreadsheets would take as formulas (= + - @), and before such names "
        "of columns.",
    ),
]
OutOfCore = Annotated[
    bool | None,
    typer.Option(
        "--out-of-core/--in-memory",
        help="Leave rows on disk and fit them in blocks with Dask, or read all into memory. "
        f"By itself rows stay on disk if they would fill more than {SHARE_OF_MEMORY:.0%} of the memory available.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: equal seeds give equal results.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Write the result to standard output as JSON.")]

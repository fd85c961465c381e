"""Where the rows of a fit are: in memory, or on disk if they would take too much of it. Decided, and reported."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import psutil
import typer
from rich.filesize import decimal

from safespn.cli.console import Reporter
from safespn.tables import ColumnChoices, TrainingTable, open_table, read_training_table

SHARE_OF_MEMORY = 0.25
"""Rows stay on disk if they would fill more than this share of the memory available: a fit takes thrice their size."""
SMALL = 1 << 26
"""Bytes that every container has to spare."""


def read_table(
    reporter: Reporter,
    path: Path,
    target: str,
    choices: ColumnChoices,
    *,
    asked: bool | None,
    objective: str,
    seed: int,
    output: Path,
    stack: ExitStack,
) -> TrainingTable:
    """Read a table into memory, or leave its rows on disk.

    Parameters
    ----------
    asked : bool, optional
        Whether rows are to stay on disk; None decides by the size of the table.
    output : Path
        Where the result goes; a temporary copy of the rows, if one is needed, is written beside it.
    stack : ExitStack
        What deletes the copy.
    """
    file = open_table(path)
    available = _memory(file.n_bytes)
    share = file.n_bytes / available
    size = f"{path}: about {decimal(file.n_bytes)}, {_percent(share)} of the {decimal(available)} of memory available"
    obstacle = _obstacle(objective)
    if asked and obstacle:
        raise typer.BadParameter(f"--out-of-core is not possible: {obstacle}")
    is_large = share > SHARE_OF_MEMORY
    if asked is None and is_large and obstacle:
        reporter.warning(f"{size}, and all rows are read into it: {obstacle}")
    if asked is False or obstacle or not (asked or is_large):
        with reporter.stage(f"reading {path}", only_on_terminal=True):
            return read_training_table(file, target, choices)
    from safespn.tables.large import read_large_table

    folder = None if output.exists() and not output.is_file() else output.resolve().parent
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".safespn-", dir=folder)))
    with reporter.stage(f"reading {path} in blocks"):
        table = read_large_table(file, target, choices, folder, seed)
    why = "as asked" if asked else f"more than {_percent(SHARE_OF_MEMORY)}"
    reporter.note(
        f"{size} ({why}): rows stay on disk and are fitted in blocks with Dask, {len(table.blocks)} in all; "
        f"types of columns were decided on a sample of {len(table.sampled_rows)} rows"
    )
    if table.copy is not None:
        copied = decimal(table.copy.stat().st_size)
        reporter.note(
            f"{path}: features copied to a temporary Parquet file of {copied} in {folder}, which is deleted at the end"
        )
    return table


def scratch_of(table: TrainingTable) -> Path | None:
    """Folder where a fit keeps what does not fit in memory; None for tables in memory."""
    folder: Path | None = getattr(table, "folder", None)
    return folder


def _obstacle(objective: str) -> str | None:
    """Say why rows cannot stay on disk, and what to do."""
    if objective == "discriminative":
        return "--objective discriminative ties all rows together; --objective generative can do without"
    if find_spec("dask") is None:
        return "Dask, which fits rows on disk, is not installed; pip install 'safespn[dask]' installs it"
    return None


def _memory(n_bytes: int) -> int:
    """Bytes of memory that are available to hold so many."""
    available = int(psutil.virtual_memory().available)
    if n_bytes < SMALL or find_spec("distributed") is None:
        return available
    from distributed.system import MEMORY_LIMIT  # it knows the limits of containers

    return min(available, int(MEMORY_LIMIT))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"

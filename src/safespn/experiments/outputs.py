"""What a run makes, tables and pictures, and the files that it writes them to."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safespn.foundation.atomic_files import atomic_write


@dataclass(frozen=True)
class ResultTable:
    """A table of text.

    Parameters
    ----------
    name : str
        Of its files.
    title, note : str
    header : sequence of str
    rows : sequence of sequences of str
        The first cell of each names the row.
    text_columns : sequence of str
        Columns that hold words rather than numbers.
    """

    name: str
    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[str] = ()

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", self.note, "", _line(self.header), _line(["---"] * len(self.header))]
        return "\n".join([*lines, *map(_line, self.rows)]) + "\n"

    def csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([self.header, *self.rows])
        return buffer.getvalue()

    def text(self) -> str:
        """Title and aligned columns, for a terminal."""
        widths = [max(len(row[column]) for row in [self.header, *self.rows]) for column in range(len(self.header))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in [self.header, *self.rows]
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


@dataclass(frozen=True)
class Picture:
    """A picture as SVG; ``after`` names the table that it stands below, otherwise it stands below all."""

    title: str
    note: str
    svg: str
    after: str = ""


@dataclass
class Reproduction:
    """What was made, by the names of its files, and what was not available.

    Parameters
    ----------
    tables : list of ResultTable
    pictures : dict
        Name -> Picture.
    missing : dict
        Data set, or what else could not be used -> why.
    seconds : float
        Processor time of the trials.
    """

    tables: list[ResultTable] = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def require_matplotlib() -> None:
    """Fail before the trials rather than after them where figures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError("the figures need matplotlib", name="matplotlib")


def write_tables(folder: Path, tables: Sequence[ResultTable]) -> None:
    """Write tables as Markdown and CSV."""
    for table in tables:
        atomic_write(folder / f"{table.name}.md", table.markdown().encode())
        atomic_write(folder / f"{table.name}.csv", table.csv().encode())


def write_picture(folder: Path, name: str, title: str, note: str, figure: Any, after: str = "") -> Picture:
    """Write a matplotlib figure as SVG and PNG, the same bytes for the same picture."""
    from matplotlib import rc_context

    written = {}
    with rc_context({"svg.hashsalt": "safespn"}):
        for kind, metadata in {"svg": {"Date": None}, "png": {"Software": None}}.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
            atomic_write(folder / f"{name}.{kind}", buffer.getvalue())
            written[kind] = buffer.getvalue()
    return Picture(title, note, written["svg"].decode(), after)

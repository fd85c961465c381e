"""From a file with a target column to features, labels with gaps, and an account of what was decided."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from safespn.tables.cells import Cells, cells_of
from safespn.tables.column_types import ColumnType, categorical, continuous, decide_type
from safespn.tables.errors import TableError
from safespn.tables.reading import open_table
from safespn.typing import AnyArray, BoolArray

UNLABELLED = ""
"""What marks an unlabelled row in the labels of a :class:`TrainingTable`."""


@dataclass(frozen=True)
class ColumnChoices:
    """What the owner of a table says about its columns.

    Parameters
    ----------
    categorical, continuous, ignore : tuple of str
        Names of columns whose type is not to be guessed.
    missing : tuple of str
        Texts that mark a missing cell, besides the usual ones.
    unlabelled : tuple of str
        Labels that mark an unlabelled row, besides an empty cell.
    """

    categorical: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table ready to learn from.

    Parameters
    ----------
    source : str
        Where it came from.
    target : str
        Name of the target column.
    features : DataFrame
        Numbers as float64, categories as strings; NaN or None where missing.
    labels : array of shape (n_rows,)
        Class names; ``UNLABELLED`` where there is none.
    columns : list of ColumnType
        All columns but the target, in the file's order.
    choices : ColumnChoices
    notes : list of str
        What is unusual about the file and was understood.
    """

    source: str
    target: str
    features: pd.DataFrame
    labels: AnyArray
    columns: list[ColumnType]
    choices: ColumnChoices = field(default_factory=ColumnChoices)
    notes: list[str] = field(default_factory=list)

    @property
    def is_labelled(self) -> BoolArray:
        return np.asarray(self.labels != UNLABELLED)

    @property
    def warnings(self) -> list[str]:
        """What the owner should know before a fit."""
        lines = [f"column {column}; {column.advice}" for column in self.columns if column.advice]
        classes, counts = np.unique(self.labels[self.is_labelled].astype(str), return_counts=True)
        if "-1" in classes:
            lines.append(
                f"target {self.target!r}: -1 is taken as a class; if it marks unlabelled rows, pass --unlabelled=-1"
            )
        lines += [
            f"target {self.target!r}: class {name!r} has a single labelled row; a few more would help"
            for name in classes[counts == 1].tolist()
        ]
        return lines


def read_training_table(path: Path, target: str, choices: ColumnChoices) -> TrainingTable:
    """Read a CSV or Parquet file and decide the types of its columns.

    Raises
    ------
    TableError
        If nothing can be learned from it.
    """
    file = open_table(path)
    choices = _checked(choices, target, file.names, str(path))
    rows = file.read()
    columns = {
        name: cells_of(rows[name], kind, choices.missing, file.decimal)
        for name, kind in file.kinds.items()
        if kind in ("text", "number")
    }
    if target not in columns:
        raise TableError(f"{path}: target {target!r} holds {file.kinds[target]}s; expected classes")
    labels = _labels(columns.pop(target), choices)
    unusable = {name: kind for name, kind in file.kinds.items() if kind in ("date", "nested")}
    types = [
        _unusable(name, unusable[name]) if name in unusable else _decide(name, columns[name], choices, str(path))
        for name in file.names
        if name != target
    ]
    return training_table(str(path), target, columns, types, labels, choices, file.notes)


def training_table(
    source: str,
    target: str,
    columns: dict[str, Cells],
    types: list[ColumnType],
    labels: AnyArray,
    choices: ColumnChoices | None = None,
    notes: Sequence[str] = (),
) -> TrainingTable:
    """Put features together and check that there is something to learn."""
    _check_labels(labels, source, target)
    used = [column for column in types if column.kind != "ignored"]
    if not used:
        reasons = "; ".join(str(column) for column in types) or "there is no other column"
        raise TableError(f"{source}: no column left to learn from besides the target ({reasons})")
    features = {
        column.name: columns[column.name].categories()
        if column.kind == "categorical"
        else _finite(columns[column.name], column.name, source)
        for column in used
    }
    return TrainingTable(source, target, pd.DataFrame(features), labels, types, choices or ColumnChoices(), list(notes))


def _decide(name: str, cells: Cells, choices: ColumnChoices, source: str) -> ColumnType:
    if name in choices.ignore:
        return ColumnType(name, "ignored", "as asked")
    if name in choices.categorical:
        return categorical(name, cells)
    if name in choices.continuous:
        return continuous(name, cells, source)
    return decide_type(name, cells, source)


def _unusable(name: str, kind: str) -> ColumnType:
    if kind == "date":
        return ColumnType(name, "ignored", "dates", "turn them into numbers, such as days since a start")
    return ColumnType(name, "ignored", "nested values", "spread them over columns of their own")


def _labels(cells: Cells, choices: ColumnChoices) -> AnyArray:
    names = cells.categories()
    hidden = [UNLABELLED, *choices.unlabelled]
    return np.array([UNLABELLED if name is None or name in hidden else name for name in names], dtype=object)


def _check_labels(labels: AnyArray, source: str, target: str) -> None:
    known = labels[labels != UNLABELLED].astype(str)
    classes = np.unique(known).tolist()
    where = f"{source}: target {target!r}"
    if not len(known):
        raise TableError(f"{where} has no label in any of {len(labels)} rows; label some rows of each class")
    if len(classes) == 1:
        raise TableError(
            f"{where} has the single class {classes[0]!r} ({len(known)} rows); label rows of another class"
        )
    if len(classes) > max(20, len(known) // 2):
        raise TableError(
            f"{where} has {len(classes)} different labels in {len(known)} labelled rows, so it is no class to predict; "
            "choose another target, or group its values"
        )


def _finite(cells: Cells, name: str, source: str) -> AnyArray:
    infinite = np.isinf(cells.numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise TableError(
            f"{source}: column {name!r}, row {row + 1}: {cells.texts[row]} is infinite; expected a finite number, "
            "or an empty cell where missing"
        )
    return cells.numbers


def _checked(choices: ColumnChoices, target: str, names: Sequence[str], source: str) -> ColumnChoices:
    """Split lists of names at commas, and check that every name is a column and has one role."""
    _check_name(target, names, source)
    given = {
        kind: tuple(
            name for value in getattr(choices, kind) for name in ([value] if value in names else value.split(","))
        )
        for kind in ("categorical", "continuous", "ignore")
    }
    role = {target: "target"}
    for kind, of_kind in given.items():
        for name in of_kind:
            _check_name(name, names, source)
            if role.setdefault(name, kind) != kind:
                raise TableError(f"{source}: column {name!r} cannot be both {role[name]} and {kind}; pass one of them")
    return replace(choices, **given)


def _check_name(name: str, names: Sequence[str], source: str) -> None:
    if name in names:
        return
    lower = {each.lower(): each for each in names}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=1)]
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    hint = f"did you mean {close[0]!r}?" if close else f"its columns are: {listed}"
    raise TableError(f"{source}: no column {name!r}; {hint}")

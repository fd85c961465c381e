"""From a file with a target column to features, labels with gaps, and an account of what was decided."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from safespn.exceptions import TableError
from safespn.foundation.column_types import ColumnType, shortened
from safespn.foundation.label_doubts import label_doubts
from safespn.foundation.lazy_frames import is_lazy
from safespn.foundation.sentinels import find_sentinels
from safespn.network.columns import SMALLEST_RANGE
from safespn.tables.cells import Cells, cells_of
from safespn.tables.column_types import advice_on, categorical, continuous, decide_type
from safespn.tables.reading import TableFile
from safespn.typing import AnyArray, BoolArray, IntArray

MOST_CODES = 10
"""Columns of more different whole numbers are hardly codes."""
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
    id : str, optional
        Name of the column that names rows; it is never learned from.
    """

    categorical: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    id: str | None = None


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table ready to learn from.

    Parameters
    ----------
    source : str
        Where it came from.
    target : str
        Name of the target column.
    features : DataFrame, or Dask data frame
        All columns but the target: numbers as float64, categories as strings, or as numbers if all are; NaN or None
        where missing. Ignored columns are empty.
    labels : array of shape (n_rows,)
        Class names; ``UNLABELLED`` where there is none.
    columns : list of ColumnType
        All columns but the target, in the file's order.
    choices : ColumnChoices
    notes : list of str
        What is unusual about the file and was understood.
    ids : array of shape (n_rows,), optional
        Names of the rows, if a column has them.
    """

    source: str
    target: str
    features: Any
    labels: AnyArray
    columns: list[ColumnType]
    choices: ColumnChoices = field(default_factory=ColumnChoices)
    notes: list[str] = field(default_factory=list)
    ids: AnyArray | None = None

    @property
    def is_labelled(self) -> BoolArray:
        return np.asarray(self.labels != UNLABELLED)

    @property
    def column_types(self) -> dict[str, str]:
        """Type of each column, as a fit takes it beside the features."""
        return {column.name: column.kind for column in self.columns}

    @property
    def used_columns(self) -> list[str]:
        """Names of the columns that are not ignored."""
        return [column.name for column in self.columns if column.kind != "ignored"]

    def features_of(self, rows: IntArray) -> Any:
        """Features of some of the rows, for a fit to these alone.

        Numbers whose differences are negligible beside the rest of their column are made equal: where the rest is not
        there, a fit would refuse them as too close together.
        """
        some = self.features.iloc[rows]
        for column in self.columns:
            if column.kind == "continuous":
                values = some[column.name]
                if 0 < values.max() - values.min() < SMALLEST_RANGE:
                    some = some.assign(**{column.name: values.mask(values.notna(), values.min())})
        return some

    @property
    def targets(self) -> Any:
        """Labels as a fit takes them beside the features."""
        return self.labels

    def for_report(self, seed: int) -> tuple[TrainingTable, IntArray | slice]:
        """Return the rows that a report is made from, and where its unlabelled rows are among all unlabelled rows."""
        return self, slice(None)

    @property
    def warnings(self) -> list[str]:
        """What the owner should know before a fit."""
        lines = [f"column {column}; {advice_on(column)}" for column in self.columns if advice_on(column)]
        lines += self._sentinels()
        classes, counts = np.unique(self.labels[self.is_labelled].astype(str), return_counts=True)
        doubts = label_doubts(classes, counts, len(self.labels), "--unlabeled={}".format)
        lines += [f"target {self.target!r}: {doubt}" for doubt in doubts]
        lines += [
            f"target {self.target!r}: class {name!r} has a single labelled row; a few more would help"
            for name in classes[counts == 1].tolist()
        ]
        return lines

    @property
    def possible_codes(self) -> list[str]:
        """Names of columns of a few different whole numbers, which may be codes of categories."""
        if is_lazy(self.features):
            return []
        found = []
        for column in self.columns:
            if column.kind == "continuous":
                present = self.features[column.name].dropna().unique()
                if 3 <= len(present) <= MOST_CODES and (present == np.round(present)).all():
                    found.append(column.name)
        return found

    def _sentinels(self) -> list[str]:
        if is_lazy(self.features):
            return []
        return [
            f"column {column.name}: {code:g} in {n_cells} rows, far outside the rest; if it marks missing cells, pass "
            f"--missing={code:g}"
            for column in self.columns
            if column.kind == "continuous"
            for code, n_cells in find_sentinels(self.features[column.name].to_numpy(dtype=np.float64, na_value=np.nan))
        ]


def read_training_table(file: TableFile, target: str, choices: ColumnChoices) -> TrainingTable:
    """Read a file and decide the types of its columns.

    Raises
    ------
    TableError
        If nothing can be learned from it.
    """
    choices = checked_choices(choices, target, file)
    chunk = file.read()
    labels = labels_of(file, chunk.pop(target), target, choices)
    check_labels(labels, str(file.path), target, choices.unlabelled)
    return decided_table(file, target, chunk, labels, choices)


def decided_table(
    file: TableFile,
    target: str,
    chunk: dict[str, AnyArray],
    labels: AnyArray,
    choices: ColumnChoices,
    rows: IntArray | None = None,
) -> TrainingTable:
    """Decide the types of columns by their cells, and put features together.

    Parameters
    ----------
    chunk : dict
        Cells of all columns but the target, as read from the file.
    labels : array of shape (n_rows,)
    rows : array of shape (n_rows,), optional
        Numbers of these rows in the file, counted from 0, if they are not all.
    """
    source = str(file.path)
    columns = look_at(file, chunk, choices, rows)
    types = [
        _decide(name, columns[name], choices, source) if name in columns else _unusable(name, kind)
        for name, kind in file.kinds.items()
        if name != target
    ]
    if all(column.kind == "ignored" for column in types):
        reasons = "; ".join(str(column) for column in types) or "there is no other column"
        raise TableError(f"{source}: no column left to learn from besides the target ({reasons})")
    notes = [*file.notes, *_notes_on_amounts(columns, types)]
    ids = None if choices.id is None else columns[choices.id].texts
    return TrainingTable(source, target, features_of(columns, types, source), labels, types, choices, notes, ids)


def _notes_on_amounts(columns: dict[str, Cells], types: Sequence[ColumnType]) -> list[str]:
    amounts = {each.name: columns[each.name].amount for each in types if each.kind == "continuous"}
    return [
        f"column {name!r}: {amount[0]!r} is read as the number {amount[1]:.10g}"
        for name, amount in amounts.items()
        if amount
    ]


def look_at(
    file: TableFile, chunk: dict[str, AnyArray], choices: ColumnChoices, rows: IntArray | None = None
) -> dict[str, Cells]:
    """Look at rows of a file: which of their cells are missing, and what the others are."""
    return {
        name: cells_of(column, file.kinds[name], choices.missing, file.decimal, rows, grouping=file.grouping(name))
        for name, column in chunk.items()
        if file.kinds[name] in ("text", "number")
    }


def features_of(columns: dict[str, Cells], types: Sequence[ColumnType], source: str) -> pd.DataFrame:
    """Put features together: numbers or categories, as was decided; nothing in columns that are ignored."""
    n_rows = len(next(iter(columns.values())).numbers)
    return pd.DataFrame(
        {
            column.name: np.full(n_rows, np.nan)
            if column.kind == "ignored"
            else columns[column.name].categories()
            if column.kind == "categorical" and not column.of_numbers
            else _numbers(columns[column.name], column.name, source)
            for column in types
        }
    )


def _decide(name: str, cells: Cells, choices: ColumnChoices, source: str) -> ColumnType:
    if name == choices.id:
        return ColumnType(name, "ignored", "names of rows")
    if name in choices.ignore:
        return ColumnType(name, "ignored", "as asked")
    if name in choices.categorical:
        return categorical(name, cells)
    if name in choices.continuous:
        return continuous(name, cells, source)
    return decide_type(name, cells, source)


def _unusable(name: str, kind: str) -> ColumnType:
    if kind == "date":
        return ColumnType(name, "ignored", "dates")
    return ColumnType(name, "ignored", "nested values")


def labels_of(file: TableFile, column: AnyArray, target: str, choices: ColumnChoices) -> AnyArray:
    """Class names of rows of the target column; ``UNLABELLED`` where there is none."""
    names = cells_of(column, file.kinds[target], choices.missing, file.decimal).categories()
    hidden = [UNLABELLED, *choices.unlabelled]
    return np.array([UNLABELLED if name is None or name in hidden else name for name in names], dtype=object)


def check_labels(labels: AnyArray, source: str, target: str, markers: Sequence[str] = ()) -> None:
    """Check that there are classes to learn; ``markers`` are those of unlabelled rows."""
    known = labels[labels != UNLABELLED].astype(str)
    classes = np.unique(known).tolist()
    where = f"{source}: target {target!r}"
    if not len(known):
        raise TableError(f"{where} has no label in any of {len(labels)} rows; label some rows of each class")
    if len(classes) == 1:
        hint = f"; if {markers[0]!r} is a class, do not pass it as --unlabeled" if markers else ""
        raise TableError(
            f"{where} has the single class {classes[0]!r} ({len(known)} rows); label rows of another class{hint}"
        )
    if len(classes) > max(20, len(known) // 2):
        raise TableError(
            f"{where} has {len(classes)} different labels in {len(known)} labelled rows, too many to be classes; "
            "choose another target, or group its values"
        )


def _numbers(cells: Cells, name: str, source: str) -> AnyArray:
    wrong = np.isinf(cells.numbers) | cells.is_text
    if wrong.any():
        row = int(np.argmax(wrong))
        where, text = f"{source}: column {name!r}, row {cells.row_number(row)}", shortened(cells.texts[row])
        if cells.is_text[row]:
            raise TableError(
                f"{where}: {text!r} is not a number, but the sample that decided its type held numbers only; "
                f"pass --missing {text!r} if it marks a missing cell, --categorical {name!r} or --ignore {name!r}"
            )
        raise TableError(f"{where}: {text} is infinite; expected a finite number, or an empty cell where missing")
    return cells.numbers


def checked_choices(choices: ColumnChoices, target: str, file: TableFile) -> ColumnChoices:
    """Split lists of names at commas, and check that every name is a column and has one role."""
    names, source = file.names, str(file.path)
    _check_name(target, names, source)
    if file.kinds[target] not in ("text", "number"):
        raise TableError(f"{source}: target {target!r} holds {file.kinds[target]}s; expected classes")
    given: dict[str, Any] = {
        kind: tuple(
            name for value in getattr(choices, kind) for name in ([value] if value in names else value.split(","))
        )
        for kind in ("categorical", "continuous", "ignore")
    }
    role = {target: "target"}
    if choices.id is not None:
        check_id(choices.id, file)
        if choices.id == target:
            raise TableError(f"{source}: column {target!r} cannot be both target and id; pass one of them")
        role[choices.id] = "id"
    for kind, of_kind in given.items():
        for name in of_kind:
            _check_name(name, names, source)
            if role.setdefault(name, kind) != kind:
                raise TableError(f"{source}: column {name!r} cannot be both {role[name]} and {kind}; pass one of them")
    return replace(choices, **given)


def check_id(name: str, file: TableFile) -> None:
    """Check that a file has a column that can name its rows."""
    _check_name(name, file.names, str(file.path))
    if file.kinds[name] not in ("text", "number"):
        raise TableError(f"{file.path}: --id {name!r} holds {file.kinds[name]}s; expected texts or numbers")


def _check_name(name: str, names: Sequence[str], source: str) -> None:
    if name in names:
        return
    lower = {each.lower(): each for each in names}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=1)]
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    hint = f"did you mean {close[0]!r}?" if close else f"its columns are: {listed}"
    raise TableError(f"{source}: no column {name!r}; {hint}")

"""All errors and warnings of the package; each is a kind of one of Python's own, so that old handlers catch it."""

from __future__ import annotations

from typing import Any


class TableError(ValueError):
    """A table that cannot be used: one line with what is wrong, where, and what to do."""


class ModelFileError(ValueError):
    """A file that is not a model this version can read: damaged, foreign, or newer."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used for this fit."""


class ScratchError(ValueError):
    """A scratch folder that cannot be written, or a disk with too little room."""


class CheckpointWarning(UserWarning):
    """A problem with a checkpoint that does not stop the fit."""


class DatasetNotFoundError(LookupError):
    """A data set is in none of the places where it was looked for."""


class ResultsMismatchError(ValueError):
    """A folder holds trials of other settings."""


class DegenerateColumnWarning(UserWarning):
    """A column carries no information, for example because all its values are equal."""


class FewLabelsWarning(UserWarning):
    """No label can be left out to check predictions with: every class has a single distinct labelled row."""


class LabelWarning(UserWarning):
    """A label looks like a marker of unlabelled rows, or the labels like a quantity."""


class SentinelWarning(UserWarning):
    """A number such as -999 stands far outside the rest of its column, and may mark missing cells."""


class AuditWarning(UserWarning):
    """There are fewer rows to audit than were asked for, or none."""


class EnoughLabelsWarning(UserWarning):
    """More labels are expected to bring less than a point of accuracy."""


class IgnoredColumnWarning(UserWarning):
    """A column of a data frame was left out that may matter.

    Parameters
    ----------
    column : str or int
        Name of the column.
    reason : str
    alternative : str
        The type to declare if it matters; empty if there is none.
    """

    def __init__(self, column: Any, reason: str, alternative: str) -> None:
        super().__init__(column, reason, alternative)
        self.column, self.reason, self.alternative = column, reason, alternative

    def __str__(self) -> str:
        advice = "if they matter, turn them into numbers, such as days since a start"
        if self.alternative:
            advice = f"if it matters, pass column_types={{{self.column!r}: {self.alternative!r}}} to fit"
        return f"column {self.column!r} is ignored ({self.reason}); {advice}"


class UnseenCategoryWarning(UserWarning):
    """A category that did not occur in training was treated as missing.

    Parameters
    ----------
    column : str or int
        Name of the column.
    example : object
        The first such category.
    n_rows : int
        Number of rows with such categories.
    """

    def __init__(self, column: Any, example: Any, n_rows: int) -> None:
        super().__init__(column, example, n_rows)
        self.column, self.example, self.n_rows = column, example, n_rows

    def __str__(self) -> str:
        return (
            f"column {self.column!r} holds {self.example!r}, which did not occur in training; treated as missing "
            f"({self.n_rows} rows)"
        )

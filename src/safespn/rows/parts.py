"""Parts of a table, and what is asked of them.

A fit never sees rows. It hands out a :class:`Task`, a pure function of one part and of what is kept with that part;
the summaries of all parts are added up, and what is to be kept stays where the part is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from safespn.network.structure import Structure
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

ROWS_PER_PIECE = 10_272
"""As many as the compiled pass takes at once; short enough that what is computed for them stays in cache."""


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
    codes : array of shape (n_rows,)
        Class of each row, -1 where it is unknown.
    weights : array of shape (n_rows,) or None
        Row weights.
    number : int
        Which of the parts this is.
    """

    table: AnyArray
    codes: IntArray
    weights: FloatArray | None = None
    number: int = 0

    @property
    def is_unlabelled(self) -> BoolArray:
        return np.asarray(self.codes < 0)

    def rows_at(self, places: Sequence[IntArray]) -> IntArray:
        """Row numbers, in order, given for each class, and last for unknown class, numbers among the rows of it."""
        wanted = [*enumerate(places[:-1]), (-1, places[-1])]
        return np.sort(np.concatenate([np.nonzero(self.codes == code)[0][chosen] for code, chosen in wanted]))

    def slices(self, n_rows: int) -> list[slice]:
        """Divide the rows into pieces of so many."""
        return [slice(start, start + n_rows) for start in range(0, len(self.codes), n_rows)]

    def take(self, rows: slice | IntArray | BoolArray) -> Part:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.table[rows], self.codes[rows], weights, self.number)


class Task(Protocol):
    """A pure function of a part."""

    def __call__(self, structure: Structure, part: Part, kept: Any) -> tuple[Any, Any]:
        """Return a summary, which adds over parts (or None), and what to keep with the part from now on."""


Kept = Sequence[Any]
"""What is kept with each part, in the order of the parts: values, or promises of values that live elsewhere."""


class Rows(Protocol):
    """All rows of a problem."""

    @property
    def counts(self) -> IntArray:
        """Number of rows of each class and, last, of unknown class; shape (n_classes + 1,)."""

    @property
    def weight_totals(self) -> FloatArray:
        """Total weights in the order of ``counts``."""

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    def run(self, task: Task, structure: Structure, kept: Kept | None = None) -> tuple[Any, Kept]:
        """Run a task on every part; return the sum of the summaries and what each part keeps."""

    def labelled(self) -> Rows:
        """Return the rows whose class is known."""

    def fetch(self, places: Sequence[IntArray]) -> Part:
        """Bring some rows into memory: for each class, and last for unknown class, numbers among the rows of it."""

    def batches(self, n_rows: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield all rows once, in random mini-batches of about so many rows."""

    def joined(self, kept: Kept, n_columns: int) -> Any:
        """Join arrays that were kept, one for each part with its unlabelled rows only, into one array."""

    def pairs(self, kept: Kept, of_unlabelled: FloatArray) -> Kept:
        """Pair what is kept with each part with its share of an array over all unlabelled rows."""

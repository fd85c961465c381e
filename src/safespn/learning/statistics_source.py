"""What a fit of the parameters sees of the rows: statistics as a function of parameters, and the rows' weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence
from safespn.engine.statistics import Statistics
from safespn.network.structure import Parameters, Structure
from safespn.typing import AnyArray, FloatArray


class StatisticsSource(Protocol):
    """Rows behind a function from parameters to expected statistics, wherever the rows are."""

    @property
    def structure(self) -> Structure:
        """The network's wiring."""

    @property
    def total_weight(self) -> float:
        """Number of rows, or the sum of their weights."""

    def statistics(self, parameters: Parameters, n_passes: int = 1) -> Statistics:
        """Expected statistics of all rows; ``n_passes`` says how many such calls to expect."""


@dataclass(frozen=True, eq=False)
class TableSource:
    """Rows of a table in memory.

    Parameters
    ----------
    structure : Structure
    table : array of shape (n_rows, n_columns)
    evidence : Evidence or None
        How rows enter at the root.
    weights : array of shape (n_rows,) or None
    hard : bool
        Let each row count for its best tree only (max-product).
    n_jobs : int or None
        Number of threads.
    """

    structure: Structure
    table: AnyArray
    evidence: Evidence | None = None
    weights: FloatArray | None = None
    hard: bool = False
    n_jobs: int | None = None

    @property
    def total_weight(self) -> float:
        return float(len(self.table) if self.weights is None else self.weights.sum())

    def statistics(self, parameters: Parameters, n_passes: int = 1) -> Statistics:
        return passes.statistics(
            bind(self.structure, parameters),
            self.table,
            self.evidence,
            self.weights,
            hard=self.hard,
            n_passes=n_passes,
            n_jobs=self.n_jobs,
        )

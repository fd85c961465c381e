"""Sufficient reasons: the fewest cells of a row that alone keep its predicted class probable.

A set S of cells keeps the class c with probability ``p(c | x_S)``, the other cells marginalised exactly: with a single
network that is the mean of p(c | x) over all that the other cells could be (Wang, Khosravi and Van den Broeck 2021).
Also here: the game behind the Shapley values of one row, for those who have other questions to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from safespn.answers.coalitions import SubsetPosteriors
from safespn.answers.explanation import MOST_EXACT_COLUMNS, log_odds, subsets_in_chains
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

TIE = 1e-12
"""Probabilities that fall short by less are equal but for rounding."""


@dataclass(frozen=True)
class SufficientReason:
    """Cells that alone keep a prediction; made by :meth:`SafeSPNClassifier.sufficient_reason`.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns, those that matter most first; empty if the class is as probable with nothing known.
    label : object
        The predicted class.
    probability : float
        Of that class given these cells alone.
    is_smallest : bool
        Whether no smaller set would do: all sets were looked at. Rows with many cells are searched greedily.
    is_reached : bool
        Whether the probability asked for is reached. If not even all cells reach it, these are all of them.
    """

    columns: tuple[str, ...]
    label: object
    probability: float
    is_smallest: bool
    is_reached: bool

    def __str__(self) -> str:
        if not self.is_reached:
            return f"No cells make {self.label} as probable as asked for; all together {self.probability:.2f}."
        what = f"{', '.join(self.columns)} alone" if self.columns else "nothing known"
        kind = "no smaller set does" if self.is_smallest else "by a greedy search, a smaller set may do"
        return f"{what}: {self.label} with probability {self.probability:.2f}; {kind}."


def find_reasons(
    posteriors: SubsetPosteriors,
    cells: FloatArray,
    codes: IntArray,
    probability: float,
    labels: AnyArray,
    names: Sequence[str],
) -> list[SufficientReason]:
    """Find for each row the fewest columns with ``p(class | their cells) >= probability``.

    Of several smallest sets the one with the largest probability is taken.

    Parameters
    ----------
    posteriors : callable
        Log class posteriors given subsets of cells.
    cells : array of shape (n_rows, n_columns)
        NaN where missing.
    codes : array of shape (n_rows,)
        Number of the class whose probability counts.
    labels : array of shape (n_classes,)
    names : sequence of str
        Of the columns.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability must lie between 0 and 1, got {probability:g}")
    found = []
    for row, code in zip(cells, codes.tolist(), strict=True):
        known = np.flatnonzero(~np.isnan(row))
        is_short = len(known) <= MOST_EXACT_COLUMNS
        worth = _Worth(posteriors, row[None], code)
        columns, is_reached = (_by_enumeration if is_short else _by_greedy_search)(worth, known, probability)
        reached = float(_with(worth, [], [columns.tolist()])[0])
        chosen = tuple(names[column] for column in columns.tolist())
        found.append(SufficientReason(chosen, labels[code], reached, is_short, is_reached))
    return found


@dataclass(frozen=True, eq=False)
class _Worth:
    """Probability of a class of one row given subsets of its cells."""

    posteriors: SubsetPosteriors
    row: FloatArray
    code: int

    def __call__(self, subsets: BoolArray) -> FloatArray:
        return np.asarray(np.exp(self.posteriors(self.row, subsets)[:, 0, self.code]))


def _by_enumeration(worth: _Worth, known: IntArray, probability: float) -> tuple[IntArray, bool]:
    """Look at all subsets."""
    players = subsets_in_chains(len(known))
    subsets = np.zeros((len(players), worth.row.shape[1]), dtype=np.bool_)
    subsets[:, known] = players
    reached = worth(subsets)
    enough = reached >= probability - TIE
    if not enough.any():
        return known, False
    size = np.where(enough, players.sum(axis=1), len(known) + 1)
    best = int(np.argmax(np.where(size == size.min(), reached, -np.inf)))
    return _by_importance(worth, known[players[best]]), True


def _by_greedy_search(worth: _Worth, known: IntArray, probability: float) -> tuple[IntArray, bool]:
    """Add the column that raises the probability most until it suffices; then leave out those no longer needed."""
    chosen: list[int] = []
    while _with(worth, chosen, [[]])[0] < probability - TIE:
        rest = [column for column in known.tolist() if column not in chosen]
        if not rest:
            return known, False
        chosen.append(rest[int(np.argmax(_with(worth, chosen, [[column] for column in rest])))])
    for column in chosen[:-1]:
        others = [each for each in chosen if each != column]
        if _with(worth, others, [[]])[0] >= probability - TIE:
            chosen = others
    return np.array(chosen, dtype=np.intp), True


def _by_importance(worth: _Worth, columns: IntArray) -> IntArray:
    """Order columns by what the probability loses without each."""
    others = [[column for column in columns.tolist() if column != left_out] for left_out in columns.tolist()]
    return columns[np.argsort(_with(worth, [], others), kind="stable")] if len(columns) > 1 else columns


def _with(worth: _Worth, chosen: list[int], more: list[list[int]]) -> FloatArray:
    """Probabilities given some columns together with each of several lists of others."""
    subsets = np.zeros((len(more), worth.row.shape[1]), dtype=np.bool_)
    for subset, columns in zip(subsets, more, strict=True):
        subset[[*chosen, *columns]] = True
    return worth(subsets)


class CoalitionGame:
    """The game whose Shapley values explain one row: what sets of its known cells are worth.

    Calling it with truth values of shape (n_coalitions, n_players) gives log odds of shape (n_coalitions,): what
    libraries of cooperative games ask for, among them shapiq.

    Parameters
    ----------
    posteriors : callable
        Log class posteriors given subsets of cells.
    cells : array of shape (n_columns,)
    code : int
        Number of the class.
    names : sequence of str
        Names of all columns.

    Attributes
    ----------
    n_players : int
        Number of known cells.
    player_names : list of str
    """

    def __init__(self, posteriors: SubsetPosteriors, cells: FloatArray, code: int, names: Sequence[str]) -> None:
        self._posteriors, self._cells, self._code = posteriors, cells[None], code
        self._players = np.flatnonzero(~np.isnan(cells))
        self.n_players = len(self._players)
        self.player_names = [names[column] for column in self._players.tolist()]

    def __call__(self, coalitions: AnyArray) -> FloatArray:
        """Log odds of the class given the cells of each coalition."""
        members = np.asarray(coalitions, dtype=np.bool_)
        if members.ndim == 1:
            members = members[None]
        if members.ndim != 2 or members.shape[1] != self.n_players:
            raise ValueError(
                f"expected truth values for each of {self.n_players} players, got an array of shape {members.shape}"
            )
        subsets = np.zeros((len(members), self._cells.shape[1]), dtype=np.bool_)
        subsets[:, self._players] = members
        return log_odds(self._posteriors(self._cells, subsets)[:, 0], np.full(len(members), self._code))

    @property
    def empty_coalition_value(self) -> float:
        """Log odds with nothing known."""
        return float(self(np.zeros(self.n_players))[0])

    @property
    def grand_coalition_value(self) -> float:
        """Log odds with all known cells."""
        return float(self(np.ones(self.n_players))[0])

    normalization_value = empty_coalition_value

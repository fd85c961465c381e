"""Why a row is predicted as it is: conditional Shapley values of its columns.

The players are the observed cells of a row. A coalition S of columns is worth the log odds of the class against the
rest given these cells alone, ``v(S) = log p(c | x_S) - log(1 - p(c | x_S))``. The other cells are marginalised exactly,
so no background sample is needed and dependent columns are treated as what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import numpy as np

from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

LogPosterior = Callable[[FloatArray], FloatArray]
"""From cells, shape (n_rows, n_columns), NaN where missing, to log class posteriors, shape (n_rows, n_classes)."""

MOST_EXACT_COLUMNS = 10
"""Up to so many observed cells all subsets are evaluated."""
ROWS_PER_CALL = 65_536
IMPOSSIBLE = 745.0
"""Log odds of a class that is impossible, or certain, in floating point."""
PAIRS_PER_ROUND = 8


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each column contributes to the log odds of a class; made by :meth:`SafeSPNClassifier.explain`.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        Shapley values in nats; 0 for missing cells. ``base + values.sum(axis=1)`` is ``total``.
    base : array of shape (n_rows,)
        Log odds of the class against the rest when no cell is known.
    total : array of shape (n_rows,)
        Log odds of the class given all cells of the row that are known.
    standard_error : array of shape (n_rows, n_columns)
        Of the values; 0 where all subsets of columns were evaluated.
    labels : array of shape (n_rows,)
        The class that is explained, for each row.
    cells : array of shape (n_rows, n_columns)
        The rows, categories as codes.
    columns : list of str
        Names of the columns.
    """

    values: FloatArray
    base: FloatArray
    total: FloatArray
    standard_error: FloatArray
    labels: AnyArray
    cells: FloatArray
    columns: list[str]


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of rows with their standard errors, and the worth of no cell and of all."""

    values: FloatArray
    base: FloatArray
    total: FloatArray
    standard_error: FloatArray


def log_odds(log_posterior: FloatArray, codes: IntArray) -> FloatArray:
    """Log odds of one class per row against all others together, shape (n_rows,); finite also for certain classes."""
    rows = np.arange(len(codes))
    others = log_posterior.copy()
    others[rows, codes] = -np.inf
    with np.errstate(invalid="ignore"):
        odds = log_posterior[rows, codes] - np.logaddexp.reduce(others, axis=1)
    return np.asarray(np.nan_to_num(odds, nan=0.0, posinf=IMPOSSIBLE, neginf=-IMPOSSIBLE))


def explain_rows(
    log_posterior: LogPosterior,
    cells: FloatArray,
    codes: IntArray,
    generator: np.random.Generator,
    tolerance: float = 0.02,
    max_permutations: int = 256,
) -> ShapleyValues:
    """Shapley values of the log odds of one class per row.

    Parameters
    ----------
    log_posterior : callable
        Log class posteriors of cells with NaN where they are missing.
    cells : array of shape (n_rows, n_columns)
    codes : array of shape (n_rows,)
        Number of the class to explain.
    generator : numpy Generator
        For rows with more than :data:`MOST_EXACT_COLUMNS` cells.
    tolerance : float
        Orders of the columns are drawn until every standard error of a row is at most this.
    max_permutations : int
        Most orders per row.
    """
    n_rows, n_columns = cells.shape
    values, errors = np.zeros((n_rows, n_columns)), np.zeros((n_rows, n_columns))
    nothing = log_posterior(np.full((1, n_columns), np.nan))
    base = log_odds(np.repeat(nothing, n_rows, axis=0), codes)
    total = log_odds(log_posterior(cells), codes)
    observed = ~np.isnan(cells)
    n_players = observed.sum(axis=1)
    for n in np.unique(n_players[n_players > 0]).tolist():
        rows = np.flatnonzero(n_players == n)
        players = np.nonzero(observed[rows])[1].reshape(len(rows), n)
        game = _Game(log_posterior, cells[rows], codes[rows], players, base[rows], total[rows])
        at = rows[:, None], players
        if n <= MOST_EXACT_COLUMNS:
            values[at] = _all_subsets(game)
        else:
            values[at], errors[at] = _permutations(game, generator, tolerance, max_permutations)
    return ShapleyValues(values, base, total, errors)


@dataclass(frozen=True, eq=False)
class _Game:
    """Rows with equally many observed cells; ``players``, shape (n_rows, n_players), are their columns."""

    log_posterior: LogPosterior
    cells: FloatArray
    codes: IntArray
    players: IntArray
    base: FloatArray
    total: FloatArray

    def worth(self, rows: IntArray, members: BoolArray) -> FloatArray:
        """Log odds of coalitions, shape (n,): ``members[i]`` says which players of row ``rows[i]`` take part."""
        result = np.empty(len(rows))
        for start in range(0, len(rows), ROWS_PER_CALL):
            piece = slice(start, start + ROWS_PER_CALL)
            at = rows[piece]
            players = self.players[at]
            cells = np.full((len(at), self.cells.shape[1]), np.nan)
            known = np.where(members[piece], np.take_along_axis(self.cells[at], players, axis=1), np.nan)
            np.put_along_axis(cells, players, known, axis=1)
            result[piece] = log_odds(self.log_posterior(cells), self.codes[at])
        return result


def _all_subsets(game: _Game) -> FloatArray:
    """Exact Shapley values, shape (n_rows, n_players)."""
    n_rows, n = game.players.shape
    subsets = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    values = np.empty((n_rows, n))
    weights = _subset_weights(subsets)
    rows_per_piece = max(1, 4 * ROWS_PER_CALL // 2**n)
    for start in range(0, n_rows, rows_per_piece):
        rows = np.arange(start, min(start + rows_per_piece, n_rows))
        # Equal patterns of missing cells come one after the other, which multivariate leaves do at once.
        inner = game.worth(np.tile(rows, 2**n - 2), np.repeat(subsets[1:-1], len(rows), axis=0))
        worth = np.vstack([game.base[rows], inner.reshape(-1, len(rows)), game.total[rows]])
        values[rows] = worth.T @ weights
    return values


def _subset_weights(subsets: BoolArray) -> FloatArray:
    """Weight of the worth of each subset in the value of each player, shape (2 ** n, n)."""
    n = subsets.shape[1]
    by_size = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    size = subsets.sum(axis=1)[:, None]
    return np.asarray(np.where(subsets, by_size[np.maximum(size - 1, 0)], -by_size[np.minimum(size, n - 1)]))


def _permutations(
    game: _Game, generator: np.random.Generator, tolerance: float, max_permutations: int
) -> tuple[FloatArray, FloatArray]:
    """Shapley values from random orders of the players, each with its reverse, and their standard errors.

    What the players add one after the other sums to the total in every order, so the estimates do too.
    """
    n_rows, n = game.players.shape
    mean, squares = np.zeros((n_rows, n)), np.zeros((n_rows, n))
    error = np.full((n_rows, n), np.inf)
    n_pairs = 0
    active = np.arange(n_rows)
    while len(active) and 2 * n_pairs < max_permutations:
        for _ in range(PAIRS_PER_ROUND):
            # One order for all rows: equal patterns of missing cells are evaluated together.
            order = generator.permutation(n)
            pair = (_added(game, active, order) + _added(game, active, order[::-1])) / 2
            n_pairs += 1
            change = pair - mean[active]
            mean[active] += change / n_pairs
            squares[active] += change * (pair - mean[active])
        error[active] = np.sqrt(squares[active] / (n_pairs * (n_pairs - 1)))
        active = active[error[active].max(axis=1) > tolerance]
    return mean, error


def _added(game: _Game, rows: IntArray, order: IntArray) -> FloatArray:
    """What each player adds when they come in the given order, shape (n_rows, n_players)."""
    n = len(order)
    place = np.argsort(order)
    members = place <= np.arange(n - 1)[:, None]
    inner = game.worth(np.tile(rows, n - 1), np.repeat(members, len(rows), axis=0)).reshape(n - 1, len(rows))
    worth = np.vstack([game.base[rows], inner, game.total[rows]])
    return np.asarray(np.diff(worth, axis=0)[place].T)

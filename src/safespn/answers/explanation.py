"""Why a row is predicted as it is: conditional Shapley values of its columns.

The players are the observed cells of a row. A coalition S of columns is worth the log odds of the class against the
rest given these cells alone, ``v(S) = log p(c | x_S) - log(1 - p(c | x_S))``. The other cells are marginalised exactly,
so no background sample is needed and dependent columns are treated as what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from math import factorial

import numpy as np

from safespn.answers.coalitions import SubsetPosteriors
from safespn.foundation.distinct import distinct_rows
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

MOST_EXACT_COLUMNS = 10
"""Up to so many observed cells all subsets are evaluated."""
EVALUATED_AT_ONCE = 4_000_000
"""Rows times subsets whose worth is kept at a time."""
IMPOSSIBLE = 745.0
"""Log odds of a class that is impossible, or certain, in floating point."""
FEWEST_CIRCLES = 8
"""Circles from which a standard error is first estimated."""
CIRCLES_AT_ONCE = 4
MOST_ON_CIRCLES = 64
"""Columns beyond which circles would have too many arcs, and single orders are drawn with their reverse."""


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
    of : {"log odds", "probability"}
        What is explained; ``values``, ``base`` and ``total`` are probabilities instead of log odds in the second case.
    """

    values: FloatArray
    base: FloatArray
    total: FloatArray
    standard_error: FloatArray
    labels: AnyArray
    cells: FloatArray
    columns: list[str]
    of: str = "log odds"


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
    if log_posterior.shape[1] == 2:
        rest = log_posterior[rows, 1 - codes]
    else:
        others = log_posterior.copy()
        others[rows, codes] = -np.inf
        rest = reduce(np.logaddexp, others.T)
    with np.errstate(invalid="ignore"):
        odds = log_posterior[rows, codes] - rest
    return np.asarray(np.nan_to_num(odds, nan=0.0, posinf=IMPOSSIBLE, neginf=-IMPOSSIBLE))


def probability(log_posterior: FloatArray, codes: IntArray) -> FloatArray:
    """Probability of one class per row, shape (n_rows,)."""
    return np.asarray(np.exp(log_posterior[np.arange(len(codes)), codes]))


WORTH = {"log odds": log_odds, "probability": probability}
"""What sets of cells may be worth."""


def explain_rows(
    posteriors: SubsetPosteriors,
    cells: FloatArray,
    codes: IntArray,
    generator: np.random.Generator,
    tolerance: float = 0.02,
    max_permutations: int = 10_000,
    of: str = "log odds",
) -> ShapleyValues:
    """Shapley values of the log odds, or of the probability, of one class per row.

    Parameters
    ----------
    posteriors : callable
        Log class posteriors given subsets of cells.
    cells : array of shape (n_rows, n_columns)
        NaN where missing.
    codes : array of shape (n_rows,)
        Number of the class to explain.
    generator : numpy Generator
        For rows with more than :data:`MOST_EXACT_COLUMNS` cells.
    tolerance : float
        Orders of the columns are drawn until every standard error of a row is at most this.
    max_permutations : int
        Most orders per row, but enough to estimate a standard error.
    of : {"log odds", "probability"}
        What sets of cells are worth.
    """
    n_rows, n_columns = cells.shape
    values, errors = np.zeros((n_rows, n_columns)), np.zeros((n_rows, n_columns))
    whole = _Game(posteriors, cells, codes, WORTH[of])
    base, total = whole.worth(np.array([np.zeros(n_columns), np.ones(n_columns)], dtype=np.bool_))
    observed = ~np.isnan(cells)
    is_short = observed.sum(axis=1) <= MOST_EXACT_COLUMNS
    for rows, columns in _short_games(observed, is_short):
        game = whole.of_rows(rows)
        values[np.ix_(rows, columns)] = _all_subsets(game, columns, base[rows], total[rows])
    rows = np.flatnonzero(~is_short)
    if len(rows):
        game = whole.of_rows(rows)
        n_circles = max(FEWEST_CIRCLES, max_permutations // (2 * n_columns if n_columns <= MOST_ON_CIRCLES else 2))
        values[rows], errors[rows] = _circles(game, base[rows], total[rows], generator, tolerance, n_circles)
    # A missing cell adds nothing in any order; what is left of it is rounding.
    return ShapleyValues(np.where(observed, values, 0.0), base, total, np.where(observed, errors, 0.0))


def _short_games(observed: BoolArray, is_short: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """Rows with few observed cells that are evaluated together, and the columns that they have.

    A player who adds nothing changes no other's value, so that rows with different gaps can play one game.
    """
    rows = np.flatnonzero(is_short)
    columns = np.flatnonzero(observed[rows].any(axis=0))
    if len(columns) <= MOST_EXACT_COLUMNS:
        return [(rows, columns)] if len(rows) and len(columns) else []
    patterns, number = distinct_rows(observed[rows])
    return [(rows[number == at], np.flatnonzero(each)) for at, each in enumerate(patterns) if each.any()]


@dataclass(frozen=True, eq=False)
class _Game:
    """Rows whose columns play for the log odds, or the probability, of a class."""

    posteriors: SubsetPosteriors
    cells: FloatArray
    codes: IntArray
    value: Callable[[FloatArray, IntArray], FloatArray]

    def worth(self, subsets: BoolArray) -> FloatArray:
        """What each subset of the columns is worth, shape (n_subsets, n_rows)."""
        log_posterior = self.posteriors(self.cells, subsets)
        shape = log_posterior.shape
        return self.value(log_posterior.reshape(-1, shape[2]), np.tile(self.codes, len(subsets))).reshape(shape[:2])

    def of_rows(self, rows: IntArray | slice) -> _Game:
        return _Game(self.posteriors, self.cells[rows], self.codes[rows], self.value)


def _all_subsets(game: _Game, columns: IntArray, base: FloatArray, total: FloatArray) -> FloatArray:
    """Exact Shapley values of some columns, shape (n_rows, n_players)."""
    n_rows, n = len(game.cells), len(columns)
    players = subsets_in_chains(n)
    subsets = np.zeros((2**n, game.cells.shape[1]), dtype=np.bool_)
    subsets[:, columns] = players
    is_between = players.any(axis=1) & ~players.all(axis=1)
    weights = _subset_weights(players)
    values = np.empty((n_rows, n))
    at_once = max(1, EVALUATED_AT_ONCE // 2**n)
    for start in range(0, n_rows, at_once):
        rows = slice(start, start + at_once)
        worth = np.empty((2**n, len(base[rows])))
        if n > 1:
            worth[is_between] = game.of_rows(rows).worth(subsets[is_between])
        worth[~players.any(axis=1)], worth[players.all(axis=1)] = base[rows], total[rows]
        values[rows] = worth.T @ weights
    return values


def subsets_in_chains(n: int) -> BoolArray:
    """All subsets of n players, shape (2 ** n, n), in as few chains of subsets within the next as there can be.

    From the chains of fewer players: each chain with its last set once more, joined by the new player; and all but its
    last set, joined by the new player (de Bruijn, Tengbergen and Kruyswijk 1951).
    """
    chains = [np.zeros((1, n), dtype=np.bool_)]
    for player in range(n):
        joined = [chain | (np.arange(n) == player) for chain in chains]
        chains = [np.concatenate([chain, more[-1:]]) for chain, more in zip(chains, joined, strict=True)]
        chains += [more[:-1] for more in joined if len(more) > 1]
    return np.concatenate(chains)


def _subset_weights(subsets: BoolArray) -> FloatArray:
    """Weight of the worth of each subset in the value of each player, shape (2 ** n, n)."""
    n = subsets.shape[1]
    by_size = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    size = subsets.sum(axis=1)[:, None]
    return np.asarray(np.where(subsets, by_size[np.maximum(size - 1, 0)], -by_size[np.minimum(size, n - 1)]))


def _circles(
    game: _Game, base: FloatArray, total: FloatArray, generator: np.random.Generator, tolerance: float, n_circles: int
) -> tuple[FloatArray, FloatArray]:
    """Shapley values from random circles of all columns, and their standard errors.

    A circle of n columns is read from each of its places in both directions: 2 n orders, among them the reverse of
    each, in which every column has every place equally often. All of them together only know n (n - 1) sets, the arcs
    of the circle. What columns add one after the other sums to the total in every order, so the estimates do too.
    Circles are independent draws, from whose spread follow the standard errors.
    """
    n_rows, n = game.cells.shape
    mean, squares = np.zeros((n_rows, n)), np.zeros((n_rows, n))
    error = np.full((n_rows, n), np.inf)
    active, n_done = np.arange(n_rows), 0
    while len(active) and n_done < n_circles:
        # The same circles for all rows, some at a time: whatever depends on subsets alone is computed once.
        n_more = min(CIRCLES_AT_ONCE if n_done else FEWEST_CIRCLES, n_circles - n_done)
        circles = [generator.permutation(n) for _ in range(n_more)]
        values_of = _values_of_circles if n <= MOST_ON_CIRCLES else _values_of_orders
        for found in values_of(game.of_rows(active), base[active], total[active], circles):
            n_done += 1
            change = found - mean[active]
            mean[active] += change / n_done
            squares[active] += change * (found - mean[active])
        error[active] = np.sqrt(squares[active] / (n_done * (n_done - 1)))
        active = active[error[active].max(axis=1) > tolerance]
    return mean, error


def _values_of_circles(
    game: _Game, base: FloatArray, total: FloatArray, circles: list[IntArray]
) -> Iterator[FloatArray]:
    """Mean of what each column adds in the orders of each circle, shapes (n_rows, n_columns)."""
    n = game.cells.shape[1]
    worth = game.worth(np.concatenate([_arcs(circle) for circle in circles]))
    for circle, of_arcs in zip(circles, np.split(worth, len(circles)), strict=True):
        yield _circle(of_arcs.reshape(n, n - 1, -1).swapaxes(0, 1), base, total, circle)


def _values_of_orders(game: _Game, base: FloatArray, total: FloatArray, orders: list[IntArray]) -> Iterator[FloatArray]:
    """Mean of what each column adds in each order and in its reverse, shapes (n_rows, n_columns)."""
    n, n_rows = game.cells.shape[1], len(game.cells)
    for order in orders:
        values = np.zeros((n_rows, n))
        for each in (order, order[::-1]):
            place = np.argsort(each)
            worth = np.vstack([base, game.worth(place < np.arange(1, n)[:, None]), total])
            values[:, each] += np.diff(worth, axis=0).T / 2
        yield values


def _arcs(circle: IntArray) -> BoolArray:
    """All arcs of a circle but the empty and the whole one, shape (n_columns * (n_columns - 1), n_columns).

    Arcs from one place, each within the next, follow each other.
    """
    n = len(circle)
    first, size = np.arange(n)[:, None, None], np.arange(1, n)[:, None]
    arcs = np.empty((n, n - 1, n), dtype=np.bool_)
    arcs[:, :, circle] = (np.arange(n) - first) % n < size
    return arcs.reshape(-1, n)


def _circle(of_arcs: FloatArray, base: FloatArray, total: FloatArray, circle: IntArray) -> FloatArray:
    """Mean of what each column adds in the orders of one circle, shape (n_rows, n_columns).

    Parameters
    ----------
    of_arcs : array of shape (n_columns - 1, n_columns, n_rows)
        Worth of the arcs of each size from each place.
    """
    n, n_rows = len(circle), len(base)
    worth = np.concatenate([np.tile(base, (1, n, 1)), of_arcs, np.tile(total, (1, n, 1))])
    # An arc of some size grows out of the arc without its first column, and out of the one without its last.
    added = np.zeros((n, n_rows))
    for n_known in range(n):
        larger, smaller = worth[n_known + 1], worth[n_known]
        added += larger - np.roll(smaller, -1, axis=0)
        added += np.roll(larger - smaller, n_known, axis=0)
    values = np.empty((n_rows, n))
    values[:, circle] = added.T / (2 * n)
    return values

"""What to measure next: how much the risk of a row is expected to fall when a missing cell becomes known.

The risk is the entropy H of the class, or the expected cost of the best decision. For a missing column d of a row with
observed cells o the drop is::

    H(p(class | o)) - sum or integral over v of  p(x_d = v | o) H(p(class | o, x_d = v))

with a sum over the states of categories and counts, and a quadrature for real columns. Its nodes lie between quantiles
of draws from ``p(x_d | o)``, its weights are exact densities there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import entr

from safespn.network.columns import Domain
from safespn.typing import FloatArray

Evaluate = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From cells, NaN where missing, to log densities, shape (n_rows,), and log posteriors, shape (n_rows, n_classes)."""

Risk = Callable[[FloatArray], FloatArray]
"""From log class posteriors, shape (n_rows, n_classes), to what is to fall, shape (n_rows,)."""

N_DRAWS = 128
N_INTERVALS = 16
NODES_PER_INTERVAL = 4
MOST_COUNTS = 128
"""Counts up to which each is summed; a wider range is looked at in steps."""
ROWS_PER_CALL = 65_536


def expected_drop(
    evaluate: Evaluate,
    draw: Callable[[FloatArray], FloatArray],
    cells: FloatArray,
    domains: tuple[Domain | None, ...],
    risk: Risk,
) -> FloatArray:
    """Expected drop of the risk from learning each missing cell, shape (n_rows, n_columns).

    A committee's averaged posteriors are not those of one density, so that the risk can be expected to rise a little
    from a cell that says nothing: such cells get 0, as do known ones.

    Parameters
    ----------
    evaluate : callable
    draw : callable
        Replaces missing cells by draws given the others.
    cells : array of shape (n_rows, n_columns)
    domains : tuple of Domain or None
        What each column may hold; None for columns that the model ignores.
    risk : callable
        :func:`entropy`, or that of :func:`expected_cost`.
    """
    missing = np.isnan(cells)
    missing[:, [domain is None for domain in domains]] = False
    drop = np.zeros(cells.shape)
    density, posterior = evaluate(cells)
    # Cells of zero density leave nothing to condition on.
    rows_with_gaps = np.flatnonzero(missing.any(axis=1) & np.isfinite(density))
    before = risk(posterior)
    rows_per_piece = max(1, ROWS_PER_CALL // (N_DRAWS * cells.shape[1]))
    for start in range(0, len(rows_with_gaps), rows_per_piece):
        rows = rows_with_gaps[start : start + rows_per_piece]
        draws = draw(np.repeat(cells[rows], N_DRAWS, axis=0)).reshape(len(rows), N_DRAWS, -1)
        for column in np.flatnonzero(missing[rows].any(axis=0)):
            domain = domains[column]
            assert domain is not None
            places = np.flatnonzero(missing[rows, column])
            values, widths = nodes_of(domain, draws[places, :, column])
            after = _expected_risk(evaluate, cells[rows[places]], int(column), values, widths, risk)
            drop[rows[places], column] = np.maximum(before[rows[places]] - after, 0.0)
    return drop


def nodes_of(domain: Domain, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values at which to look at a column, and what part of its range each stands for; both (n_rows, n_nodes).

    Parameters
    ----------
    draws : array of shape (n_rows, n_draws)
        Draws of the column given the other cells of each row.
    """
    if domain.kind == "codes":
        values = np.tile(np.arange(domain.n_states, dtype=np.float64), (len(draws), 1))
        return values, np.ones_like(values)
    lowest, highest = draws.min(axis=1), draws.max(axis=1)
    margin = (highest - lowest) / 2
    if domain.kind == "counts":
        first, last = np.floor(np.maximum(lowest - margin - 5, 0)), np.ceil(highest + margin + 5)
        step = np.maximum(np.ceil((last - first + 1) / MOST_COUNTS), 1)
        n_steps = int(((last - first) // step).max()) + 1
        values = first[:, None] + step[:, None] * np.arange(n_steps)
        return values, np.repeat(step[:, None], n_steps, axis=1)
    # Intervals of bounded mass where draws are dense, of bounded length where they are not.
    by_mass = np.quantile(draws, np.linspace(0, 1, N_INTERVALS), axis=1).T
    by_length = np.linspace(lowest - margin, highest + margin, N_INTERVALS, axis=1)
    return _gauss_legendre(np.sort(np.hstack([by_mass, by_length]), axis=1))


def _gauss_legendre(knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the composite Gauss-Legendre rule between knots, shape (n_rows, n_nodes)."""
    places, weights = np.polynomial.legendre.leggauss(NODES_PER_INTERVAL)
    middle, half = (knots[:, 1:] + knots[:, :-1]) / 2, np.diff(knots, axis=1) / 2
    values = middle[:, :, None] + half[:, :, None] * places
    widths = half[:, :, None] * weights
    return values.reshape(len(knots), -1), widths.reshape(len(knots), -1)


def _expected_risk(
    evaluate: Evaluate, cells: FloatArray, column: int, values: FloatArray, widths: FloatArray, risk: Risk
) -> FloatArray:
    """Mean risk after the column is known, shape (n_rows,)."""
    n_rows, n_nodes = values.shape
    filled = np.repeat(cells, n_nodes, axis=0)
    filled[:, column] = values.ravel()
    log_density, after = np.empty(len(filled)), np.empty(len(filled))
    for start in range(0, len(filled), ROWS_PER_CALL):
        piece = slice(start, start + ROWS_PER_CALL)
        log_density[piece], posterior = evaluate(filled[piece])
        after[piece] = risk(posterior)
    with np.errstate(divide="ignore"):
        log_share = log_density.reshape(n_rows, n_nodes) + np.log(widths)
    top = log_share.max(axis=1, keepdims=True)
    # Where the observed cells are impossible, or the column has one value only, all nodes count alike.
    share = np.where(np.isfinite(top), np.exp(log_share - np.where(np.isfinite(top), top, 0.0)), 1.0)
    return np.asarray((share * after.reshape(n_rows, n_nodes)).sum(axis=1) / share.sum(axis=1))


def entropy(log_posterior: FloatArray) -> FloatArray:
    """Entropy of the class in nats, shape (n_rows,)."""
    return np.asarray(entr(np.exp(log_posterior)).sum(axis=1))


def expected_cost(gains: FloatArray) -> Risk:
    """Return the risk of decisions: the expected cost of the best one, less that of always being right.

    Parameters
    ----------
    gains : array of shape (n_classes, n_classes)
        What predicting a class (column) is worth for each true class (row).
    """

    def risk(log_posterior: FloatArray) -> FloatArray:
        posterior = np.exp(log_posterior)
        return np.asarray(posterior @ gains.max(axis=1) - (posterior @ gains).max(axis=1))

    return risk

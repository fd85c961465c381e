"""Convex quadratic programmes with bounds on every variable, such as the duals of support vector machines."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from safespn.typing import FloatArray, IntArray

MAX_ITER = 100
TOL = 1e-11
"""Of the mean product of a distance to a bound and its multiplier, relative to the mean width of the bounds."""
RESIDUAL_TOL = 1e-8
ACCEPTED = 100.0
"""Multiple of both tolerances that passes without a warning: where rounding often ends the descent."""
SHORTER = 0.995
"""Share of the way to the boundary that a step may go."""

SHORT_STEP, CENTRING = 0.5, 0.3
"""A corrected step that must stop before the first share of its way gives way to one that only lowers complementarity,
to the second share."""


class BoxQuadratic(NamedTuple):
    """Minimise ``0.5 ||F' a||^2 - linear' a`` over ``lower <= a <= upper``, where ``F = features[rows]``.

    Parameters
    ----------
    features : array of shape (n_rows, n_features)
    rows : array of shape (n_variables,)
        Row of ``features`` that each variable multiplies; several variables may share one.
    linear, lower, upper : arrays of shape (n_variables,)
    balanced : bool
        Whether the variables must add up to zero, too.
    """

    features: FloatArray
    rows: IntArray
    linear: FloatArray
    lower: FloatArray
    upper: FloatArray
    balanced: bool

    def spread(self, of_rows: FloatArray) -> FloatArray:
        """One number per variable from one per row."""
        return of_rows[self.rows]

    def collect(self, of_variables: FloatArray) -> FloatArray:
        """Add up what the variables of each row hold, shape (n_rows,)."""
        return np.bincount(self.rows, of_variables, len(self.features)).astype(np.float64)


class _State(NamedTuple):
    """A point within the bounds, or a step from one.

    The distances to the bounds are kept beside the variables: near a bound, a difference would be rounded away.
    """

    variables: FloatArray
    to_lower: FloatArray
    to_upper: FloatArray
    of_lower: FloatArray
    """Multipliers of the lower bounds."""
    of_upper: FloatArray
    of_balance: float

    def moved(self, step: _State, length: float) -> _State:
        """Go a part of a step."""
        return _State(
            self.variables + length * step.variables,
            self.to_lower + length * step.to_lower,
            self.to_upper + length * step.to_upper,
            self.of_lower + length * step.of_lower,
            self.of_upper + length * step.of_upper,
            self.of_balance + length * step.of_balance,
        )

    def longest(self, step: _State) -> float:
        """Largest part of a step, at most one, at which no distance or multiplier is negative."""
        values, changes = np.concatenate(self[1:5]), np.concatenate(step[1:5])
        falling = changes < 0
        return float(np.min(-values[falling] / changes[falling], initial=1.0))

    def complementarity(self) -> float:
        """Mean product of a distance and its multiplier, zero at the solution."""
        products = self.of_lower @ self.to_lower + self.of_upper @ self.to_upper
        return float(products) / (2 * len(self.variables))


def solve_box_quadratic(problem: BoxQuadratic) -> tuple[FloatArray, float]:
    """Solve by a primal-dual interior point method (Mehrotra's predictor and corrector).

    Returns
    -------
    of_rows : array of shape (n_rows,)
        Sum of the variables of each row.
    multiplier : float
        Of the balance, zero without one. ``features @ features.T @ of_rows + multiplier`` is what the linear part is
        compared with: the decision values of a support vector machine.
    """
    half, ones = (problem.upper - problem.lower) / 2, np.ones(len(problem.rows))
    state = _State(problem.lower + half, half, half, ones, ones, 0.0)
    # Multipliers as large as what they have to balance: smaller ones make the first steps very short.
    multipliers = ones * max(1.0, float(np.abs(_Newton(problem, state).residual).max()))
    state = best = state._replace(of_lower=multipliers, of_upper=multipliers)
    least = np.inf
    for _ in range(MAX_ITER):
        try:
            newton = _Newton(problem, state)
        except np.linalg.LinAlgError:
            break  # Rounding allows no further step.
        left = max(state.complementarity() / half.mean() / TOL, newton.error / RESIDUAL_TOL)
        if left < least:
            best, least = state, left
        if left < 1:
            break
        state = state.moved(*newton.step())
    if least > ACCEPTED:
        warnings.warn(
            f"a quadratic programme is solved to {least * RESIDUAL_TOL:.1g} only; standardise the columns, or lower C",
            ConvergenceWarning,
            stacklevel=2,
        )
    return problem.collect(best.variables), best.of_balance


class _Newton:
    """The optimality conditions at a point, made linear."""

    def __init__(self, problem: BoxQuadratic, state: _State) -> None:
        self.problem, self.state = problem, state
        features = problem.features
        fitted = features @ (features.T @ problem.collect(state.variables))
        self.residual = problem.spread(fitted) - problem.linear + state.of_balance - state.of_lower + state.of_upper
        self.excess = float(state.variables.sum()) if problem.balanced else 0.0
        self.error = max(float(np.abs(self.residual).max()) / (1 + float(np.abs(fitted).max())), abs(self.excess))
        self.inverse = 1 / (state.of_lower / state.to_lower + state.of_upper / state.to_upper)
        half = features * np.sqrt(problem.collect(self.inverse))[:, None]
        self.factor = cho_factor(np.eye(features.shape[1]) + half.T @ half)
        self.per_balance = self._solve(np.ones(len(problem.rows))) if problem.balanced else None

    def _solve(self, right: FloatArray) -> FloatArray:
        """Solve ``(F F' + diag(1 / inverse)) x = right`` by a system as small as the number of features."""
        features, scaled = self.problem.features, self.inverse * right
        inner = cho_solve(self.factor, features.T @ self.problem.collect(scaled))
        return scaled - self.inverse * self.problem.spread(features @ inner)

    def _direction(self, lower: FloatArray, upper: FloatArray) -> _State:
        """Step towards given products of the distances and their multipliers."""
        state = self.state
        lower, upper = lower / state.to_lower - state.of_lower, upper / state.to_upper - state.of_upper
        change, of_balance = self._solve(lower - upper - self.residual), 0.0
        if self.per_balance is not None:
            of_balance = float((change.sum() + self.excess) / self.per_balance.sum())
            change = change - of_balance * self.per_balance
        of_lower = lower - state.of_lower * change / state.to_lower
        of_upper = upper + state.of_upper * change / state.to_upper
        return _State(change, change, -change, of_lower, of_upper, of_balance)

    def step(self) -> tuple[_State, float]:
        """Direction and length of the next step."""
        state, nothing = self.state, np.zeros(len(self.state.variables))
        guess = self._direction(nothing, nothing)
        now, reached = state.complementarity(), state.moved(guess, state.longest(guess)).complementarity()
        target = (reached / now) ** 3 * now
        step = self._direction(target - guess.to_lower * guess.of_lower, target - guess.to_upper * guess.of_upper)
        if state.longest(step) < SHORT_STEP:
            # The correction can send the iterates in circles: here it goes too far, so only centre them.
            centred = self._direction(nothing + CENTRING * now, nothing + CENTRING * now)
            step = max(step, centred, key=state.longest)
        return step, SHORTER * state.longest(step)

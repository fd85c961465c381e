"""The base density of a tree, independent columns, truncated to intervals ``lower < x <= upper`` of single columns."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from safespn.network.columns import REAL, Domain
from safespn.network.leaves.gaussian import LOG_ROOT_TWO_PI
from safespn.typing import BoolArray, FloatArray, IntArray

NARROW = 1e-5
"""Intervals over which the log density changes by less than this get their mass by the midpoint rule."""
SMALLEST_SHARE = 2.0**-54
"""Uniform draws stay above zero, so that no draw from a normal distribution is infinite."""


class BaseDensity:
    """Normal columns, and columns of codes whose states are equally probable.

    Methods take one column (its position), one lower and one upper bound for each interval, as arrays.

    Parameters
    ----------
    rows : array of shape (n_columns, 2)
        Mean and variance, or number of states and 0.
    """

    def __init__(self, rows: FloatArray) -> None:
        _check(rows)
        self.key = rows.tobytes()
        self.is_code: BoolArray = rows[:, 1] == 0
        self.n_states = np.where(self.is_code, rows[:, 0], 1.0)
        self.mean = np.where(self.is_code, 0.0, rows[:, 0])
        self.deviation = np.where(self.is_code, 1.0, np.sqrt(rows[:, 1]))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What each column may hold."""
        pairs = zip(self.is_code.tolist(), self.n_states.tolist(), strict=True)
        return tuple(Domain("codes", int(n_states)) if is_code else REAL for is_code, n_states in pairs)

    def log_density_of_rows(self, cells: FloatArray) -> FloatArray:
        """Log density of the observed cells of each row, shape (n_rows,); ``cells`` has shape (n_rows, n_columns)."""
        values = self.log_density(np.arange(len(self.mean)), cells)
        return np.asarray(np.where(np.isnan(cells), 0.0, values).sum(axis=1))

    def log_density(self, position: IntArray, x: FloatArray) -> FloatArray:
        """Log density of columns at ``x``."""
        with np.errstate(over="ignore"):
            z = (x - self.mean[position]) / self.deviation[position]
            normal = -0.5 * z * z - np.log(self.deviation[position]) - LOG_ROOT_TWO_PI
        return np.where(self.is_code[position], -np.log(self.n_states[position]), normal)

    def log_mass(self, position: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Log probability of intervals."""
        first, last = self._states(position, lower, upper)
        low, high, _ = self._in_lower_tail(position, lower, upper)
        log_low, log_high = log_ndtr(low), log_ndtr(high)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            of_codes = np.log(np.maximum(last - first + 1, 0.0)) - np.log(self.n_states[position])
            difference = log_high + np.log(-np.expm1(log_low - log_high))
            width, middle = (upper - lower) / self.deviation[position], (low + high) / 2
            midpoint = np.log(width) - 0.5 * middle * middle - LOG_ROOT_TWO_PI
            is_narrow = width * np.maximum(np.abs(middle), 1.0) < NARROW
        normal = np.where(is_narrow, midpoint, np.where(np.isneginf(log_high), -np.inf, difference))
        return np.where(self.is_code[position], of_codes, normal)

    def mode(self, position: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Most probable values in intervals."""
        normal = np.clip(self.mean[position], np.nextafter(lower, np.inf), upper)
        return np.where(self.is_code[position], self._states(position, lower, upper)[0], normal)

    def draw(
        self, position: IntArray, lower: FloatArray, upper: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        """One draw from each interval."""
        share = np.maximum(generator.random(len(lower)), SMALLEST_SHARE)
        first, last = self._states(position, lower, upper)
        low, high, flipped = self._in_lower_tail(position, lower, upper)
        log_low, log_high = log_ndtr(low), log_ndtr(high)
        z = ndtri_exp(log_high + np.log(share + (1 - share) * np.exp(log_low - log_high)))
        x = self.mean[position] + self.deviation[position] * np.where(flipped, -z, z)
        normal = np.clip(x, np.nextafter(lower, np.inf), upper)
        return np.where(self.is_code[position], first + np.floor(share * (last - first + 1)), normal)

    def _in_lower_tail(
        self, position: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Standardise bounds, and mirror intervals above the mean: the normal cdf is accurate in its lower tail."""
        mean, deviation = self.mean[position], self.deviation[position]
        with np.errstate(over="ignore"):
            low, high = (lower - mean) / deviation, (upper - mean) / deviation
        flipped = low > 0
        return np.where(flipped, -high, low), np.where(flipped, -low, high), flipped

    def _states(self, position: IntArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and last state in each interval; the last one comes before the first where there is none."""
        return np.maximum(np.floor(lower) + 1, 0.0), np.minimum(np.floor(upper), self.n_states[position] - 1.0)


def _check(rows: FloatArray) -> None:
    for position, (first, second) in enumerate(rows.tolist()):
        is_normal = math.isfinite(first) and math.isfinite(second) and second > 0
        if not (is_normal or (second == 0 and math.isfinite(first) and first >= 1 and first == int(first))):
            raise ValueError(
                f"base {position} is ({first:g}, {second:g}); expected a mean and a positive variance, or a positive "
                "number of states and 0"
            )

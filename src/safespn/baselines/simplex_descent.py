"""Convex functions of soft labels, minimised over the product of simplices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from safespn.foundation.simplex import project_simplex
from safespn.typing import FloatArray

MEMORY = 10
"""Values among which the largest may not be exceeded: steps that are long enough to be fast do not always descend."""


class Descent(NamedTuple):
    """Where a descent ended: how far above the minimum its value can be is known exactly, as ``gap``."""

    soft_labels: FloatArray
    value: float
    gap: float
    n_iter: int
    converged: bool


def minimise_over_simplices(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
) -> Descent:
    """Minimise a smooth convex function by spectral projected gradients (Birgin, Martinez and Raydan 2000).

    Parameters
    ----------
    value_and_gradient : callable
        Of soft labels of shape (n_rows, n_classes).
    start : array of shape (n_rows, n_classes)
        Rows on the simplex; all iterates are.
    tol : float
        Stop when the value is within this share of itself (of one, if smaller) of the minimum.
    """
    point = start
    value, gradient = value_and_gradient(point)
    values = [value]
    step = 1 / max(float(np.abs(gradient).max(initial=0.0)), 1e-10)
    for iteration in range(1, max_iter + 1):
        # A convex function lies above its tangent, whose minimum over the simplices is at corners.
        gap = float((gradient * point).sum() - gradient.min(axis=1).sum())
        if gap <= tol * max(1.0, abs(value)):
            return Descent(point, value, gap, iteration, True)
        direction = project_simplex(point - step * gradient) - point
        slope = float((gradient * direction).sum())
        share = 1.0
        while True:
            candidate = point + share * direction
            value, new_gradient = value_and_gradient(candidate)
            if value <= max(values[-MEMORY:]) + 1e-4 * share * slope:
                break
            share /= 2
            if share < 1e-12:
                return Descent(point, values[-1], gap, iteration, False)
        values.append(value)
        moved = candidate - point
        curvature = float((moved * (new_gradient - gradient)).sum())
        step = float(np.clip((moved**2).sum() / curvature, 1e-10, 1e10)) if curvature > 0 else 1e10
        point, gradient = candidate, new_gradient
    return Descent(point, value, gap, max_iter, False)

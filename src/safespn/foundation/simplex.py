"""Soft labels: a point on the simplex of classes for every unlabelled row."""

from __future__ import annotations

import numpy as np

from safespn.typing import ArrayLike, FloatArray


def project_simplex(Q: ArrayLike) -> FloatArray:
    """Project every row on the probability simplex, in the Euclidean sense (Duchi et al. 2008).

    Parameters
    ----------
    Q : array-like of shape (n_rows, n_classes)
        Finite numbers.

    Returns
    -------
    array of shape (n_rows, n_classes)
        Rows that are non-negative and add up to one.

    Examples
    --------
    >>> project_simplex([[0.2, 0.3], [2.0, 0.0]])
    array([[0.45, 0.55],
           [1.  , 0.  ]])
    """
    points = np.asarray(Q, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"expected rows of at least one number each, got an array of shape {points.shape}")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise ValueError(
            f"row {row}, column {column}: {points[row, column]} cannot be projected; expected finite numbers"
        )
    # Subtracting a row's largest entry changes nothing but keeps the sums below exact for large numbers.
    points = points - points.max(axis=1, keepdims=True)
    falling = -np.sort(-points, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    counts = np.arange(1, points.shape[1] + 1)
    n_positive = (falling * counts > excess).sum(axis=1)
    threshold = excess[np.arange(len(points)), n_positive - 1] / n_positive
    result = np.maximum(points - threshold[:, None], 0.0)
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def dirichlet(n_rows: int, n_classes: int, generator: np.random.Generator) -> FloatArray:
    """Random soft labels from a Dirichlet distribution with concentration 1/K for each of K classes."""
    draws = generator.dirichlet(np.full(n_classes, 1 / n_classes), n_rows).reshape(n_rows, n_classes)
    return project_simplex(draws) if n_rows else draws


def log_of(soft_labels: FloatArray) -> FloatArray:
    """Log of soft labels, minus infinity where one is zero."""
    with np.errstate(divide="ignore"):
        return np.log(soft_labels)

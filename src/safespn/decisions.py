"""From class probabilities to decisions that suit another measure than accuracy.

A rule is a matrix of gains: predicting class j where the truth is class k is worth ``gains[k, j]``, and the class with
the largest expected gain is predicted. Probabilities stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from safespn.typing import ArrayLike, FloatArray, IntArray

RULES = ("probable", "f1", "balanced")
"""Rules that have a name."""
MOST_STEPS = 50


def decide(probabilities: ArrayLike, gains: ArrayLike) -> IntArray:
    """Number of the class with the largest expected gain for each row.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
    gains : array-like of shape (n_classes, n_classes)
        What predicting a class (column) is worth for each true class (row), as of :func:`gains_of`.

    Examples
    --------
    >>> from safespn.decisions import decide, gains_of
    >>> probabilities = [[0.9, 0.1], [0.7, 0.3]]
    >>> costs = [[0, 1], [5, 0]]  # missing the second class costs five times as much
    >>> decide(probabilities, gains_of(costs, probabilities))
    array([0, 1])
    """
    return np.asarray((np.asarray(probabilities, dtype=np.float64) @ np.asarray(gains)).argmax(axis=1))


def gains_of(decision: str | ArrayLike, probabilities: ArrayLike) -> FloatArray:
    """Matrix of gains of a rule, shape (n_classes, n_classes): true classes in rows, predicted ones in columns.

    Parameters
    ----------
    decision : {"probable", "f1", "balanced"} or array-like of shape (n_classes, n_classes)
        * "probable": the most probable class, best for accuracy;
        * "balanced": best for balanced accuracy, the mean recall of the classes: a class counts by its probability
          relative to its share of the rows;
        * "f1": best for the F1 score of the second of two classes, or for the mean F1 of more classes;
        * a matrix: what it costs to predict a class (column) for each true class (row).
    probabilities : array-like of shape (n_rows, n_classes)
        Class probabilities of rows like those to decide on; no labels are needed.
    """
    expected = np.asarray(probabilities, dtype=np.float64)
    n_classes = expected.shape[1]
    if not isinstance(decision, str):
        return -_checked_costs(decision, n_classes)
    if decision == "probable":
        return np.eye(n_classes)
    if decision == "balanced":
        return np.diag(1 / np.maximum(expected.mean(axis=0), 1e-12))
    if decision == "f1":
        return _f1_gains(expected)
    raise ValueError(f"decision: expected one of {', '.join(map(repr, RULES))} or a matrix of costs, got {decision!r}")


def f1_threshold(probabilities: ArrayLike) -> float:
    """Threshold on the probability of the positive class that maximises the expected F1 score.

    The best decision for F1 calls positive the rows whose probability is above half of the best F1 that can be reached
    (Lipton, Elkan and Naryanaswamy 2014). No labels are needed: the expected F1 of calling the k most probable rows
    positive is ``2 * sum of their probabilities / (k + sum of all probabilities)``.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows,)
        Probability of the positive class for rows like those to decide on, for example the unlabelled ones.

    Returns
    -------
    float
        Between 0 and 0.5.

    Examples
    --------
    >>> from safespn.decisions import f1_threshold
    >>> f1_threshold([0.4, 0.3, 0.1, 0.1])
    0.24137931034482757
    """
    ordered = np.sort(np.asarray(probabilities, dtype=np.float64))[::-1]
    if ordered.ndim != 1 or len(ordered) == 0:
        raise ValueError(f"probabilities must be a list of at least one number, got shape {ordered.shape}")
    if not (np.isfinite(ordered).all() and ordered[-1] >= 0 and ordered[0] <= 1):
        raise ValueError("probabilities must lie between 0 and 1")
    if ordered[0] == 0:
        return 0.0
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum())
    return float(expected.max() / 2)


def _f1_gains(probabilities: FloatArray) -> FloatArray:
    """Gains whose best decision maximises the expected F1, or its mean over more than two classes.

    The mean F1 of classes is not linear in the decisions, but its gradient at any decision is: steps along it that
    raise the expected score are made until none does.
    """
    n_classes = probabilities.shape[1]
    if n_classes == 2:
        threshold = f1_threshold(probabilities[:, 1].clip(0, 1))
        return np.array([[0.0, -threshold], [0.0, 1 - threshold]])
    best_score, gains = -np.inf, np.diag(1 / np.maximum(probabilities.mean(axis=0), 1e-12))
    best = gains
    for _ in range(MOST_STEPS):
        scores, totals = _expected_f1(probabilities, decide(probabilities, gains))
        if scores.mean() <= best_score + 1e-12:
            break
        best_score, best = float(scores.mean()), gains
        gains = (np.eye(n_classes) - scores / 2) * (totals.mean() / totals)
    return best


def _expected_f1(probabilities: FloatArray, decided: IntArray) -> tuple[FloatArray, FloatArray]:
    """Expected F1 of each class, and the rows that are called or expected to be of it; both of shape (n_classes,)."""
    called = np.eye(probabilities.shape[1])[decided]
    totals = np.maximum(called.sum(axis=0) + probabilities.sum(axis=0), 1e-12)
    return 2 * (called * probabilities).sum(axis=0) / totals, totals


def _checked_costs(costs: Any, n_classes: int) -> FloatArray:
    try:
        matrix = np.asarray(costs, dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"decision: expected costs for each of {n_classes} true classes, with as many numbers in each row, got "
            f"{costs!r}"
        ) from error
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"decision: expected costs for each of {n_classes} true classes (rows) and {n_classes} predicted ones "
            f"(columns), got shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"decision: the cost in row {row}, column {column} is {matrix[row, column]}; expected a number"
        )
    return matrix

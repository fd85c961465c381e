"""Transductive support vector machine, learned by the concave-convex procedure (Collobert et al. 2006)."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils._param_validation import Interval, StrOptions

from safespn.baselines.base import SemiSupervisedClassifier, linear_decision
from safespn.baselines.box_quadratic import BoxQuadratic, solve_box_quadratic
from safespn.typing import FloatArray, IntArray

MAX_ITER = 50
SMALLEST_EIGENVALUE = 1e-12
"""Of a kernel matrix, relative to its largest; directions below it are left out."""


class TSVM(SemiSupervisedClassifier):
    """Transductive support vector machine with ramp losses on the unlabelled rows.

    Minimises ``0.5 ||w||^2 + C sum H(y_n f(x_n)) + C_unlabeled sum R(f(u_m)) + R(-f(u_m))`` with the hinge
    ``H(z) = max(0, 1 - z)`` and the ramp ``R(z) = min(1 - s, H(z))``, starting from the supervised machine. More than
    two classes: one machine for each class against the rest.

    Parameters
    ----------
    C, C_unlabeled : float
        Costs of errors on a labelled and on an unlabelled row.
    s : float in (-1, 0]
        Where the ramp ends.
    kernel : {"linear", "rbf"}
    balance : bool
        Demand that the mean of ``f`` over the unlabelled rows equal the mean of the labels, coded as -1 and 1.
    gamma : "scale" or float
        Of the kernel ``exp(-gamma * distance^2)``; "scale" is one over the number of columns times the variance of X.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) for two classes, (n_classes, n_features) for more
        Linear kernel only.
    dual_coef_ : array of shape (1 or n_classes, n_rows)
        Coefficients of the rows ``rows_`` in the expansion of ``f``. RBF kernel only.
    rows_ : array of shape (n_rows, n_features)
        Training rows, labelled ones first. RBF kernel only.
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int
        Convex problems solved after the supervised one; the largest number of any machine.

    Examples
    --------
    >>> import numpy as np
    >>> from safespn.baselines import TSVM
    >>> X = np.array([[0.0], [1.0], [4.0], [6.0], [0.5], [5.0]])
    >>> TSVM().fit(X, [0, 0, 1, 1, -1, -1]).predict([[0.0], [7.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "C_unlabeled": [Interval(Real, 0, None, closed="neither")],
        "s": [Interval(Real, -1, 0, closed="right")],
        "kernel": [StrOptions({"linear", "rbf"})],
        "balance": ["boolean"],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "unlabeled": "no_validation",
    }

    def __init__(
        self,
        C: float = 1.0,
        C_unlabeled: float = 0.1,
        s: float = -0.3,
        kernel: str = "linear",
        balance: bool = True,
        *,
        gamma: str | float = "scale",
        unlabeled: Any = -1,
    ) -> None:
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.s = s
        self.kernel = kernel
        self.balance = balance
        self.gamma = gamma
        self.unlabeled = unlabeled

    def _fit(self, labelled: FloatArray, codes: IntArray, unlabelled: FloatArray) -> None:
        table = np.concatenate([labelled, unlabelled])
        if self.kernel == "linear":
            features, to_rows = table, None
        else:
            variance = float(table.var())
            scale = 1 / (table.shape[1] * variance) if variance > 0 else 1.0
            self.gamma_ = scale if self.gamma == "scale" else float(self.gamma)
            features, to_rows = _kernel_features(rbf_kernel(table, gamma=self.gamma_))
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        machines = [self._machine(features, np.where(codes == code, 1.0, -1.0)) for code in positive]
        weights = np.stack([machine.weights for machine in machines])
        if to_rows is None:
            self.coef_ = weights
        else:
            self.rows_, self.dual_coef_ = table, weights @ to_rows.T
        self.intercept_ = np.array([machine.intercept for machine in machines])
        self.n_iter_ = max(machine.n_iter for machine in machines)

    def _machine(self, features: FloatArray, signs: FloatArray) -> _Machine:
        costs = np.repeat([self.C, self.C_unlabeled], [len(signs), 2 * (len(features) - len(signs))])
        return _fit_machine(features, signs, costs, self.s, self.balance)

    def _decision(self, table: FloatArray) -> FloatArray:
        if self.kernel == "linear":
            return linear_decision(table, self.coef_, self.intercept_)
        return linear_decision(rbf_kernel(table, self.rows_, gamma=self.gamma_), self.dual_coef_, self.intercept_)


class _Machine(NamedTuple):
    weights: FloatArray
    intercept: float
    n_iter: int = 1


def _kernel_features(kernel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Features (n_rows, n_kept) with the given inner products, and the matrix from weights to row coefficients."""
    eigenvalues, axes = np.linalg.eigh(kernel)
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    axes, roots = axes[:, kept], np.sqrt(eigenvalues[kept])
    return axes * roots, axes / roots


def _fit_machine(features: FloatArray, signs: FloatArray, costs: FloatArray, s: float, balance: bool) -> _Machine:
    """Learn one machine.

    Parameters
    ----------
    features : array of shape (n_rows, n_features)
        Labelled rows first.
    signs : array of shape (n_labelled,)
        -1 or 1.
    costs : array of shape (n_labelled + 2 * n_unlabelled,)
        Of the labelled rows, then of the unlabelled rows as positive and as negative ones.
    """
    n, n_unlabelled = len(signs), len(features) - len(signs)
    machine = _solve(features[:n], np.arange(n), signs, costs[:n], np.zeros(n), None)
    if n_unlabelled == 0:
        return machine
    free = np.arange(n, len(features))
    rows = np.concatenate([np.arange(n), free, free])
    signs = np.concatenate([signs, np.repeat([1.0, -1.0], n_unlabelled)])
    centre = (features[n:].mean(axis=0), float(signs[:n].mean())) if balance else None
    slopes = np.full(len(rows), np.nan)
    for iteration in range(MAX_ITER + 1):
        margins = signs * (features @ machine.weights + machine.intercept)[rows]
        # The concave part of the ramp is replaced by its tangent, whose slope is not zero beyond the ramp's end.
        new_slopes = np.where((margins < s) & (np.arange(len(rows)) >= n), costs, 0.0)
        if np.array_equal(new_slopes, slopes):
            return machine._replace(n_iter=iteration)
        slopes = new_slopes
        if iteration < MAX_ITER:
            machine = _solve(features, rows, signs, costs, slopes, centre)
    warnings.warn(
        f"the concave-convex procedure still moves after {MAX_ITER} iterations", ConvergenceWarning, stacklevel=5
    )
    return machine._replace(n_iter=MAX_ITER)


def _solve(
    features: FloatArray,
    rows: IntArray,
    signs: FloatArray,
    costs: FloatArray,
    slopes: FloatArray,
    centre: tuple[FloatArray, float] | None,
) -> _Machine:
    """Minimise ``0.5 ||w||^2 + sum costs * H(signs * f) + slopes * signs * f`` over linear functions f of the features.

    With a ``centre`` (point, value), f must have that value at that point. Written as
    ``f(x) = w (x - point) + value`` it needs no intercept, and the dual has bounds only.
    """
    lower, upper = np.where(signs > 0, -slopes, slopes - costs), np.where(signs > 0, costs - slopes, slopes)
    point, value = (np.zeros(features.shape[1]), 0.0) if centre is None else centre
    moved = features - point
    coefficients, multiplier = solve_box_quadratic(
        BoxQuadratic(moved, rows, signs - value, lower, upper, balanced=centre is None)
    )
    weights = moved.T @ coefficients
    return _Machine(weights, value + multiplier - float(point @ weights))

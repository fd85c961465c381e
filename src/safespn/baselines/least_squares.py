"""Least squares with soft labels that may not make it worse: ICLS and its projected form (Krijthe and Loog 2015, 2017).

Write X for the labelled rows with a column of ones, U for the unlabelled ones, A for both, and y in {0, 1} for one
class. For soft labels q of the unlabelled rows the least squares solution is linear in them::

    w(q) = C (X'y + U'q),    C = pinv(A'A + n_rows * l2 * diag(0, 1, .., 1))

Both methods choose among these solutions the one nearest to the supervised solution: ICLS by the squared loss of the
labelled rows, the projected form by the metric ``inv(C)``, that of the squared loss of all rows.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from safespn.baselines.base import SemiSupervisedClassifier, linear_decision, one_hot
from safespn.baselines.simplex_descent import minimise_over_simplices
from safespn.typing import FloatArray, IntArray

MAX_ITER = 5000
TOL = 1e-8


class _LeastSquares(SemiSupervisedClassifier):
    """Least squares over soft labels; a subclass says in which sense they are fitted to the labelled rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left")],
        "multiclass": [StrOptions({"ovr", "joint"})],
        "unlabeled": "no_validation",
    }

    def __init__(self, l2: float = 0.0, *, multiclass: str = "ovr", unlabeled: Any = -1) -> None:
        self.l2 = l2
        self.multiclass = multiclass
        self.unlabeled = unlabeled

    def _fit(self, labelled: FloatArray, codes: IntArray, unlabelled: FloatArray) -> None:
        n_classes = len(self.classes_)
        targets = one_hot(codes, n_classes)
        if n_classes == 2:
            # One class's targets and soft labels are one minus the other's, and so is its solution.
            targets = targets[:, 1:]
        X, U = _with_ones(labelled), _with_ones(unlabelled)
        if len(U) == 0:
            weights, self.n_iter_ = _solution(X, targets, self.l2), 1
        else:
            A = np.concatenate([X, U])
            inverse = np.linalg.pinv(A.T @ A + _ridge(A, self.l2), hermitian=True)
            at_zero, per_label = inverse @ (X.T @ targets), inverse @ U.T
            matrix, wanted = self._distance(X, targets, A, at_zero, per_label)
            joint = self.multiclass == "joint" and n_classes > 2
            soft_labels, self.n_iter_ = (_fit_jointly if joint else _fit_each)(matrix, wanted)
            weights = at_zero + per_label @ soft_labels
        self.coef_, self.intercept_ = weights[1:].T, weights[0]

    @abstractmethod
    def _distance(
        self, X: FloatArray, targets: FloatArray, A: FloatArray, at_zero: FloatArray, per_label: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Matrix M (n, n_unlabelled) and E (n, n_targets) such that soft labels q are to minimise ``||M q - E||^2``."""

    def _decision(self, table: FloatArray) -> FloatArray:
        fitted = linear_decision(table, self.coef_, self.intercept_)
        return fitted - 0.5 if fitted.ndim == 1 else fitted


class ICLS(_LeastSquares):
    """Implicitly constrained least squares (Krijthe and Loog 2015).

    Of the least squares solutions that soft labels of the unlabelled rows can produce, the one with the least squared
    loss on the labelled rows.

    Parameters
    ----------
    l2 : float
        Penalty on the coefficients but the intercept, times the number of rows.
    multiclass : {"ovr", "joint"}
        With more than two classes, fit each class's soft labels in [0, 1] by themselves, as in the paper, or those of
        all classes together on the simplex. For two classes both are the same.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) for two classes, (n_classes, n_features) for more
        For targets 1 in the class (the second of two) and 0 elsewhere.
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from safespn.baselines import ICLS
    >>> X = np.array([[0.0], [1.0], [4.0], [6.0], [0.5], [5.0]])
    >>> ICLS().fit(X, [0, 0, 1, 1, -1, -1]).predict([[0.0], [7.0]])
    array([0, 1])
    """

    def _distance(
        self, X: FloatArray, targets: FloatArray, A: FloatArray, at_zero: FloatArray, per_label: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return X @ per_label, targets - X @ at_zero


class ProjectedLS(_LeastSquares):
    """Projected least squares (Krijthe and Loog 2017): the supervised solution, projected on what soft labels allow.

    With ``l2=0`` its squared loss on all training rows is never above the supervised one's, whatever their labels are.

    Parameters
    ----------
    l2 : float
        Penalty on the coefficients but the intercept, times the number of rows.
    multiclass : {"ovr", "joint"}
        With more than two classes, fit each class's soft labels in [0, 1] by themselves, as in the paper, or those of
        all classes together on the simplex. For two classes both are the same.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) for two classes, (n_classes, n_features) for more
        For targets 1 in the class (the second of two) and 0 elsewhere.
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from safespn.baselines import ProjectedLS
    >>> X = np.array([[0.0], [1.0], [4.0], [6.0], [0.5], [5.0]])
    >>> ProjectedLS().fit(X, [0, 0, 1, 1, -1, -1]).predict([[0.0], [7.0]])
    array([0, 1])
    """

    def _distance(
        self, X: FloatArray, targets: FloatArray, A: FloatArray, at_zero: FloatArray, per_label: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        eigenvalues, axes = np.linalg.eigh(A.T @ A + _ridge(A, self.l2))
        root = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * axes.T
        return root @ per_label, root @ (_solution(X, targets, self.l2) - at_zero)


def _with_ones(table: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(table)), table])


def _ridge(design: FloatArray, l2: float) -> FloatArray:
    """Penalty matrix of a design whose first column is the intercept's."""
    return len(design) * l2 * np.diag(np.r_[0.0, np.ones(design.shape[1] - 1)])


def _solution(design: FloatArray, targets: FloatArray, l2: float) -> FloatArray:
    """Least squares coefficients, shape (n_columns, n_targets); the shortest if there are several."""
    if l2 == 0:
        return np.asarray(np.linalg.lstsq(design, targets, rcond=None)[0])
    return np.asarray(np.linalg.pinv(design.T @ design + _ridge(design, l2), hermitian=True) @ (design.T @ targets))


def _fit_each(matrix: FloatArray, wanted: FloatArray) -> tuple[FloatArray, int]:
    """Minimise ``||matrix q - wanted||^2`` over q in [0, 1], for each column by itself."""
    fits = [lsq_linear(matrix, column, bounds=(0, 1), method="bvls") for column in wanted.T]
    return np.stack([fit.x for fit in fits], axis=1), max(1, *(fit.nit for fit in fits))


def _fit_jointly(matrix: FloatArray, wanted: FloatArray) -> tuple[FloatArray, int]:
    """Minimise ``||matrix q - wanted||^2`` over rows of q on the simplex."""

    def value_and_gradient(soft_labels: FloatArray) -> tuple[float, FloatArray]:
        error = matrix @ soft_labels - wanted
        return float((error**2).sum()), 2 * matrix.T @ error

    n_classes = wanted.shape[1]
    start = np.full((matrix.shape[1], n_classes), 1 / n_classes)
    descent = minimise_over_simplices(value_and_gradient, start, tol=TOL, max_iter=MAX_ITER)
    if not descent.converged:
        warnings.warn(
            f"the squared loss may be up to {descent.gap:.3g} above its minimum of at most {descent.value:.6g} after "
            f"{descent.n_iter} iterations",
            ConvergenceWarning,
            stacklevel=4,
        )
    return descent.soft_labels, descent.n_iter

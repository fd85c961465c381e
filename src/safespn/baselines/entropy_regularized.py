"""Logistic regression that prefers to be sure of its unlabelled rows (Grandvalet and Bengio 2004)."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from safespn.baselines.base import SemiSupervisedClassifier, linear_decision, one_hot
from safespn.typing import ArrayLike, FloatArray, IntArray

MAX_ITER = 10_000


class EntropyRegularizedLR(SemiSupervisedClassifier):
    """Logistic regression with an entropy penalty on the unlabelled rows.

    Minimises ``-sum log p(y_n | x_n) + l2 * ||coefficients||^2 + entropy * sum H(p(. | u_m))`` over coefficients of
    all classes but the first, whose score is fixed at zero; intercepts are not penalised. The problem is not convex:
    of the solutions reached from zero and from the supervised solution the better one is kept.

    Parameters
    ----------
    l2 : float
    entropy : float
        Penalty per nat of entropy of an unlabelled row.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) for two classes, (n_classes, n_features) for more
    intercept_ : array of shape (1,) or (n_classes,)
    objective_ : float
        The minimum found, in nats.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from safespn.baselines import EntropyRegularizedLR
    >>> X = np.array([[0.0], [1.0], [4.0], [6.0], [0.5], [5.0]])
    >>> EntropyRegularizedLR().fit(X, [0, 0, 1, 1, -1, -1]).predict([[0.0], [7.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l2": [Interval(Real, 0, None, closed="left")],
        "entropy": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
    }

    def __init__(self, l2: float = 0.1, entropy: float = 0.1, *, unlabeled: Any = -1) -> None:
        self.l2 = l2
        self.entropy = entropy
        self.unlabeled = unlabeled

    def _fit(self, labelled: FloatArray, codes: IntArray, unlabelled: FloatArray) -> None:
        n_classes = len(self.classes_)
        objective = _Objective(labelled, one_hot(codes, n_classes), unlabelled, self.l2, self.entropy)
        zero = np.zeros((labelled.shape[1] + 1) * (n_classes - 1))
        best = _minimise(objective._replace(entropy=0.0), zero)
        if self.entropy > 0 and len(unlabelled) > 0:
            best = min(_minimise(objective, best.x), _minimise(objective, zero), key=lambda fit: float(fit.fun))
        self.objective_, self.n_iter_ = float(best.fun), max(1, int(best.nit))
        weights = best.x.reshape(-1, n_classes - 1)
        if n_classes > 2:
            weights = np.column_stack([np.zeros(len(weights)), weights])
        self.coef_, self.intercept_ = weights[1:].T, weights[0]

    def _decision(self, table: FloatArray) -> FloatArray:
        return linear_decision(table, self.coef_, self.intercept_)

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Log probability of each class given each row, shape (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each class given each row, shape (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))


class _Objective(NamedTuple):
    labelled: FloatArray
    targets: FloatArray
    unlabelled: FloatArray
    l2: float
    entropy: float

    def value_and_gradient(self, packed: FloatArray) -> tuple[float, FloatArray]:
        """Of intercepts and coefficients (1 + n_features, n_classes - 1), packed into a vector."""
        weights = packed.reshape(-1, self.targets.shape[1] - 1)
        log_known, log_free = _log_probabilities(self.labelled, weights), _log_probabilities(self.unlabelled, weights)
        free = np.exp(log_free)
        entropies = -(free * log_free).sum(axis=1, keepdims=True)
        value = -(self.targets * log_known).sum() + self.l2 * (weights[1:] ** 2).sum() + self.entropy * entropies.sum()
        # Derivatives in the scores; the first class's score is fixed.
        of_known = (np.exp(log_known) - self.targets)[:, 1:]
        of_free = (-self.entropy * free * (log_free + entropies))[:, 1:]
        gradient = np.empty_like(weights)
        gradient[0] = of_known.sum(axis=0) + of_free.sum(axis=0)
        gradient[1:] = self.labelled.T @ of_known + self.unlabelled.T @ of_free + 2 * self.l2 * weights[1:]
        return float(value), gradient.ravel()


def _log_probabilities(table: FloatArray, weights: FloatArray) -> FloatArray:
    scores = table @ weights[1:] + weights[0]
    return np.asarray(log_softmax(np.column_stack([np.zeros(len(table)), scores]), axis=1))


def _minimise(objective: _Objective, start: FloatArray) -> OptimizeResult:
    options = {"maxiter": MAX_ITER, "maxfun": 2 * MAX_ITER, "ftol": 1e-14, "gtol": 1e-8}
    fit = minimize(objective.value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    if fit.nit >= MAX_ITER:
        warnings.warn(
            f"the regression has not converged after {MAX_ITER} iterations; standardise the columns, or raise l2",
            ConvergenceWarning,
            stacklevel=4,
        )
    return fit

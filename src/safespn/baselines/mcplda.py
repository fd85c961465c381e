"""Maximum contrastive pessimistic likelihood for linear discriminant analysis (Loog 2015)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from safespn.baselines.base import SemiSupervisedClassifier, one_hot
from safespn.baselines.simplex_descent import minimise_over_simplices
from safespn.foundation.posteriors import gains, log_posterior
from safespn.foundation.simplex import project_simplex
from safespn.safety.contrast import labelled_gains, worst_gains
from safespn.typing import ArrayLike, FloatArray, IntArray

MAX_ITER = 1000
LOOG_STEP, LOOG_TOL = 1e-3, 1e-6
EXACT_TOL = 1e-6
LOWEST_START = -1000.0
SMALLEST_EIGENVALUE = 1e-10
"""Of a covariance of standardised columns."""


class MCPLDA(SemiSupervisedClassifier):
    """Linear discriminant analysis that cannot lose likelihood against its supervised self on the training rows.

    Maximises over the parameters the least gain in log-likelihood over the supervised discriminant that any soft
    labels of the unlabelled rows allow. Constant columns are ignored.

    Parameters
    ----------
    solver : {"loog", "exact"}
        "loog": the alternation of the original paper, whose short steps stop before the maximum. "exact": for given
        soft labels the best discriminant is known in closed form, and its gain is a convex function of the soft labels
        with the same optimum, minimised here until the distance to it is negligible.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    priors_ : array of shape (n_classes,)
    means_ : array of shape (n_classes, n_features)
    covariance_ : array of shape (n_features, n_features)
        Shared by the classes; the divisor is the number of rows.
    soft_labels_ : array of shape (n_unlabelled, n_classes)
        The pessimistic soft labels, in the order of the unlabelled rows.
    worst_case_ : float
        Gain in joint log-likelihood over the supervised discriminant at the worst labelling, in nats.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from safespn.baselines import MCPLDA
    >>> X = np.array([[0.0], [1.0], [4.0], [6.0], [0.5], [5.0]])
    >>> MCPLDA().fit(X, [0, 0, 1, 1, -1, -1]).predict([[0.0], [7.0]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "solver": [StrOptions({"loog", "exact"})],
        "unlabeled": "no_validation",
    }

    def __init__(self, solver: str = "loog", *, unlabeled: Any = -1) -> None:
        self.solver = solver
        self.unlabeled = unlabeled

    def _fit(self, labelled: FloatArray, codes: IntArray, unlabelled: FloatArray) -> None:
        rows = np.concatenate([labelled, unlabelled])
        centre, scale = rows.mean(axis=0), rows.std(axis=0)
        self._varies = scale > 1e-12 * np.abs(rows).max(axis=0)
        self._centre, self._scale = centre[self._varies], scale[self._varies]
        problem = _Problem(self._standardise(rows), codes, len(self.classes_))
        solve = _solve_as_loog if self.solver == "loog" else _solve_exactly
        self.soft_labels_, self.n_iter_ = solve(problem)
        self._discriminant = problem.best_response(self.soft_labels_)
        self.worst_case_ = problem.worst_case(self._discriminant)
        self.priors_ = np.exp(self._discriminant.log_prior)
        self.means_ = np.tile(centre, (len(self.classes_), 1))
        self.means_[:, self._varies] += self._discriminant.means * self._scale
        self.covariance_ = np.zeros((len(centre), len(centre)))
        self.covariance_[np.ix_(self._varies, self._varies)] = self._discriminant.covariance * np.outer(
            self._scale, self._scale
        )

    def _standardise(self, table: FloatArray) -> FloatArray:
        return np.asarray((table[:, self._varies] - self._centre) / self._scale)

    def _joint(self, table: FloatArray) -> FloatArray:
        return np.asarray(self._discriminant.joint(self._standardise(table)) - np.log(self._scale).sum())

    def _decision(self, table: FloatArray) -> FloatArray:
        joint = self._joint(table)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def joint_log_likelihood(self, X: ArrayLike) -> FloatArray:
        """Log density of each row together with each class, ``log p(x, y=k)``, shape (n_rows, n_classes)."""
        return self._joint(self._check_rows(X))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Log probability of each class given each row, shape (n_rows, n_classes)."""
        return log_posterior(self.joint_log_likelihood(X))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each class given each row, shape (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))


@dataclass(frozen=True, eq=False)
class _Discriminant:
    """Gaussian classes with one covariance, which is ``axes @ diag(eigenvalues) @ axes.T``."""

    log_prior: FloatArray
    means: FloatArray
    eigenvalues: FloatArray
    axes: FloatArray

    @classmethod
    def fit(cls, table: FloatArray, weights: FloatArray) -> _Discriminant:
        """Weighted maximum likelihood; the weights (n_rows, n_classes) of each row add up to one."""
        counts = weights.sum(axis=0)
        means = weights.T @ table / counts[:, None]
        covariance = (table.T @ table - (means.T * counts) @ means) / len(table)
        eigenvalues, axes = np.linalg.eigh(covariance)
        return cls(np.log(counts / len(table)), means, np.maximum(eigenvalues, SMALLEST_EIGENVALUE), axes)

    @property
    def covariance(self) -> FloatArray:
        return np.asarray((self.axes * self.eigenvalues) @ self.axes.T)

    def joint(self, table: FloatArray) -> FloatArray:
        """Log density of each row together with each class, shape (n_rows, n_classes)."""
        whitening = self.axes / np.sqrt(self.eigenvalues)
        rows, centres = table @ whitening, self.means @ whitening
        distance = np.stack([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
        return np.asarray(self.log_prior - 0.5 * (distance + np.log(2 * np.pi * self.eigenvalues).sum()))


class _Problem:
    """The rows, labelled ones first, and the supervised discriminant's view of them."""

    def __init__(self, table: FloatArray, codes: IntArray, n_classes: int) -> None:
        self.table, self.codes, self.n_labelled = table, codes, len(codes)
        self.labels = one_hot(codes, n_classes)
        self.supervised = _Discriminant.fit(table[: len(codes)], self.labels).joint(table)

    def optimistic_start(self) -> FloatArray:
        """Where Loog starts: the supervised log densities, projected."""
        return project_simplex(np.maximum(self.supervised[self.n_labelled :], LOWEST_START))

    def best_response(self, soft_labels: FloatArray) -> _Discriminant:
        return _Discriminant.fit(self.table, np.concatenate([self.labels, soft_labels]))

    def gains(self, discriminant: _Discriminant) -> FloatArray:
        return gains(discriminant.joint(self.table), self.supervised)

    def worst_case(self, discriminant: _Discriminant) -> float:
        gain = self.gains(discriminant)
        of_labelled, of_others = (
            labelled_gains(gain[: self.n_labelled], self.codes),
            worst_gains(gain[self.n_labelled :]),
        )
        return float(of_labelled.sum() + of_others.sum())

    def contrast_and_gradient(self, soft_labels: FloatArray) -> tuple[float, FloatArray]:
        """Gain of the best response to soft labels, in nats; its gradient is the unlabelled rows' gains."""
        gain = self.gains(self.best_response(soft_labels))
        contrast = (gain * np.concatenate([self.labels, soft_labels])).sum()
        return float(contrast), gain[self.n_labelled :]


def _solve_as_loog(problem: _Problem) -> tuple[FloatArray, int]:
    """Alternate best responses with short projected steps on the soft labels."""
    soft_labels, last = problem.optimistic_start(), np.inf
    for iteration in range(1, MAX_ITER + 1):
        contrast, gradient = problem.contrast_and_gradient(soft_labels)
        per_row = contrast / len(problem.table)
        if abs(per_row - last) < LOOG_TOL:
            break
        last = per_row
        if iteration < MAX_ITER:
            soft_labels = project_simplex(soft_labels - LOOG_STEP / iteration * gradient)
    return soft_labels, iteration


def _solve_exactly(problem: _Problem) -> tuple[FloatArray, int]:
    """Minimise the best response's gain over the soft labels.

    The contrast is concave in the discriminant's natural parameters and linear in the soft labels, so the order of the
    two players does not matter, and the gap at which the descent stops is what the worst case lacks to its maximum.
    """
    descent = minimise_over_simplices(
        problem.contrast_and_gradient, problem.optimistic_start(), tol=EXACT_TOL, max_iter=MAX_ITER
    )
    if not descent.converged:
        warnings.warn(
            f"the worst case may lie up to {descent.gap:.3g} nats below its maximum of at most {descent.value:.6g} "
            f"after {descent.n_iter} iterations; rescaling or removing nearly collinear columns helps",
            ConvergenceWarning,
            stacklevel=4,
        )
    return descent.soft_labels, descent.n_iter

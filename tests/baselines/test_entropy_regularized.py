from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from safespn.baselines import EntropyRegularizedLR
from safespn.baselines.base import one_hot
from safespn.baselines.entropy_regularized import _Objective


@pytest.mark.parametrize("n_classes", [2, 4])
def test_gradient(n_classes):
    rng = np.random.default_rng(0)
    objective = _Objective(
        rng.normal(size=(8, 3)), one_hot(np.arange(8) % n_classes, n_classes), rng.normal(size=(11, 3)), 0.2, 0.7
    )
    point = rng.normal(size=4 * (n_classes - 1))
    error = check_grad(
        lambda x: objective.value_and_gradient(x)[0], lambda x: objective.value_and_gradient(x)[1], point
    )
    assert error < 1e-5


def test_without_entropy_it_is_logistic_regression():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    ours = EntropyRegularizedLR(l2=0.5, entropy=0.0).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_entropy_falls_and_the_objective_is_what_is_documented(load):
    X, y = load(return_X_y=True)
    X = scale(X)
    partly = np.where(np.arange(len(y)) % 6 == 0, y, -1)
    labelled = partly >= 0

    def entropy(fitted):
        return -(fitted.predict_proba(X[~labelled]) * fitted.predict_log_proba(X[~labelled])).sum()

    plain, sure = EntropyRegularizedLR(entropy=0.0).fit(X, partly), EntropyRegularizedLR().fit(X, partly)
    assert entropy(sure) < entropy(plain)
    value = (
        -sure.predict_log_proba(X[labelled])[np.arange(labelled.sum()), partly[labelled]].sum()
        + 0.1 * (sure.coef_**2).sum()
        + 0.1 * entropy(sure)
    )
    assert sure.objective_ == pytest.approx(value)
    np.testing.assert_allclose(sure.predict_proba(X).sum(axis=1), 1)

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression, Ridge

from safespn.baselines import ICLS, ProjectedLS


def draw(seed, n_classes=2, n_unlabelled=6):
    rng = np.random.default_rng(seed)
    y = np.arange(9 + n_unlabelled) % n_classes
    X = rng.normal(size=(len(y), 2)) + y[:, None] * 0.7
    return X, y, np.where(np.arange(len(y)) < 9, y, -1)


def fit_with_labels(X, targets, l2):
    return Ridge(alpha=l2 * len(X)).fit(X, targets) if l2 else LinearRegression().fit(X, targets)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_without_unlabelled_rows_it_is_ridge_regression(l2):
    X, y, _ = draw(0)
    theirs = fit_with_labels(X, y, l2)
    for kind in (ICLS, ProjectedLS):
        ours = kind(l2=l2).fit(X, y)
        np.testing.assert_allclose([ours.intercept_[0], *ours.coef_[0]], [theirs.intercept_, *theirs.coef_])


def _loss(kind, X, partly, l2):
    """Loss of soft labels of a column of targets, as a function written down independently."""
    labelled = partly >= 0
    supervised = {k: fit_with_labels(X[labelled], partly[labelled] == k, l2) for k in set(partly[labelled])}

    def loss(soft_labels, k):
        targets = np.empty(len(X))
        targets[labelled], targets[~labelled] = partly[labelled] == k, soft_labels
        fitted = fit_with_labels(X, targets, l2)
        if kind is ICLS:
            return ((fitted.predict(X[labelled]) - (partly[labelled] == k)) ** 2).sum()
        penalty = len(X) * l2 * ((fitted.coef_ - supervised[k].coef_) ** 2).sum()
        return ((fitted.predict(X) - supervised[k].predict(X)) ** 2).sum() + penalty

    return loss, fit_with_labels


@pytest.mark.parametrize("kind", [ICLS, ProjectedLS])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_soft_labels_fit_better(kind, l2, n_classes):
    X, _, partly = draw(1, n_classes)
    labelled = partly >= 0
    loss, _ = _loss(kind, X, partly, l2)
    fitted = kind(l2=l2).fit(X, partly)
    for row, k in enumerate([1] if n_classes == 2 else range(n_classes)):
        best = min(
            (
                minimize(loss, start, args=(k,), bounds=[(0, 1)] * 6, method="SLSQP", options={"ftol": 1e-14})
                for start in (np.full(6, 0.5), np.full(6, 0.1))
            ),
            key=lambda fit: fit.fun,
        )
        targets = np.empty(len(X))
        targets[labelled], targets[~labelled] = partly[labelled] == k, best.x
        expected = fit_with_labels(X, targets, l2)
        np.testing.assert_allclose(fitted.coef_[row], expected.coef_, atol=1e-4)
        np.testing.assert_allclose(fitted.intercept_[row], expected.intercept_, atol=1e-4)


@pytest.mark.parametrize("kind", [ICLS, ProjectedLS])
def test_joint_soft_labels_add_up_to_one_and_fit_best(kind):
    X, _, partly = draw(2, n_classes=3, n_unlabelled=4)
    labelled = partly >= 0
    loss, _ = _loss(kind, X, partly, 0.0)

    def total(first_two):
        soft = first_two.reshape(4, 2)
        return sum(loss(column, k) for k, column in enumerate([*soft.T, 1 - soft.sum(axis=1)]))

    fit = minimize(
        total,
        np.full(8, 1 / 3),
        bounds=[(0, 1)] * 8,
        constraints={"type": "ineq", "fun": lambda q: 1 - q.reshape(4, 2).sum(axis=1)},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    soft = np.column_stack([fit.x.reshape(4, 2), 1 - fit.x.reshape(4, 2).sum(axis=1)])
    fitted = kind(multiclass="joint").fit(X, partly)
    for k in range(3):
        targets = np.empty(len(X))
        targets[labelled], targets[~labelled] = partly[labelled] == k, soft[:, k]
        np.testing.assert_allclose(fitted.coef_[k], fit_with_labels(X, targets, 0.0).coef_, atol=1e-4)
    np.testing.assert_allclose(fitted.coef_.sum(axis=0), 0, atol=1e-9)
    assert fitted.intercept_.sum() == pytest.approx(1)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_projected_is_never_worse_than_supervised_for_any_labelling(seed):
    X, _, partly = draw(seed)
    labelled = partly >= 0
    safe, supervised = ProjectedLS().fit(X, partly), ProjectedLS().fit(X[labelled], partly[labelled])
    for rest in product([0, 1], repeat=6):
        targets = np.concatenate([partly[labelled], rest]) - 0.5
        losses = [((fitted.decision_function(X) - targets) ** 2).sum() for fitted in (safe, supervised)]
        assert losses[0] <= losses[1] + 1e-9

"""What every comparator does alike."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from safespn.baselines import ICLS, MCPLDA, TSVM, EntropyRegularizedLR, ProjectedLS
from safespn.model_selection import SemiSupervisedSplit

ESTIMATORS = [
    ICLS(),
    ICLS(multiclass="joint"),
    MCPLDA(),
    MCPLDA("exact"),
    TSVM(),
    TSVM(kernel="rbf"),
    TSVM(balance=False),
    EntropyRegularizedLR(),
    ProjectedLS(),
]
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y, np.where(np.arange(len(y)) % 4 == 0, y, -1)


@every
def test_learns_wine_from_a_quarter_of_its_labels(estimator, wine):
    X, y, partly = wine
    hidden = partly < 0
    assert estimator.fit(X, partly).score(X[hidden], y[hidden]) > 0.9
    assert estimator.score(X, partly) > 0.9  # unlabelled rows are ignored
    assert estimator.n_iter_ >= 1
    assert estimator.decision_function(X).shape == (len(X), 3)


@every
def test_other_markers_and_order_of_rows_change_nothing(estimator, wine):
    X, _, partly = wine
    names = np.array(["barbera", "barolo", "grignolino"])
    expected = names[estimator.fit(X, partly).predict(X)]
    order = np.random.default_rng(0).permutation(len(X))
    words = np.where(partly >= 0, names[partly], "?")
    again = type(estimator)(**{**estimator.get_params(), "unlabeled": "?"}).fit(X[order], words[order])
    np.testing.assert_array_equal(again.classes_, names)
    assert (again.predict(X) == expected).mean() > 0.99


@every
def test_cross_validation(estimator, wine):
    X, _, partly = wine
    scores = cross_val_score(make_pipeline(StandardScaler(), estimator), X, partly, cv=SemiSupervisedSplit(3))
    assert scores.mean() > 0.85


@every
def test_clear_errors(estimator, wine):
    X, y, _ = wine
    with pytest.raises(ValueError, match="y has no labelled row"):
        estimator.fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match=r"only one class, 2; .* needs at least one labelled row of each of two"):
        estimator.fit(X, np.where(y == 2, 2, -1))
    for cell in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 4] = cell
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            estimator.fit(broken, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (TSVM(C=0), "'C' parameter"),
        (TSVM(C_unlabeled=-1.0), "'C_unlabeled' parameter"),
        (TSVM(s=-1), "'s' parameter"),
        (TSVM(kernel="poly"), "'kernel' parameter"),
        (MCPLDA("newton"), "'solver' parameter"),
        (ICLS(l2=-1), "'l2' parameter"),
        (EntropyRegularizedLR(entropy=-1), "'entropy' parameter"),
    ],
)
def test_parameters_out_of_range(estimator, message, wine):
    X, y, _ = wine
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)

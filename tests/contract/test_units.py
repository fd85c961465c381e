"""Fits do not depend on the unit of a column, as far as floating-point numbers go; beyond, the cell is named."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, Gaussian, SafeSPNClassifier, learn_spn
from tests.rows.tables import blobs

FITS = [{}, {"objective": "discriminative", "max_iter": 20}, {"network": "deep", "univariate": True}, {"max_depth": 2}]


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-20, 1e-40, 1e-130, 1e130])
@pytest.mark.parametrize("options", FITS, ids=str)
def test_classifiers_are_the_same_in_every_unit(unit, options):
    X, _, partly = blobs(120)
    usual = SafeSPNClassifier(random_state=0, **options).fit(X, partly)
    other = SafeSPNClassifier(random_state=0, **options).fit(X * unit, partly)
    np.testing.assert_allclose(other.predict_proba(X * unit), usual.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert other.safety_.worst_case == pytest.approx(usual.safety_.worst_case, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("unit", [1e-20, 1e-130, 1e130])
def test_networks_are_the_same_in_every_unit(unit):
    X, *_ = blobs(120)
    for learn in (learn_spn, lambda table: learn_spn(table).fit_em(table)):
        usual, other = learn(X).log_likelihood(X), learn(X * unit).log_likelihood(X * unit)
        np.testing.assert_allclose(other + X.shape[1] * np.log(unit), usual, rtol=1e-6)


def fits_of(X, partly):
    return {
        "classifier": lambda: SafeSPNClassifier().fit(X, partly),
        "structure": lambda: learn_spn(X),
        "em": lambda: SPN(Gaussian(0, 0, 1)).fit_em(X[:, :1]),
        "gradient": lambda: SPN(Gaussian(0, 0, 1)).fit_gradient(X[:, :1]),
    }


@pytest.mark.parametrize("fit", ["classifier", "structure", "em", "gradient"])
def test_values_beyond_the_range_of_variances_are_named(fit):
    X, _, partly = blobs(60)
    X[7, 0] = -3e200
    with pytest.raises(
        ValueError, match=r"row 7, column 0: -3e\+200 is not valid, expected a finite number of at most 1e\+140"
    ):
        fits_of(X, partly)[fit]()
    X, _, partly = blobs(60)
    X[:, 0] *= 1e-170
    with pytest.raises(ValueError, match=r"column 0: its values lie within .*e-1\d\d of each other.*another unit"):
        fits_of(X, partly)[fit]()


def test_titles_name_the_column_too():
    pandas = pytest.importorskip("pandas")
    X, _, partly = blobs(60)
    X[7, 1] = 1e200
    frame = pandas.DataFrame(X, columns=[f"c{column}" for column in range(X.shape[1])])
    with pytest.raises(ValueError, match=r"row 7, column 1 \('c1'\): 1e\+200 is not valid"):
        SafeSPNClassifier().fit(frame, partly)

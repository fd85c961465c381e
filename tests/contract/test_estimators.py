"""scikit-learn's own checks of every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    parametrize_with_checks,
)

from safespn import SafeSPNClassifier
from safespn.baselines import ICLS, MCPLDA, TSVM, EntropyRegularizedLR, ProjectedLS


def expected_failures(estimator):
    if estimator.unlabeled is None:
        return {}
    return {"check_classifiers_classes": "its labels are -1 and 1, and -1 marks unlabelled rows"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        estimator
        for kind in (ICLS, MCPLDA, TSVM, EntropyRegularizedLR, ProjectedLS)
        for estimator in (kind(unlabeled=None), kind())
    ]
    + [SafeSPNClassifier(unlabeled=None), SafeSPNClassifier(network="blocks")]
    + [ICLS(multiclass="joint", unlabeled=None), MCPLDA("exact", unlabeled=None), TSVM(kernel="rbf", unlabeled=None)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_dataframe_column_names_consistency, check_param_validation])
@pytest.mark.parametrize("kind", [SafeSPNClassifier, ICLS, MCPLDA, TSVM, EntropyRegularizedLR, ProjectedLS])
def test_further_checks(kind, check):
    check(kind.__name__, kind())

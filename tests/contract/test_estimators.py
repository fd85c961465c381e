"""scikit-learn's own checks of every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    parametrize_with_checks,
)

from safespn import SafeSPNClassifier


def expected_failures(estimator):
    if estimator.unlabeled is None:
        return {}
    return {"check_classifiers_classes": "its labels are -1 and 1, and -1 marks unlabelled rows"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [SafeSPNClassifier(unlabeled=None), SafeSPNClassifier()], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_dataframe_column_names_consistency, check_param_validation])
def test_further_checks(check):
    check("SafeSPNClassifier", SafeSPNClassifier())

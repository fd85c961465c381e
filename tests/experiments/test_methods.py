import numpy as np
import pytest
from sklearn.datasets import load_iris

from safespn.experiments import methods
from safespn.experiments.methods import AUTHORS, OURS, Fits
from safespn.experiments.protocol import draw_trial


@pytest.fixture
def calls(monkeypatch):
    """Put a classifier in the place of ours that only notes what it is fitted to."""
    seen = []

    class Noting:
        def __init__(self, **options):
            self.options = options

        def fit(self, table, codes, validation=None):
            seen.append((self.options, table, codes, validation))
            return self

    monkeypatch.setattr(methods, "SafeSPNClassifier", Noting)
    return seen


@pytest.fixture
def trial():
    return draw_trial(*load_iris(return_X_y=True), 0)


def test_the_same_model_is_fitted_once(trial, calls):
    fits = Fits(trial)
    assert fits.oracle() is fits.oracle()
    assert fits.early_stopped_mcp(**OURS["generative"]) is fits.early_stopped_mcp(network="blocks")
    assert fits.to_labelled() is not fits.to_labelled_and_validation()
    assert len(calls) == 4


def test_each_fit_sees_the_labels_it_should(trial, calls):
    fits = Fits(trial)
    fits.to_labelled()
    fits.to_labelled_and_validation()
    fits.oracle()
    fits.early_stopped_mcp(**AUTHORS["authors' discriminative"])
    n_each, n_rows = len(trial.labelled), sum(map(len, (trial.labelled, trial.validation, trial.unlabelled)))
    assert [int((codes >= 0).sum()) for _, _, codes, _ in calls] == [n_each, 2 * n_each, n_rows, n_each]
    assert [len(table) for _, table, _, _ in calls] == [n_rows, n_rows, n_rows, n_rows - n_each]
    np.testing.assert_array_equal(calls[2][2][-len(trial.unlabelled) :], trial.unlabelled_classes)
    options, _, _, validation = calls[3]
    assert validation[0] is trial.validation
    assert (options["safety"], options["network"], options["univariate"]) == ("mcp", "deep", True)
    assert (options["objective"], options["max_depth"]) == ("discriminative", 4)


def test_labels_only_sees_no_unlabelled_row(trial, calls):
    Fits(trial).to_labels_only()
    _, table, codes, _ = calls[0]
    assert len(table) == len(trial.labelled) + len(trial.validation)
    assert (codes >= 0).all()

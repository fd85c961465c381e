"""What people would use instead, on the labelled rows alone: the class proportions, a linear model, a forest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from safespn.foundation.scoring import SMALLEST_PROBABILITY
from safespn.typing import FloatArray, IntArray

BASE_RATE, LOGISTIC, FOREST = "class proportions", "logistic regression", "random forest"


def peer_log_posteriors(
    types: Sequence[str], train: FloatArray, codes: IntArray, test: FloatArray, n_classes: int, seed: int
) -> dict[str, FloatArray]:
    """Fit each of them to labelled rows; log probabilities of classes of other rows, shape (n_test, n_classes).

    Parameters
    ----------
    types : sequence of str
        Types of the columns.
    train, test : arrays of shape (n_rows, n_features)
        Encoded rows, NaN where missing: gaps are filled in with medians, categories become columns of their own.
    codes : array of shape (n_train,)
        Numbers of the classes of ``train``.
    """
    models = {
        BASE_RATE: DummyClassifier(strategy="prior"),
        LOGISTIC: LogisticRegression(max_iter=1000),
        FOREST: RandomForestClassifier(100, random_state=seed, n_jobs=1),
    }
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models.items():
            fitted = Pipeline([("columns", _columns(types, train)), ("model", model)]).fit(train, codes)
            log_posterior = np.full((len(test), n_classes), np.log(SMALLEST_PROBABILITY))
            predicted = np.maximum(fitted.predict_proba(test), SMALLEST_PROBABILITY)
            log_posterior[:, fitted.classes_] = np.log(predicted)
            found[name] = log_posterior
    return found


def _columns(types: Sequence[str], train: FloatArray) -> ColumnTransformer:
    known = np.logical_not(np.isnan(train).all(axis=0))
    numbers = [at for at, kind in enumerate(types) if kind in ("continuous", "count") and known[at]]
    categories = [at for at, kind in enumerate(types) if kind == "categorical"]
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
        ]
    )

"""Scores of a fitted model on the test rows of a trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, log_loss

from safespn.decisions import f1_threshold
from safespn.experiments.protocol import Trial
from safespn.foundation.scoring import SMALLEST_PROBABILITY
from safespn.typing import FloatArray, IntArray


def score_model(model: Any, trial: Trial) -> dict[str, float]:
    """Score a model by everything that it can be scored by.

    Returns
    -------
    dict
        ``f1`` with the minority class as positive for two classes, macro-averaged for more; ``macro_f1``;
        ``accuracy``; with class probabilities ``log_loss`` (probabilities clipped at 1e-15) and ``f1_decision``: F1 of
        decisions made for F1, by a threshold computed from the probabilities of the unlabelled rows; with densities
        ``log_likelihood``, the mean of ``log p(x, y)`` in nats.
    """
    decided = np.asarray(model.predict(trial.test))
    truth = trial.test_classes
    scores = {
        "f1": _f1(truth, decided, trial),
        "macro_f1": float(f1_score(truth, decided, average="macro", zero_division=0)),
        "accuracy": float(accuracy_score(truth, decided)),
    }
    if hasattr(model, "predict_proba"):
        probabilities = _probabilities(model, trial.test)
        scores["log_loss"] = float(log_loss(truth, probabilities, labels=range(trial.n_classes)))
        scores["f1_decision"] = _f1(truth, _decide_for_f1(model, probabilities, trial), trial)
    if hasattr(model, "joint_log_likelihood"):
        joint = np.asarray(model.joint_log_likelihood(trial.test))
        scores["log_likelihood"] = float(joint[np.arange(len(truth)), truth].mean())
    return scores


def certificate(model: Any, rows: FloatArray, codes: IntArray) -> dict[str, float]:
    """Recompute the worst case from nothing but the joint log-likelihoods of a safe model and its supervised one.

    Parameters
    ----------
    codes : array of shape (n_rows,)
        Class of each row that the model was fitted on, -1 where it was unlabelled.
    """
    gains = model.joint_log_likelihood(rows) - model.supervised_.joint_log_likelihood(rows)
    known = np.nonzero(codes >= 0)[0]
    worst_case = gains[known, codes[known]].sum() + gains[codes < 0].min(axis=1).sum()
    return {
        "worst_case": float(worst_case),
        "fallback": float(model.safety_.fallback),
        "disagreement": float(model.safety_.disagreement),
    }


def _f1(truth: IntArray, decided: IntArray, trial: Trial) -> float:
    if trial.n_classes > 2:
        return float(f1_score(truth, decided, average="macro", zero_division=0))
    return float(f1_score(truth, decided, pos_label=trial.minority, zero_division=0))


def _decide_for_f1(model: Any, probabilities: FloatArray, trial: Trial) -> IntArray:
    if trial.n_classes > 2:
        return np.asarray(probabilities.argmax(axis=1))
    threshold = f1_threshold(_probabilities(model, trial.unlabelled)[:, trial.minority])
    return np.where(probabilities[:, trial.minority] > threshold, trial.minority, 1 - trial.minority)


def _probabilities(model: Any, rows: FloatArray) -> FloatArray:
    """Class probabilities; where a method has none for a row (label spreading far from any label), equal ones."""
    raw = np.asarray(model.predict_proba(rows), dtype=np.float64)
    clipped = np.clip(np.nan_to_num(raw, nan=1.0 / raw.shape[1]), SMALLEST_PROBABILITY, 1.0)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))

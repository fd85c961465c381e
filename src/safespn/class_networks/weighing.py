"""Temperatures and weights of a committee's members, from labels that were left out of their fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from safespn.foundation.posteriors import log_posterior
from safespn.typing import FloatArray, IntArray

LARGEST_LOG_TEMPERATURE = 6.0
COARSE_STEP = 0.75
LOG_TEMPERATURE_WIDTH = 0.35
DEGREES_OF_FREEDOM = 3.0
"""Of Student's distribution, the prior on log temperature: near the usual one with few labels, but free to go far, as
it must in wide tables."""
LOWEST_LOG_PROBABILITY = float(np.log(1e-12))
"""No single row decides."""
N_STEPS = 200
PSEUDO_LABELS, WITHIN_FAMILIES = 8.0, 3.0
"""Pseudo-counts of the weights of families and of members within a family, spread evenly."""
USUAL_COMMITTEE_TEMPERATURE = 0.7
SMALLEST_WEIGHT = 0.02
"""Members that count for less are dropped."""


def log_tempered(joint: FloatArray, temperature: float) -> FloatArray:
    """Log posteriors of a class joint flattened (above one) or sharpened (below one), shape (n_rows, n_classes)."""
    return log_posterior(joint / temperature)


def choose_temperature(joint: FloatArray, codes: IntArray, weights: FloatArray, usual: float) -> float:
    """Temperature at which held-out labels are most probable.

    Parameters
    ----------
    joint : array of shape (n_left_out, n_classes)
        Class joint, or log posteriors, of held-out rows.
    usual : float
        Temperature that the prior is centred at.
    """
    rows = np.arange(len(codes))

    def loss(log_temperature: float) -> float:
        posterior = log_tempered(joint, np.exp(log_temperature))
        far = (log_temperature - np.log(usual)) / LOG_TEMPERATURE_WIDTH
        penalty = 0.5 * (DEGREES_OF_FREEDOM + 1) * np.log1p(far**2 / DEGREES_OF_FREEDOM)
        return float(penalty - weights @ np.maximum(posterior[rows, codes], LOWEST_LOG_PROBABILITY))

    # Where all wrong rows are at the lowest probability the loss is flat: look everywhere first, then nearby.
    places = np.arange(-LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE + COARSE_STEP, COARSE_STEP)
    best = places[np.argmin([loss(place) for place in places])]
    bounds = (best - COARSE_STEP, best + COARSE_STEP)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02}).x))


def mixture_weights(probabilities: FloatArray, weights: FloatArray, pseudo_count: float = 1.0) -> FloatArray:
    """Weights of a mixture that make some rows most probable (EM), with a pseudo-count spread evenly.

    Parameters
    ----------
    probabilities : array of shape (n_rows, n_members)
        Probability of each row under each member, up to a factor per row.
    """
    n_members = probabilities.shape[1]
    share = np.full(n_members, 1 / n_members)
    each = np.maximum(probabilities, 1e-12 * probabilities.max(axis=1, keepdims=True, initial=1e-300))
    for _ in range(N_STEPS):
        responsibility = each * share
        responsibility /= responsibility.sum(axis=1, keepdims=True)
        share = (weights @ responsibility + pseudo_count / n_members) / (weights.sum() + pseudo_count)
    return np.asarray(share)


def weigh_within_families(
    log_posteriors: Sequence[FloatArray], families: Sequence[str], codes: IntArray, weights: FloatArray
) -> FloatArray:
    """Weights of members by held-out labels: within each family first, then of the families.

    With few labels a family of many members would win by number alone.

    Parameters
    ----------
    log_posteriors : sequence of arrays of shape (n_left_out, n_classes)
    """
    of_label = np.exp(np.stack([each[np.arange(len(codes)), codes] for each in log_posteriors], axis=1))
    names = list(dict.fromkeys(families))
    result = np.zeros(len(families))
    of_families = np.empty((len(codes), len(names)))
    for number, name in enumerate(names):
        members = np.array([family == name for family in families])
        result[members] = mixture_weights(of_label[:, members], weights, WITHIN_FAMILIES)
        of_families[:, number] = of_label[:, members] @ result[members]
    share = mixture_weights(of_families, weights, PSEUDO_LABELS)
    for number, name in enumerate(names):
        result[[family == name for family in families]] *= share[number]
    counts = result >= min(SMALLEST_WEIGHT, result.max())
    return np.asarray(np.where(counts, result, 0.0) / result[counts].sum())

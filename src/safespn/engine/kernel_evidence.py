"""Evidence at the root inside the compiled kernels: which share of a row each of the root's edges gets."""

from __future__ import annotations

import numpy as np
from numba import njit

from safespn.engine.evidence import SMALLEST_LOG_JOINT
from safespn.engine.kernel_arguments import UpdateArguments
from safespn.engine.kernel_arithmetic import softmax
from safespn.engine.kernel_vectors import LENGTH, fill, larger, load, store, where_at_least
from safespn.typing import FloatArray

LARGEST_LOGIT = 1e300


@njit(nogil=True, error_model="numpy", forceinline=True)
def read_evidence(
    share: FloatArray,
    joint: FloatArray,
    work: FloatArray,
    log_factor: FloatArray,
    tilt: float,
    hard: bool,
    begin: int,
    n: int,
    padded: int,
    constants: FloatArray,
) -> None:
    """Compute ``softmax_k(tilt * joint + log_factor)``; its log total goes to the first row of ``work``."""
    for k in range(len(joint)):
        for r in range(0, padded, LENGTH):
            a = load(joint, k, r)
            if tilt < 0.0:
                a = larger(a, fill(SMALLEST_LOG_JOINT))
            store(share, k, r, a * tilt if tilt != 0.0 else fill(0.0))
        if len(log_factor) > 0:
            for r in range(n):
                share[k, r] += log_factor[begin + r, k]
    softmax(share, padded, hard, work, constants)


@njit(nogil=True, error_model="numpy", forceinline=True)
def move_soft_labels(
    share: FloatArray,
    target: FloatArray,
    joint: FloatArray,
    work: FloatArray,
    update: UpdateArguments,
    begin: int,
    n: int,
    padded: int,
    constants: FloatArray,
) -> None:
    """Move the soft labels of a block by :class:`safespn.engine.evidence.SoftLabelUpdate`, and share rows by them."""
    n_classes, pessimism = len(joint), update.pessimism
    for k in range(n_classes):
        for r in range(n):
            target[k, r] = update.reference[begin + r, k]
        target[k, n:padded] = target[k, n - 1]
        for r in range(0, padded, LENGTH):
            # The difference is NaN where both models make a class impossible: it is no candidate for the worst.
            logit = (load(target, k, r) - load(joint, k, r)) / update.temperature
            logit = larger(logit, fill(-LARGEST_LOGIT))
            store(share, k, r, where_at_least(logit, fill(LARGEST_LOGIT), fill(LARGEST_LOGIT), logit))
    softmax(share, padded, False, work, constants)
    if pessimism < 1.0:
        target[:] = joint
        softmax(target, padded, False, work, constants)
        for r in range(n):
            possible = False
            for k in range(n_classes):
                possible = possible or joint[k, r] > -np.inf
            for k in range(n_classes):
                own = target[k, r] if possible else 1.0 / n_classes
                share[k, r] = pessimism * share[k, r] + (1.0 - pessimism) * own
    for k in range(n_classes):
        for r in range(n):
            before = update.soft_labels[begin + r, k]
            rate = update.rate if update.is_free[begin + r] else 0.0
            share[k, r] = before + rate * (share[k, r] - before)
            update.soft_labels[begin + r, k] = share[k, r]

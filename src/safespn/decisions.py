"""From class probabilities to decisions that suit another measure than accuracy."""

from __future__ import annotations

import numpy as np

from safespn.typing import ArrayLike


def f1_threshold(probabilities: ArrayLike) -> float:
    """Threshold on the probability of the positive class that maximises the expected F1 score.

    The best decision for F1 calls positive the rows whose probability is above half of the best F1 that can be reached
    (Lipton, Elkan and Naryanaswamy 2014). No labels are needed: the expected F1 of calling the k most probable rows
    positive is ``2 * sum of their probabilities / (k + sum of all probabilities)``.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows,)
        Probability of the positive class for rows like those to decide on, for example the unlabelled ones.

    Returns
    -------
    float
        Between 0 and 0.5.

    Examples
    --------
    >>> from safespn.decisions import f1_threshold
    >>> f1_threshold([0.4, 0.3, 0.1, 0.1])
    0.24137931034482757
    """
    ordered = np.sort(np.asarray(probabilities, dtype=np.float64))[::-1]
    if ordered.ndim != 1 or len(ordered) == 0:
        raise ValueError(f"probabilities must be a list of at least one number, got shape {ordered.shape}")
    if not (np.isfinite(ordered).all() and ordered[-1] >= 0 and ordered[0] <= 1):
        raise ValueError("probabilities must lie between 0 and 1")
    if ordered[0] == 0:
        return 0.0
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum())
    return float(expected.max() / 2)

"""Stepwise EM in mini-batches: close to full passes, repeatable, and certified on all rows."""

from __future__ import annotations

import numpy as np

from safespn import SafeSPNClassifier
from tests.rows.tables import blobs


def test_mini_batches_come_close_to_full_passes_and_are_certified_on_all_rows():
    X, y, partly = blobs(3000, seed=1)
    full = SafeSPNClassifier(network="blocks", random_state=0).fit(X, partly)
    fitted = SafeSPNClassifier(network="blocks", random_state=0, batch_size=300).fit(X, partly)
    assert fitted.safety_.certified
    assert not fitted.safety_.fallback
    gain = fitted.joint_log_likelihood(X) - fitted.supervised_.joint_log_likelihood(X)
    known = partly >= 0
    exact = gain[known, partly[known]].sum() + gain[~known].min(axis=1).sum()
    np.testing.assert_allclose(fitted.safety_.worst_case, exact, rtol=1e-9)
    assert abs(fitted.score_samples(X).mean() - full.score_samples(X).mean()) < 0.05
    assert fitted.score(X, y) > full.supervised_.score(X, y) - 0.02
    np.testing.assert_allclose(fitted.soft_labels_.sum(axis=1), 1)


def test_mini_batches_repeat_with_the_seed():
    X, _, partly = blobs(800, seed=2)
    first, second, other = (
        SafeSPNClassifier(network="blocks", random_state=seed, batch_size=100, max_iter=10).fit(X, partly)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.joint_log_likelihood(X), second.joint_log_likelihood(X))
    assert (first.joint_log_likelihood(X) != other.joint_log_likelihood(X)).any()


def test_one_batch_of_all_rows_is_a_full_step_without_averaging():
    """Plain EM has no average over steps, so both ways are the same."""
    X, _, partly = blobs(300, seed=3)
    options = {"safety": "none", "max_iter": 20, "random_state": 0}
    full = SafeSPNClassifier(network="blocks", **options).fit(X, partly)
    fitted = SafeSPNClassifier(network="blocks", batch_size=10_000, **options).fit(X, partly)
    np.testing.assert_allclose(fitted.joint_log_likelihood(X), full.joint_log_likelihood(X), rtol=1e-9)

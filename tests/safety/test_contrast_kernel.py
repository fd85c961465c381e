"""The compiled sums of gains against their definition in numpy, for ordinary rows and for those at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from safespn.foundation.posteriors import gains
from safespn.safety import contrast
from safespn.safety.contrast_kernel import gain_totals


def rows_of(rng, n_rows, n_classes):
    joint, reference = rng.normal(0, 30, (2, n_rows, n_classes))
    soft_labels = rng.dirichlet(np.full(n_classes, 0.3), n_rows)
    codes = np.where(rng.random(n_rows) < 0.2, rng.integers(0, n_classes, n_rows), -1)
    soft_labels[codes >= 0] = np.eye(n_classes)[codes[codes >= 0]]
    return joint, reference, soft_labels, codes


def by_definition(joint, reference, soft_labels, codes, weights=None):
    at_labels = contrast.contrast(joint, reference, soft_labels)
    return contrast.gain_totals(gains(joint, reference), at_labels, codes, weights)


@pytest.mark.parametrize("n_rows", [1, 15, 33, 96, 97, 500])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_definition(n_rows, n_classes, weighted):
    rng = np.random.default_rng(n_rows + n_classes)
    arrays = rows_of(rng, n_rows, n_classes)
    weights = rng.uniform(0, 3, n_rows) if weighted else None
    ours = gain_totals(*arrays, weights)
    np.testing.assert_allclose(ours, by_definition(*arrays, weights), rtol=1e-11, atol=1e-9)


def test_impossible_classes_and_labels_next_to_nothing():
    rng = np.random.default_rng(0)
    joint, reference, soft_labels, codes = rows_of(rng, 300, 3)
    joint[::7, 1] = reference[::7, 1] = -np.inf  # impossible under both
    reference[3::11, 2] = -np.inf  # possible under the model only
    joint[5], reference[5] = -np.inf, -np.inf
    codes[5] = -1
    soft_labels[codes < 0] = np.where(soft_labels[codes < 0] < 1e-3, 1e-309, soft_labels[codes < 0])
    ours = gain_totals(joint, reference, soft_labels, codes, None)
    expected = by_definition(joint, reference, soft_labels, codes)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(ours, expected, rtol=1e-11)


def test_a_class_that_only_the_model_makes_impossible_has_no_certificate():
    joint, reference, soft_labels, codes = rows_of(np.random.default_rng(1), 50, 2)
    codes[10] = -1
    joint[10, 1] = -np.inf
    assert gain_totals(joint, reference, soft_labels, codes, None)[0] == -np.inf


@pytest.mark.parametrize("array", [0, 1])
@pytest.mark.parametrize("row", [0, 31, 95, 119])
def test_a_nan_anywhere_reaches_the_worst_case(array, row):
    arrays = rows_of(np.random.default_rng(2), 120, 2)
    arrays[3][row] = -1
    arrays[array][row, 1] = np.nan
    worst_case, at_labels, _ = gain_totals(*arrays, None)
    assert np.isnan(worst_case)
    assert np.isnan(at_labels)

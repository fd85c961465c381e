from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safespn.rows.memory import MemoryRows
from safespn.rows.sampling import draw_sample


def rows_of(counts, weights=None):
    """So many rows of each class and, last, without one; the only column is the row's number."""
    codes = np.random.default_rng(0).permutation(np.repeat([*range(len(counts) - 1), -1], counts))
    return MemoryRows(np.arange(len(codes), dtype=float)[:, None], codes, len(counts) - 1, weights)


def test_few_rows_are_all_returned_as_they_are():
    rows = rows_of([3, 4, 10])
    sample = draw_sample(rows, 17, np.random.default_rng(0))
    assert sample.table is rows.whole.table
    assert sample.weights is None


@given(
    st.lists(st.integers(0, 60), min_size=3, max_size=4).filter(lambda counts: sum(counts[:-1]) > 0), st.integers(6, 90)
)
def test_samples_have_every_class_their_size_and_the_strata_their_weight(counts, size):
    rows = rows_of(counts)
    sample = draw_sample(rows, size, np.random.default_rng(1))
    drawn = np.bincount(np.where(sample.codes < 0, len(counts) - 1, sample.codes), minlength=len(counts))
    assert (drawn[:-1] >= np.minimum(counts[:-1], 1)).all()
    assert (drawn <= counts).all()
    assert len(sample.codes) <= max(size, sum(counts) if sum(counts) <= size else size + len(counts))
    assert (np.diff(sample.table[:, 0]) > 0).all()
    np.testing.assert_array_equal(rows.whole.codes[sample.table[:, 0].astype(int)], sample.codes)
    if sample.weights is not None:
        assert sample.weights.sum() == pytest.approx(len(sample.codes) * sum(np.array(counts)[drawn > 0]) / sum(counts))


def test_own_weights_are_kept():
    rows = rows_of([20, 20, 60], np.full(100, 2.0))
    sample = draw_sample(rows, 50, np.random.default_rng(0))
    assert sample.weights.mean() == pytest.approx(2.0)


def test_the_same_seed_draws_the_same_rows():
    first, second = (draw_sample(rows_of([30, 30, 90]), 40, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.table, second.table)

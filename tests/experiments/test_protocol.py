import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safespn.experiments.protocol import draw_trial
from safespn.foundation.stratified import draw_stratified


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    classes = np.repeat([0, 1], [70, 30])
    features = np.column_stack([generator.normal(5, 3, (100, 3)), np.full(100, 7.0)])
    return features + np.array([1, 1, 1, 0]) * classes[:, None], classes


def test_parts_have_the_sizes_of_the_protocol(table):
    trial = draw_trial(*table, 0)
    assert [len(part) for part in (trial.labelled, trial.validation, trial.unlabelled, trial.test)] == [8, 8, 64, 20]
    assert trial.labelled.shape[1] == 3  # the constant feature is gone
    assert trial.minority == 1
    assert np.bincount(trial.labelled_classes).tolist() == [6, 2]
    assert np.bincount(trial.test_classes).tolist() == [14, 6]


def test_parts_are_disjoint_and_complete(table):
    features = np.arange(100.0)[:, None]
    trial = draw_trial(features, table[1], 3)
    every = np.concatenate([trial.labelled, trial.validation, trial.unlabelled, trial.test])
    assert len(np.unique(every)) == 100


def test_z_scores_come_from_the_training_rows(table):
    trial = draw_trial(*table, 1)
    train = np.concatenate([trial.labelled, trial.validation, trial.unlabelled])
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), 1)
    assert abs(trial.test.mean()) > 1e-3


def test_trials_repeat_and_differ(table):
    np.testing.assert_array_equal(draw_trial(*table, 4).labelled, draw_trial(*table, 4).labelled)
    assert not np.array_equal(draw_trial(*table, 4).test, draw_trial(*table, 5).test)
    assert not np.array_equal(draw_trial(*table, 4).test, draw_trial(*table, 4, seed=1).test)


def test_a_fixed_split_keeps_the_test_rows(table):
    one, other = (draw_trial(*table, trial, fixed_split=True) for trial in (0, 1))
    np.testing.assert_array_equal(one.test, other.test)
    assert not np.array_equal(one.labelled, other.labelled)


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=4), share=st.floats(0.01, 1), least=st.integers(0, 3))
def test_draws_keep_proportions_and_minima(counts, share, least):
    classes = np.repeat(np.arange(len(counts)), counts)
    n = max(1, int(share * len(classes)))
    rows = draw_stratified(classes, n, np.random.default_rng(0), least=least)
    drawn = np.bincount(classes[rows], minlength=len(counts))
    assert len(np.unique(rows)) == n
    if n >= least * len(counts):
        assert (drawn >= np.minimum(least, counts)).all()
    if least == 0:
        assert (np.abs(drawn - n * np.array(counts) / len(classes)) <= 1 + 1e-9).all()


def test_too_many_rows_cannot_be_drawn():
    with pytest.raises(ValueError, match="cannot draw 5 of 3 rows"):
        draw_stratified(np.zeros(3, dtype=int), 5, np.random.default_rng(0))

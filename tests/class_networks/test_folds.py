from __future__ import annotations

import numpy as np

from safespn.class_networks.folds import N_FOLDS, draw_folds
from tests.class_networks.tables import labelled_table


def folds_of(cells, codes, weights=None):
    cells = np.asarray(cells, dtype=float).reshape(len(codes), -1)
    return draw_folds(labelled_table(cells, np.asarray(codes), weights=weights), np.random.default_rng(0))


def test_every_labelled_row_is_left_out_once_and_classes_are_spread_evenly():
    codes = np.repeat([0, 1, -1], [15, 10, 40])
    folds = folds_of(np.arange(65), codes)
    assert len(folds.rows) == 25
    assert len(folds.left_out) == 25
    for code, per_fold in ((0, 3), (1, 2)):
        np.testing.assert_array_equal(np.bincount(folds.number[folds.codes == code]), [per_fold] * N_FOLDS)


def test_small_classes_do_not_crowd_the_first_fold():
    folds = folds_of(np.arange(20), np.repeat(np.arange(10), 2))
    np.testing.assert_array_equal(np.bincount(folds.number), [4] * N_FOLDS)


def test_a_class_with_two_rows_never_loses_both():
    folds = folds_of(np.arange(12), [0] * 10 + [1] * 2)
    of_class = folds.number[folds.codes == 1]
    assert len(set(of_class.tolist())) == 2
    assert (of_class >= 0).all()


def test_a_class_with_one_row_never_loses_it():
    folds = folds_of(np.arange(11), [0] * 10 + [1])
    assert folds.number[folds.codes == 1].tolist() == [-1]
    assert len(folds_of([0.0, 1.0], [0, 1]).left_out) == 0


def test_equal_rows_share_a_fold_whatever_their_classes():
    cells = np.repeat(np.arange(10.0), 2)
    folds = folds_of(cells, np.tile([0, 1], 10))
    np.testing.assert_array_equal(folds.number[::2], folds.number[1::2])


def test_the_only_row_of_a_class_stays_even_if_another_class_has_an_equal_one():
    folds = folds_of(np.append(np.arange(10.0), 3.0), [0] * 10 + [1])
    assert folds.number[folds.codes == 1].tolist() == [-1]


def test_missing_cells_are_equal():
    folds = folds_of([np.nan, np.nan, 1, 2, 3, 4], [0, 1, 0, 1, 0, 1])
    is_gap = folds.rows < 2
    assert len(set(folds.number[is_gap].tolist())) == 1


def test_kept_weights_are_zero_for_the_rows_of_the_fold():
    folds = folds_of(np.arange(10), np.tile([0, 1], 5), weights=np.arange(1.0, 11))
    for fold in range(N_FOLDS):
        expected = np.where(folds.number == fold, 0, folds.weights)
        np.testing.assert_array_equal(folds.kept_weights(fold), expected)

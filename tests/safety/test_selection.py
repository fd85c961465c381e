import numpy as np
import pytest

from safespn import SafeSPNClassifier
from safespn.safety.preparation import ClassPrior, Preparation
from safespn.safety.selection import HeldOut, choose_class_prior, left_out_in_turn

TIED, OWN = ClassPrior(True, 0.2, 0.0), ClassPrior(False, 0.2, 0.0)


def two_shapes(n, generator):
    """Two classes with the same mean: only a covariance of its own tells one from the other."""
    table = generator.normal(size=(2 * n, 3))
    table[n:] *= [5.0, 0.2, 1.0]
    return table, np.repeat([0, 1], n)


def shifted(n, generator):
    """Two classes that differ in the mean only."""
    classes = np.repeat([0, 1], n)
    return generator.normal(size=(2 * n, 3)) + 2.0 * classes[:, None], classes


def prepared(table):
    return Preparation(
        table, None, [0] * table.shape[1], 2, None, multivariate=True, relative_floor=1e-4, rows_per_class=0.5, n_jobs=1
    )


@pytest.mark.parametrize(("make", "expected"), [(two_shapes, OWN), (shifted, TIED)])
def test_classes_get_their_own_covariance_only_where_labels_ask_for_it(make, expected):
    generator = np.random.default_rng(0)
    table, codes = make(40, generator)
    held_out = list(left_out_in_turn(prepared(table), codes))
    chosen = choose_class_prior(prepared(table), held_out, (TIED, OWN), fewer_errors=True)
    assert chosen == expected


def test_validation_rows_decide_where_there_are_some():
    generator = np.random.default_rng(1)
    table, codes = two_shapes(40, generator)
    fresh, classes = two_shapes(30, generator)
    held_out = [HeldOut(codes, fresh, classes, np.ones(60))]
    assert choose_class_prior(prepared(table), held_out, (TIED, OWN), fewer_errors=True) == OWN


def test_every_labelled_row_is_left_out_once_but_one_of_each_class_stays():
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2, -1, -1])
    parts = list(left_out_in_turn(prepared(np.arange(11.0)[:, None]), codes))
    left_out = np.concatenate([part.rows[:, 0] for part in parts]).astype(int)
    assert len(np.unique(left_out)) == len(left_out)
    assert np.bincount(codes[left_out], minlength=3).tolist() == [6, 1, 0]
    for part in parts:
        assert set(range(3)) <= set(part.codes.tolist())
        np.testing.assert_array_equal(part.classes, codes[part.rows[:, 0].astype(int)])
        assert (part.codes[part.rows[:, 0].astype(int)] == -1).all()


def test_a_fit_tuned_for_classes_returns_the_supervised_model_where_unlabelled_rows_do_not_help():
    generator = np.random.default_rng(2)
    table, codes = shifted(60, generator)
    labels = np.where(np.arange(120) % 3 == 0, codes, -1)
    misleading = table.copy()
    misleading[labels < 0] = generator.normal(size=(80, 3)) * 0.1 + np.array([2.0, 0.0, -2.0])
    fitted = SafeSPNClassifier(tuned_for="classes", random_state=0).fit(misleading, labels)
    assert fitted.safety_.fallback
    np.testing.assert_allclose(fitted.predict_proba(table), fitted.supervised_.predict_proba(table))


def test_a_row_of_weight_two_is_that_row_twice():
    generator = np.random.default_rng(3)
    table, codes = shifted(20, generator)
    twice = np.concatenate([table, table[:7]])
    for part in left_out_in_turn(prepared(twice), np.concatenate([codes, codes[:7]])):
        left_out = (part.rows[:, None] == twice).all(axis=2).any(axis=0)
        np.testing.assert_array_equal(left_out[:7], left_out[40:])

"""What a table must look like, and what it may look like."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, Categorical, Gaussian, Poisson, Product
from tests.networks import random_problem

MIXED = SPN(Product([Gaussian(0, 0, 1), Categorical(1, [0.2, 0.3, 0.5]), Poisson(2, 2.0)]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 1]], r"the table has 2 columns, but the network models 3"),
        ([0, 1, 2], r"array of shape \(3,\); one row is X\.reshape\(1, -1\)"),
        (np.empty((0, 3)), r"at least one row and one column, got shape \(0, 3\)"),
        (np.empty((3, 0)), r"at least one row and one column, got shape \(3, 0\)"),
        (np.array([[0, 1, None]], dtype=object), r"the table has dtype object; expected numbers"),
        ([["a", "b", "c"]], r"expected numbers: encode categories as integer codes"),
        ([[0, 1, 2], [np.inf, 1, 2]], r"row 1, column 0: inf is not valid, expected a finite number"),
        ([[0, 3, 2]], r"row 0, column 1: 3 is not valid, expected an integer code from 0 to 2"),
        ([[0, -1, 2]], r"row 0, column 1: -1 is not valid"),
        ([[0, 0.5, 2]], r"row 0, column 1: 0\.5 is not valid"),
        ([[0, np.inf, 2]], r"row 0, column 1: inf is not valid"),
        ([[0, 1, -2]], r"row 0, column 2: -2 is not valid, expected a count"),
        ([[0, 1, 1.5]], r"row 0, column 2: 1\.5 is not valid"),
        ([[0, 1, np.inf]], r"row 0, column 2: inf is not valid"),
    ],
)
def test_bad_tables_are_refused(table, message, backend):
    for call in (MIXED.log_likelihood, MIXED.fit_em, MIXED.mpe, MIXED.conditional_sample):
        with pytest.raises(ValueError, match=message):
            call(table)


def test_infinite_cell_in_a_later_block_is_found(backend):
    table = np.zeros((20_000, 1))
    table[17_123] = -np.inf
    with pytest.raises(ValueError, match=r"row 17123, column 0: -inf"):
        SPN(Gaussian(0, 0, 1)).log_likelihood(table)


def test_large_finite_values_are_not_taken_for_infinite(backend):
    assert SPN(Gaussian(0, 0, 1)).log_likelihood(np.full((4, 1), 1e308)).tolist() == [-np.inf] * 4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, np.nan], r"sample_weight of row 1 is nan"),
        ([-1, 1], r"sample_weight of row 0 is -1"),
        ([1], r"one sample weight for each of 2 rows"),
        ([0, 0], r"every sample_weight is zero"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        MIXED.fit_em([[0, 1, 2], [0, 1, 2]], sample_weight=weights)


@pytest.mark.parametrize(
    "form", ["float32", "fortran", "strided", "read-only", "memory map", "list", "frame", "integers"]
)
def test_any_numeric_form_of_table_works(form, backend, tmp_path):
    spn, table, _ = random_problem(4, n_rows=300, kinds=("gaussian", "poisson"))
    table = np.round(table) if form == "integers" else table.astype(np.float32).astype(float)
    table = np.nan_to_num(table) if form == "integers" else table
    expected = spn.log_likelihood(table)
    if form == "float32":
        given = table.astype(np.float32)
    elif form == "fortran":
        given = np.asfortranarray(table)
    elif form == "strided":
        given = np.repeat(np.repeat(table, 2, axis=0), 2, axis=1)[::2, ::2]
    elif form == "read-only":
        given = table.copy()
        given.flags.writeable = False
    elif form == "memory map":
        np.save(tmp_path / "table.npy", table)
        given = np.load(tmp_path / "table.npy", mmap_mode="r")
    elif form == "integers":
        given = table.astype(int)
    elif form == "list":
        given = table.tolist()
    else:
        given = pytest.importorskip("pandas").DataFrame(table)
    np.testing.assert_array_equal(spn.log_likelihood(given), expected)
    np.testing.assert_array_equal(
        spn.fit_em(given, max_iter=2, tol=np.inf).log_likelihood(table),
        spn.fit_em(table, max_iter=2, tol=np.inf).log_likelihood(table),
    )

from __future__ import annotations

import numpy as np
from numba import njit

from safespn import SPN, Gaussian
from safespn.engine import compiled_pass, kernels
from safespn.engine.kernel_arithmetic import EXP_CONSTANTS, exp_constants, exp_of_negative


@njit
def exp_of_array(x):
    result = np.empty_like(x)
    constants = exp_constants(EXP_CONSTANTS)
    for i in range(len(x)):
        result[i] = exp_of_negative(x[i], constants)
    return result


def test_exp_within_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = -np.concatenate(
        [rng.exponential(1, 200_000), rng.uniform(0, 707, 200_000), 10 ** rng.uniform(-300, 2, 50_000), [0]]
    )
    expected = np.exp(x)
    assert (np.abs(exp_of_array(x) - expected) / np.spacing(expected)).max() <= 2


def test_exp_beyond_its_range_is_zero():
    np.testing.assert_array_equal(exp_of_array(np.array([-708.5, -1e5, -1e308, -np.inf])), 0)


def test_kernels_on_disk_are_outdated_by_an_edit_of_any_file_compiled_into_them():
    compiled_pass.log_likelihood(SPN(Gaussian(0, 0, 1))._network, np.zeros((1, 1)))
    assert [f"default={kernels.SOURCES})" in str(signature) for signature in kernels.run.signatures] == [True]
    names = {path.stem for path in kernels.FILES}
    compiled = [value for value in vars(kernels).values() if hasattr(value, "py_func") and value is not kernels.run]
    assert {function.py_func.__module__.rpartition(".")[2] for function in compiled} <= names
    assert {"kernel_arithmetic", "kernel_upward", "kernel_downward", "evidence"} <= names

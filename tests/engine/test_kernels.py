from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum
from safespn.engine import backends, compiled_pass, kernels, numpy_pass
from safespn.engine.evidence import Evidence
from safespn.engine.kernel_arithmetic import CONSTANTS, exp_of_negative, log_of_positive
from safespn.engine.kernel_vectors import (
    CACHE_LINE,
    LANES,
    LENGTH,
    add_up,
    empty_aligned,
    fill,
    item,
    larger,
    load,
    negative_magnitude,
    store,
    total,
    where_at_least,
)


@njit
def of_array(function, x, constants):
    result = np.empty_like(x)
    for start in range(0, x.shape[1], LENGTH):
        store(result, 0, start, function(load(x, 0, start), constants))
    return result


def of_vectors(function, x):
    padded = np.ones((1, -(-len(x) // LENGTH) * LENGTH))
    padded[0, : len(x)] = x
    return of_array(function, padded, CONSTANTS)[0, : len(x)]


def test_exp_within_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = -np.concatenate(
        [rng.exponential(1, 200_000), rng.uniform(0, 707, 200_000), 10 ** rng.uniform(-300, 2, 50_000), [0]]
    )
    expected = np.exp(x)
    assert (np.abs(of_vectors(exp_of_negative, x) - expected) / np.spacing(expected)).max() <= 2


def test_exp_beyond_its_range_is_next_to_nothing():
    beyond = np.array([-708.5, -1e5, -1e308, -np.inf, np.nan])
    np.testing.assert_allclose(of_vectors(exp_of_negative, beyond), np.exp(-708), rtol=1e-15)


def test_log_within_one_unit_in_the_last_place():
    rng = np.random.default_rng(0)
    near_one = 1 + rng.choice([-1, 1], 100_000) * 10 ** rng.uniform(-16, -0.1, 100_000)
    ends = [1, 2, 0.5, np.sqrt(0.5), np.sqrt(2), np.finfo(float).tiny, np.finfo(float).max]
    x = np.concatenate([rng.uniform(0.5, 2, 200_000), 10 ** rng.uniform(-307, 308, 200_000), near_one, ends])
    expected = np.log(x)
    assert (np.abs(of_vectors(log_of_positive, x) - expected) <= np.spacing(np.abs(expected))).all()


def test_log_of_zero_is_finite_so_that_what_is_impossible_stays_so():
    assert np.isfinite(of_vectors(log_of_positive, np.zeros(3))).all()


@njit
def combine(x, result, sums):
    for start in range(0, x.shape[1], LENGTH):
        a, b, c = load(x, 0, start), load(x, 1, start), load(x, 2, start)
        store(result, 0, start, (a + 2.0) * b - c / (0.5 - b))
        store(result, 1, start, larger(a, b))
        store(result, 2, start, where_at_least(a, b, c, fill(item(x[0], 1))))
        store(result, 3, start, negative_magnitude(a))
        add_up(sums, 1, LANES, a)
    return total(load(x, 1, 0))


def test_vectors_compute_row_by_row():
    x = np.random.default_rng(0).normal(size=(3, 3 * LENGTH))
    x[0, 5], x[1, 7], x[0, 9:12] = np.nan, np.nan, x[1, 9:12]
    result, sums = np.empty((4, x.shape[1])), np.zeros((2, 3 * LANES))
    a, b, c = x
    assert np.isnan(combine(x, result, sums))
    np.testing.assert_allclose(result[0], (a + 2) * b - c / (0.5 - b))
    np.testing.assert_array_equal(result[1], np.where(a > b, a, b))
    np.testing.assert_array_equal(result[2], np.where(a >= b, c, a[1]))
    np.testing.assert_array_equal(result[3], -np.abs(a))
    assert np.isnan(sums[1, LANES : 2 * LANES]).sum() == 1
    assert not sums[0].any()
    x[0, 5] = x[1, 7] = 0
    sums[:] = 0
    np.testing.assert_allclose(combine(x, result, sums), b[:LENGTH].sum())
    np.testing.assert_allclose(sums.sum(), a.sum())


@pytest.mark.parametrize(
    "n_rows", [1, LENGTH - 1, LENGTH, LENGTH + 1, backends.KERNEL_BLOCK + 1, 3 * backends.KERNEL_BLOCK]
)
@pytest.mark.parametrize("missing", [False, True])
def test_rows_that_fill_no_whole_vector_or_block(n_rows, missing):
    rng = np.random.default_rng(n_rows)
    block = MultivariateGaussian([3, 4], [0, 1], [[1, 0.6], [0.6, 2]])
    parts = [
        Product([Gaussian(0, k, 1 + k), Poisson(1, 1.0 + k), Categorical(2, [0.5, 0.5]), block])
        for k, block in enumerate([block, block, MultivariateGaussian([3, 4], [1, 1], [[3, -1], [-1, 1]])])
    ]
    network = SPN(Sum(parts, [0.2, 0.3, 0.5]))._network
    rows = np.column_stack([rng.normal(size=n_rows), rng.poisson(2, n_rows), rng.integers(0, 2, n_rows)])
    rows = np.column_stack([rows, rng.normal(size=(n_rows, 2))])
    if missing:
        rows[rng.integers(0, n_rows, 4), [0, 1, 2, 3]] = np.nan
    features, weights = network.features(rows), rng.uniform(size=n_rows)
    np.testing.assert_allclose(
        compiled_pass.log_likelihood(network, features), numpy_pass.log_likelihood(network, features), rtol=1e-12
    )
    ours = compiled_pass.statistics(network, features, Evidence(), weights, False)
    expected = numpy_pass.statistics(network, features, Evidence(), weights, False)
    for name in ("objective", "edge_flow", "square", "linear", "table", "blocks"):
        np.testing.assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-10, atol=1e-12, err_msg=name)
    (of_blocks,) = expected.blocks
    assert (of_blocks[:, 0] > 0).all()


def test_kernels_on_disk_are_outdated_by_an_edit_of_any_file_compiled_into_them():
    network = SPN(Gaussian(0, 0, 1))._network
    compiled_pass.log_likelihood(network, network.features(np.zeros((1, 1))))
    assert [f"default={kernels.SOURCES})" in str(signature) for signature in kernels.run.signatures] == [True]
    names = {module.__name__.rpartition(".")[2] for module in kernels.MODULES}
    assert all(kernels._source(module) for module in kernels.MODULES)
    compiled = [value for value in vars(kernels).values() if hasattr(value, "py_func") and value is not kernels.run]
    assert {function.py_func.__module__.rpartition(".")[2] for function in compiled} <= names
    assert {"kernel_arithmetic", "kernel_upward", "kernel_downward", "kernel_vectors", "evidence"} <= names


@pytest.mark.parametrize("n_rows", [1, 3, 50])
def test_scratch_rows_begin_where_cache_lines_do(n_rows):
    several = [empty_aligned(n_rows, backends.KERNEL_BLOCK) for _ in range(20)]
    for scratch in several:
        scratch[:] = 1.0
        assert scratch.shape == (n_rows, backends.KERNEL_BLOCK)
        assert scratch.flags.c_contiguous
        assert scratch.ctypes.data % CACHE_LINE == 0
        assert scratch.strides[0] % CACHE_LINE == 0


def test_blocks_hold_whole_vectors():
    assert [n % LENGTH for n in (backends.KERNEL_BLOCK, compiled_pass.LONG_BLOCK)] == [0, 0]


OTHER_PROCESSOR = """
import llvmlite.binding
llvmlite.binding.get_host_cpu_features = llvmlite.binding.FeatureMap
import os
import subprocess
import sys

import numpy as np
import safespn
from safespn.engine import kernel_vectors, passes
from safespn.safety import contrast_kernel
assert kernel_vectors.LENGTH == 16
rng = np.random.default_rng(0)
rows = rng.normal(size=(300, 3))
rows[::17, 1] = np.nan
parts = [safespn.Product([safespn.Gaussian(c, k, 1 + k) for c in range(3)]) for k in range(4)]
classes = [safespn.Product([safespn.Sum(parts[k : k + 2], [0.3, 0.7])]) for k in (0, 2)]
network = safespn.SPN(safespn.Sum(classes, [0.4, 0.6]))._network
found = {}
for engine in ("numpy", "compiled"):
    with safespn.use_engine(engine):
        statistics = passes.statistics(network, rows)
        found[engine] = passes.log_joint(network, rows), statistics.edge_flow, statistics.square
for ours, theirs in zip(found["numpy"], found["compiled"]):
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
"""


@pytest.mark.slow
def test_processors_without_avx_512_have_shorter_vectors(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", OTHER_PROCESSOR], env=environment, check=True)

from __future__ import annotations

import numpy as np

from safespn import SPN, Gaussian
from safespn.engine import backends, compiled_pass, numpy_pass


def test_work_in_numpy_adds_up_until_the_kernels_pay(monkeypatch):
    structure = SPN(Gaussian(0, 0, 1))._structure
    monkeypatch.setattr(backends._State, "loaded", False)
    monkeypatch.setattr(backends._State, "work_in_numpy", 0.0)
    monkeypatch.setattr(backends, "_compiled_before", lambda: True)
    small = int(backends.WORK_TO_LOAD / 8)
    assert [backends.choose(structure, small) for _ in range(4)] == [numpy_pass] * 4
    assert backends.choose(structure, small) is compiled_pass
    assert backends.choose(structure, 1) is compiled_pass


def test_cold_kernels_wait_for_more_work(monkeypatch, tmp_path):
    structure = SPN(Gaussian(0, 0, 1))._structure
    monkeypatch.setattr(backends._State, "loaded", False)
    monkeypatch.setattr(backends._State, "work_in_numpy", 0.0)
    monkeypatch.setattr(backends, "__file__", str(tmp_path / "backends.py"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(backends, "_compiled_before", backends._compiled_before.__wrapped__)
    assert backends.choose(structure, int(backends.WORK_TO_LOAD)) is numpy_pass
    assert backends.choose(structure, int(backends.WORK_TO_COMPILE)) is compiled_pass


def test_passes_of_one_fit_are_counted_once(monkeypatch):
    structure = SPN(Gaussian(0, 0, 1))._structure
    monkeypatch.setattr(backends._State, "loaded", False)
    monkeypatch.setattr(backends._State, "work_in_numpy", 0.0)
    monkeypatch.setattr(backends, "_compiled_before", lambda: False)
    rows = int(backends.WORK_TO_COMPILE / 2 / 200)
    assert all(backends.choose(structure, rows, n_passes=100) is numpy_pass for _ in range(100))


def test_kernels_next_to_the_package_do_not_count_where_numba_looks_elsewhere(monkeypatch, tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "kernels.run-1.py311.nbi").touch()
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(backends, "__file__", str(tmp_path / "backends.py"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert backends._compiled_before.__wrapped__()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert not backends._compiled_before.__wrapped__()


def test_both_passes_give_the_same_likelihood_to_the_user(backend):
    spn = SPN(Gaussian(0, 1, 4))
    np.testing.assert_allclose(spn.log_likelihood([[3.0]]), [-0.5 * np.log(8 * np.pi) - 0.5])

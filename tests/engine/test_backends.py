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


def test_both_passes_give_the_same_likelihood_to_the_user(backend):
    spn = SPN(Gaussian(0, 1, 4))
    np.testing.assert_allclose(spn.log_likelihood([[3.0]]), [-0.5 * np.log(8 * np.pi) - 0.5])

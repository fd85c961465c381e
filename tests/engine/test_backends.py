from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import safespn
from safespn import SPN, Gaussian, use_engine
from safespn.engine import backends, compiled_pass, kernels, numpy_pass


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


def test_the_engine_can_be_chosen(monkeypatch):
    structure = SPN(Gaussian(0, 0, 1))._structure
    engines = {"numpy": numpy_pass, "compiled": compiled_pass}
    for name, other in (("numpy", "compiled"), ("compiled", "numpy")):
        monkeypatch.setattr(backends._State, "loaded", name == "numpy")
        with use_engine(name):
            assert backends.choose(structure, 1) is engines[name]
            assert backends.is_compiled() == (name == "compiled")
            with use_engine("auto"):
                assert backends.choose(structure, 1) is engines[other]
            assert backends.choose(structure, 1) is engines[name]
        monkeypatch.setenv("SAFESPN_ENGINE", name)
        assert backends.choose(structure, 1) is engines[name]
        with use_engine(other):
            assert backends.choose(structure, 1) is engines[other]
    with pytest.raises(ValueError, match="use_engine: expected one of 'auto', 'numpy', 'compiled', got 'fast'"):
        use_engine("fast").__enter__()
    monkeypatch.setenv("SAFESPN_ENGINE", "gpu")
    with pytest.raises(ValueError, match=r"SAFESPN_ENGINE: expected one of 'auto', .* got 'gpu'"):
        SPN(Gaussian(0, 0, 1)).log_likelihood([[0.0]])


def test_without_numba_numpy_takes_its_place_with_one_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "safespn.engine.compiled_pass", None)
    monkeypatch.delattr("safespn.engine.compiled_pass")
    monkeypatch.setattr(backends._State, "work_in_numpy", 1e300)
    spn = SPN(Gaussian(0, 0, 1))
    with pytest.warns(RuntimeWarning, match="numba cannot be used, numpy takes its place") as caught:
        assert [spn.log_likelihood([[0.0]])[0] for _ in range(3)] == [pytest.approx(-0.5 * np.log(2 * np.pi))] * 3
    assert len(caught) == 1


TINY = """
from safespn.engine.compilation import compiled

@compiled
def double(x):
    return 2 * x
"""
USE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from safespn.engine import kernels
    from safespn.engine.tiny import double
    print(double(1), double(2), double(0.5), kernels.SOURCES)
print([str(each.message) for each in caught])
"""


@pytest.mark.parametrize("where", ["folder", "zip"])
def test_without_a_place_for_numbas_cache_there_is_one_warning(tmp_path, where):
    """Nowhere to write: the package is in a zip, or a file stands where its cache would be, and there is no home."""
    package = Path(safespn.__file__).parent
    copy = tmp_path / "copy"
    for file in package.rglob("*.py"):
        target = copy / file.relative_to(package.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    (copy / "safespn" / "engine" / "tiny.py").write_text(TINY)
    (copy / "safespn" / "engine" / "__pycache__").touch()
    if where == "zip":
        copy = Path(shutil.make_archive(str(tmp_path / "package"), "zip", copy))
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results, warned = done.stdout.splitlines()
    assert results == f"2 4 1.0 {kernels.SOURCES}"
    assert warned.count("compiled code cannot be cached on disk") == 1
    assert "NUMBA_CACHE_DIR" in warned


SAVE = """
import sys
import warnings
warnings.simplefilter("error")
sys.path.insert(0, sys.argv[1])
from tiny import double
print(double(1), sum(double.stats.cache_hits.values()))
"""


class Gone:
    """A type that the package no longer has, as after an upgrade."""


@pytest.mark.slow
def test_a_damaged_or_outdated_cache_is_written_anew(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run():
        arguments = [sys.executable, "-c", SAVE, str(tmp_path)]
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert run() == "2 0"
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    for content in (b"nonsense", pickle.dumps(numba.__version__) + pickle.dumps(Gone()).replace(b"Gone", b"gone")):
        index.write_bytes(content)
        assert run() == "2 0"
    assert run() == "2 1"

from __future__ import annotations

import pytest

from safespn.engine import backends


@pytest.fixture(autouse=True)
def _one_backend_per_test(monkeypatch):
    """Stay with the numpy pass, so that rounding does not depend on what other tests have done before."""
    monkeypatch.setattr(backends._State, "loaded", False)
    monkeypatch.setattr(backends._State, "work_in_numpy", float("-inf"))


@pytest.fixture(params=["numpy", "compiled"])
def backend(request, monkeypatch):
    """Run a test with the plain numpy pass and again with the compiled one."""
    monkeypatch.setattr(backends._State, "loaded", request.param == "compiled")
    return request.param

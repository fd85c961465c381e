from __future__ import annotations

import pytest

from safespn.engine import backends


@pytest.fixture(params=["numpy", "compiled"])
def backend(request, monkeypatch):
    """Run a test with the plain numpy pass and again with the compiled one."""
    monkeypatch.setattr(backends._State, "loaded", request.param == "compiled")
    monkeypatch.setattr(backends._State, "work_in_numpy", 0.0)
    monkeypatch.setattr(backends, "WORK_TO_LOAD", float("inf"))
    monkeypatch.setattr(backends, "WORK_TO_COMPILE", float("inf"))
    return request.param

from __future__ import annotations

import numpy as np

from safespn.rows.memory import MemoryRows
from safespn.safety.method import Method
from tests.safety.problems import supervised_problem


def test_the_report_makes_one_pass(monkeypatch):
    """Out of core, a pass reads the disk once more."""
    problem, supervised, _, rng = supervised_problem(0)
    method = Method("certified", "generative", "auto", pessimism=1.0, confidence=0.95, max_iter=5, tol=1e-5)
    fit = method.fit(problem, supervised, None, rng)
    tasks, run = [], MemoryRows.run
    monkeypatch.setattr(MemoryRows, "run", lambda *args: tasks.append(type(args[1]).__name__) or run(*args))
    report = method.report(problem, supervised, fit, "blocks")
    assert tasks == ["Assess"]
    np.testing.assert_allclose(report.worst_case, max(entry["worst_case"] for entry in fit.history), rtol=0.2)

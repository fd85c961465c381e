"""Two threads against one, per step of plain EM and of the certified fit, for every kind of network: ``threads.py``.

A step is a pass over 100,000 rows of 20 columns and the M-step. Besides the ratio of times, which needs a quiet
machine, it prints the one that processor times allow: what only the main thread does cannot be shared, the rest can.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from safespn import SafeSPNClassifier
from safespn.engine import backends
from safespn.engine.evidence import SoftLabelUpdateRule
from safespn.learning.parameters import m_step
from safespn.rows.memory import MemoryRows
from safespn.safety.problem import Comparison, Problem, ProblemSource
from safespn.safety.tasks import CertifiedEStep
from tables import SETTINGS, rows

RULE = SoftLabelUpdateRule(1.0, 0.05, 0.2)
NETWORKS = {"deep": SETTINGS, **{name: {"network": name, "random_state": 0} for name in ("blocks", "components")}}


def step_times(problem: Problem, start, certified: bool, n_steps: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Best wall time, processor time of all threads and of the main one, per step."""
    states = Comparison(problem, start).start if certified else None
    source, parameters, times = ProblemSource(problem), start, []
    for _ in range(n_steps):
        before = time.perf_counter(), time.process_time(), time.thread_time()
        if certified:
            result, states = problem.run(CertifiedEStep(parameters, RULE), states)
            statistics = result.statistics
        else:
            statistics = source.statistics(parameters)
        parameters = m_step(problem.structure, parameters, statistics, problem.prior)
        after = time.perf_counter(), time.process_time(), time.thread_time()
        times.append(np.subtract(after, before))
    return np.min(times, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    table, _, labels = rows(0, options.rows, 20)
    backends._State.loaded = True
    print(
        "| network | step | edges | one thread, s | ratio of times | main thread alone, ms | ratio by processor time |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, settings in NETWORKS.items():
        sample = SafeSPNClassifier(**{**settings, "max_iter": 1}).fit(table[:20_000], labels[:20_000])
        member = sample.supervised_.members_[0]
        for kind in ("EM", "certified"):
            one, two = (
                step_times(
                    Problem(member.structure, MemoryRows(table, labels, 2, n_jobs=n)),
                    member.parameters,
                    kind == "certified",
                    options.steps,
                )
                for n in (1, 2)
            )
            # With two threads the main one only adds up what the others return, and makes the M-step.
            by_processor = one[1] / (two[2] + (two[1] - two[2]) / 2)
            print(
                f"| {name} | {kind} | {member.structure.n_edges} | {one[1]:.3f} | {one[0] / two[0]:.2f} "
                f"| {1e3 * two[2]:.1f} | {by_processor:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Two threads against one, per step of plain EM and of the certified fit, for every kind of network: ``threads.py``.

A step is a pass over 100,000 rows of 20 columns and the M-step; steps of one and of two threads take turns. Besides
ratios of times, which need a quiet machine, it prints the one that processor times would allow if nobody waited.
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


def steps(problem: Problem, start, certified: bool):  # type: ignore[no-untyped-def]
    """Make one step after the other; yield wall time and processor time of each."""
    states = Comparison(problem, start).start if certified else None
    source, parameters = ProblemSource(problem), start
    while True:
        before = time.perf_counter(), time.process_time()
        if certified:
            result, states = problem.run(CertifiedEStep(parameters, RULE), states)
            statistics = result.statistics
        else:
            statistics = source.statistics(parameters)
        parameters = m_step(problem.structure, parameters, statistics, problem.prior)
        after = time.perf_counter(), time.process_time()
        yield np.subtract(after, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    table, _, labels = rows(0, options.rows, 20)
    backends._State.loaded = True
    print("| network | step | edges | one thread, ms | ratio of medians | ratio of best times | by processor time |")
    print("|---|---|---|---|---|---|---|")
    for name, settings in NETWORKS.items():
        sample = SafeSPNClassifier(**{**settings, "max_iter": 1}).fit(table[:20_000], labels[:20_000])
        member = sample.supervised_.members_[0]
        for kind in ("EM", "certified"):
            both = [
                steps(
                    Problem(member.structure, MemoryRows(table, labels, 2, n_jobs=n)),
                    member.parameters,
                    kind == "certified",
                )
                for n in (1, 2)
            ]
            # In turns, so that what else the machine does meets both; the first steps load what the others find.
            times = np.array([[next(of_threads) for of_threads in both] for _ in range(options.steps + 2)])[2:]
            one, two = np.median(times, axis=0)
            best = times[:, :, 0].min(axis=0)
            print(
                f"| {name} | {kind} | {member.structure.n_edges} | {1e3 * one[0]:.0f} | {one[0] / two[0]:.2f} "
                f"| {best[0] / best[1]:.2f} | {one[1] / (two[1] / 2):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Two threads against one, per step of plain EM and of the certified fit, for every kind of network: ``threads.py``.

A step is a pass over 100,000 rows of 20 columns and the M-step; one and two threads take turns of ten steps, so that
both find the processors awake, as a fit does. The ratio is the median over turns, with the lowest and the highest; that
of the best times is what a quiet machine would show.
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
STEPS_PER_TURN = 10
NETWORKS = {"deep": SETTINGS, **{name: {"network": name, "random_state": 0} for name in ("blocks", "components")}}


def steps(problem: Problem, start, certified: bool):  # type: ignore[no-untyped-def]
    """Make one step after the other; yield the time of each."""
    states = Comparison(problem, start).start if certified else None
    source, parameters = ProblemSource(problem), start
    while True:
        started = time.perf_counter()
        if certified:
            result, states = problem.run(CertifiedEStep(parameters, RULE), states)
            statistics = result.statistics
        else:
            statistics = source.statistics(parameters)
        parameters = m_step(problem.structure, parameters, statistics, problem.prior)
        yield time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    table, _, labels = rows(0, options.rows, 20)
    backends._State.loaded = True
    print("| network | step | edges | one thread, ms | two threads against one | turns from, to | best times |")
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
            # In turns, so that what else the machine does meets both; the first turn loads what the others find.
            turns = [
                [[next(of_threads) for _ in range(STEPS_PER_TURN)] for of_threads in both]
                for _ in range(1 + options.turns)
            ]
            medians, best = np.median(turns[1:], axis=2), np.min(turns[1:], axis=(0, 2))
            ratios = medians[:, 0] / medians[:, 1]
            print(
                f"| {name} | {kind} | {member.structure.n_edges} | {1e3 * np.median(medians[:, 0]):.0f} "
                f"| {np.median(ratios):.2f} | {ratios.min():.2f}, {ratios.max():.2f} | {best[0] / best[1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

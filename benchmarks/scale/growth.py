"""How the cost of a pass grows with rows, columns, edges and classes, and how large the messages of the reduction are.

A pass is one step of the certified fit (assess, update the soft labels, E-step) on rows in memory with one thread,
plus the M-step.
"""

from __future__ import annotations

import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from networks import learnspn_tree
from safespn import SPN
from safespn.class_networks.copies import copies
from safespn.engine import backends
from safespn.engine.evidence import SoftLabelUpdateRule
from safespn.learning.parameters import Prior, m_step
from safespn.network.leaves import LeafPrior
from safespn.rows.memory import MemoryRows
from safespn.safety.problem import Comparison, Problem
from safespn.safety.tasks import CertifiedEStep
from tables import rows

RULE = SoftLabelUpdateRule(1.0, 1.0, 0.5)


@dataclass
class Case:
    """A class network and rows for it; ``n_edges`` are those of each class."""

    n_rows: int = 100_000
    n_columns: int = 20
    n_edges: int = 500
    n_classes: int = 2

    def seconds(self) -> tuple[float, int, int]:
        """Best time of a pass, bytes of one message of the reduction, edges of the network."""
        table, _, labels = rows(0, self.n_rows, self.n_columns, self.n_classes)
        spn = SPN(copies(learnspn_tree(self.n_edges, self.n_columns).root, self.n_classes, tied=False))
        prior = Prior(0.0, LeafPrior(min_variance=0.01))
        problem = Problem(spn._structure, MemoryRows(table, labels, self.n_classes, n_jobs=1), prior)
        states = Comparison(problem, spn._parameters).start
        parameters, times, size = spn._parameters, [], 0
        for _ in range(2 if self.n_rows > 1_000_000 else 4):
            started = time.perf_counter()
            result, states = problem.run(CertifiedEStep(parameters, RULE), states)
            parameters = m_step(problem.structure, parameters, result.statistics, prior)
            times.append(time.perf_counter() - started)
            size = len(pickle.dumps(result))
        return min(times), size, spn.n_edges


def table_of(name: str, values: tuple[int, ...], **fixed: int) -> None:
    """Print the cost of a pass for some values of one size, and the exponent of its growth."""
    found = [Case(**{**fixed, name: value}).seconds() for value in values]
    exponent = np.polyfit(np.log(values), np.log([seconds for seconds, _, _ in found]), 1)[0]
    print(f"\n| {name[2:]} | " + " | ".join(f"{value:,}" for value in values) + " | exponent |")
    print("|---" * (len(values) + 2) + "|")
    print("| seconds per pass | " + " | ".join(f"{seconds:.3g}" for seconds, _, _ in found) + f" | {exponent:.3f} |")
    print("| message, kB | " + " | ".join(f"{size / 1e3:.0f}" for _, size, _ in found) + " | |")
    print("| edges in all | " + " | ".join(f"{edges:,}" for _, _, edges in found) + " | |", flush=True)


def main() -> None:
    backends._State.loaded = True
    Case(n_rows=1_000).seconds()
    table_of("n_rows", (10_000, 100_000, 1_000_000, 10_000_000))
    table_of("n_columns", (5, 10, 20, 40, 80))
    table_of("n_edges", (125, 250, 500, 1_000, 2_000, 4_000))
    table_of("n_classes", (2, 4, 8, 16))


if __name__ == "__main__":
    main()

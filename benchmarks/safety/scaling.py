"""How the time of a certified fit grows: with rows at a fixed structure, and with the edges of the network.

Ten EM steps (and the last stage) of the certified fit of two classes, one in a hundred rows labelled, one thread,
processor time, kernels loaded before.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from measure import use_compiled_pass
from networks import learnspn_tree, rows_of
from safespn import SPN
from safespn.class_networks.copies import copies, pseudo_data_prior
from safespn.learning.parameters import Prior
from safespn.network.leaves import LeafPrior
from safespn.rows.lockstep import run_in_lockstep
from safespn.rows.memory import MemoryRows
from safespn.safety.certified import certified_passes
from safespn.safety.certified_em import CertifiedEM
from safespn.safety.problem import Problem
from safespn.safety.supervised import fit_supervised

N_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
N_EDGES = (100, 300, 1_000, 3_000, 10_000)
N_COLUMNS = 16


def fit_seconds(n_rows: int, n_edges: int) -> tuple[float, int]:
    """Processor time of the semi-supervised fit, best of three, and the edges of the class network."""
    base = learnspn_tree(n_edges, N_COLUMNS)
    spn = SPN(copies(base.root, 2, tied=False))
    table = rows_of(base, n_rows)
    codes = (table[:, 0] > np.median(table[:, 0])).astype(np.intp)
    codes[:2] = (0, 1)
    codes[n_rows // 100 :] = -1
    pseudo_data = pseudo_data_prior(spn._structure, spn._parameters, table, 1.0, None)
    prior = Prior(0.0, LeafPrior(min_variance=0.01), pseudo_data)
    problem = Problem(spn._structure, MemoryRows(table, codes, 2, n_jobs=1), prior)
    supervised = fit_supervised(problem, spn._parameters, conditional=False, max_iter=10)
    times = []
    for _ in range(3):
        started = time.process_time()
        em = CertifiedEM(problem, supervised, n_passes=10)
        run_in_lockstep(problem.rows, [certified_passes(em, max_iter=10, tol=0.0)])
        times.append(time.process_time() - started)
    return min(times), spn.n_edges


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    use_compiled_pass()
    by_rows = [fit_seconds(n, 500)[0] for n in N_ROWS]
    by_edges, edges = zip(*[fit_seconds(5_000, n) for n in N_EDGES], strict=True)
    print("| certified fit | sizes | seconds | exponent |\n|---|---|---|---|")
    for what, sizes, seconds in (("rows", list(N_ROWS), by_rows), ("edges", list(edges), list(by_edges))):
        shown = ", ".join(f"{second:.3g}" for second in seconds)
        print(f"| {what} | {', '.join(f'{size:,}' for size in sizes)} | {shown} | {exponent(sizes, seconds):.3f} |")


if __name__ == "__main__":
    main()

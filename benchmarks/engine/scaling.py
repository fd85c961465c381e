"""Does the cost of a likelihood grow in proportion to rows and to edges?

The figure is the exponent: the slope of a straight line fitted by least squares to the log of the time of one whole
call (``log_likelihood``, one thread, processor time, best of several) against the log of the number of rows, or of
edges. Fixed costs of a call are inside. The networks have 32 columns and come from one generator, so that their mix of
leaves, products and sums is about the same at every size; only the smallest is little more than two products of leaves.
"""

from __future__ import annotations

import numpy as np

from measure import Figure, best_of, print_section, use_compiled_pass
from networks import learnspn_tree, rows_of

N_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
N_EDGES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
ROWS_FOR_EDGES = 4_096
SECONDS = 1.5


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def figure(what: str, sizes: list[int], times: list[float], per: float) -> Figure:
    slope = exponent(sizes, times)
    costs = ", ".join(f"{time * 1e9 / size / per:.2f}" for size, time in zip(sizes, times, strict=True))
    measured = f"{slope:.3f} (ns per edge and row: {costs})"
    return Figure(f"exponent in {what}, {sizes[0]:,} to {sizes[-1]:,}", "0.95 to 1.05", measured, 0.95 <= slope <= 1.05)


def main() -> None:
    use_compiled_pass()
    spn = learnspn_tree()
    table = rows_of(spn, N_ROWS[-1])
    spn.log_likelihood(table[:10])
    by_rows = [best_of(lambda n=n: spn.log_likelihood(table[:n], n_jobs=1), SECONDS) for n in N_ROWS]
    edges, by_edges = [], []
    for wanted in N_EDGES:
        network = learnspn_tree(wanted)
        rows = rows_of(spn, ROWS_FOR_EDGES)
        network.log_likelihood(rows[:10])
        edges.append(network.n_edges)
        by_edges.append(best_of(lambda: network.log_likelihood(rows, n_jobs=1), SECONDS))  # noqa: B023
    print_section(
        "scaling: likelihood, one thread",
        [
            figure("rows", list(N_ROWS), by_rows, spn.n_edges),
            figure("edges", edges, by_edges, ROWS_FOR_EDGES),
        ],
        [f"Edges are varied at {ROWS_FOR_EDGES:,} rows, rows at {spn.n_edges:,} edges."],
    )


if __name__ == "__main__":
    main()

"""A new process with an empty compile cache: import, make a network, 50 EM steps on 569 x 30 rows.

The rows are scikit-learn's breast cancer data. The network comes from ``safespn.learn_spn`` where there is one, else
from the benchmarks' generator at the size that LearnSPN gives on this table (1,564 edges). The clock runs from the
start of the process to its end, interpreter included.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from measure import Figure, in_new_process, print_section

ROUNDS = 3
CODE = f"""
import sys, time, warnings
start = time.perf_counter()
import safespn
imported = time.perf_counter()
from sklearn.datasets import load_breast_cancer
table = load_breast_cancer().data
if hasattr(safespn, "learn_spn"):
    how, spn = "learn_spn", safespn.learn_spn(table)
else:
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from networks import learnspn_tree
    how, spn = "the generator", learnspn_tree(1564, 30)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
learned = time.perf_counter()
warnings.simplefilter("ignore")
spn.fit_em(table, max_iter=50, tol=-1e300, variance_floor=1e-3)
end = time.perf_counter()
print(f"{{how}}, {{spn.n_edges}} edges|import {{imported - start:.2f}} s, network {{learned - imported:.2f}} s, "
      f"50 EM steps {{end - learned:.2f}} s")
"""


def main() -> None:
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            report = in_new_process(CODE, NUMBA_CACHE_DIR=cache)
            rounds.append((time.perf_counter() - start, report.strip()))
    seconds, report = min(rounds)
    how, parts = report.split("|")
    print_section(
        "cold start: 569 x 30 rows, nothing compiled before",
        [Figure(f"import, network ({how}) and 50 EM steps", "< 3 s", f"{seconds:.2f} s ({parts})", seconds < 3)],
    )


if __name__ == "__main__":
    main()

"""A new process with an empty compile cache: import, learn a network, 50 EM steps on 569 x 30 rows.

The rows are scikit-learn's breast cancer data, handed over as a file: networks need nothing of scikit-learn, so its
import counts for the estimator only. The clock runs from the start of the process to its end, interpreter included. A
second line has scikit-learn imported first, as in a program that uses both.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from measure import Figure, in_new_process, print_section

ROUNDS = 3
CODE = """
import time
start = time.perf_counter()
import safespn
imported = time.perf_counter()
import numpy as np
table = np.load({rows!r})
spn = safespn.learn_spn(table)
learned = time.perf_counter()
spn.fit_em(table, max_iter=50, tol=-1, min_variance=1e-3)
end = time.perf_counter()
print(f"{{spn.n_edges}} edges; import {{imported - start:.2f}} s, `learn_spn` {{learned - imported:.2f}} s, "
      f"50 EM steps {{end - learned:.2f}} s")
"""


def fastest(code: str) -> tuple[float, str]:
    """Shortest time of several new processes, in seconds, and what that one printed."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            report = in_new_process(code, NUMBA_CACHE_DIR=cache)
            rounds.append((time.perf_counter() - start, report.strip()))
    return min(rounds)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = str(Path(folder, "rows.npy"))
        np.save(rows, load_breast_cancer().data)
        code = CODE.format(rows=rows)
        seconds, report = fastest(code)
        beside, report_beside = fastest("import sklearn\n" + code)
    print_section(
        "cold start: 569 x 30 rows, nothing compiled before",
        [
            Figure("import, `learn_spn` and 50 EM steps", "< 3 s", f"{seconds:.2f} s ({report})", seconds < 3),
            Figure("the same after `import sklearn`", "", f"{beside:.2f} s ({report_beside})"),
        ],
    )


if __name__ == "__main__":
    main()

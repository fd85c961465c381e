"""What small things cost: a likelihood call on 300 rows, the import of the package, and what two threads gain.

* Call: the time of a call on 300 rows less 300 times the cost per row on 100,000 rows, kernels warm.
* Import: ``import safespn`` and ``import sklearn`` in new processes, in turns, each the best of several; the time is
  that of the import statement, taken inside the process.
* Threads: ``n_jobs=1`` against ``n_jobs=2`` on 100,000 rows, wall time, in turns; the shortest of each. Two cores must
  be free: a control, two threads that only compute checksums, says how many were. Without two there is no verdict.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

from measure import Figure, best_of, in_new_process, print_section, use_compiled_pass
from networks import learnspn_tree, rows_of
from safespn import SPN
from safespn.typing import FloatArray

ROUNDS_OF_IMPORT = 9
ROUNDS_OF_THREADS = 6
CORES_FOR_VERDICT = 1.9


def import_time(package: str) -> float:
    code = f"import time; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
    return float(in_new_process(code))


def threads(spn: SPN, table: FloatArray) -> tuple[float, float, float]:
    """Shortest wall time with one and with two threads, and the most cores that the control got."""
    rounds = [
        (
            best_of(lambda: spn.log_likelihood(table, n_jobs=1), 0.5, clock=time.perf_counter),
            best_of(lambda: spn.log_likelihood(table, n_jobs=2), 0.5, clock=time.perf_counter),
            free_cores(),
        )
        for _ in range(ROUNDS_OF_THREADS)
    ]
    ones, twos, cores = zip(*rounds, strict=True)
    return min(ones), min(twos), max(cores)


def free_cores() -> float:
    """Cores that two threads get which have nothing to do with safespn and never wait."""
    wall, processor = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda data: hashlib.sha256(data).digest(), [bytes(50_000_000)] * 2))
    return (time.process_time() - processor) / (time.perf_counter() - wall)


def main() -> None:
    use_compiled_pass()
    spn = learnspn_tree()
    table = rows_of(spn, 100_000)
    small = table[:300].copy()
    spn.log_likelihood(small)
    call = best_of(lambda: spn.log_likelihood(small), 0.5)
    one, two, cores = threads(spn, table)
    work = 300 * best_of(lambda: spn.log_likelihood(table, n_jobs=1)) / len(table)
    times = [(import_time("safespn"), import_time("sklearn")) for _ in range(ROUNDS_OF_IMPORT)]
    ours, theirs = (min(column) for column in zip(*times, strict=True))
    print_section(
        f"overhead: {spn!r}",
        [
            Figure(
                "likelihood call on 300 rows, beyond the work itself",
                "< 1 ms",
                f"{(call - work) * 1e3:.3f} ms ({call * 1e3:.3f} ms, of which work {work * 1e3:.3f} ms)",
                call - work < 1e-3,
            ),
            Figure(
                "import safespn / import sklearn",
                "<= 1.5 x",
                f"{ours / theirs:.2f} x ({ours * 1e3:.0f} ms / {theirs * 1e3:.0f} ms)",
                ours <= 1.5 * theirs,
            ),
            Figure(
                "two threads / one, 100,000 rows",
                ">= 1.7 x",
                f"{one / two:.2f} x ({one * 1e3:.0f} ms / {two * 1e3:.0f} ms; the control got {cores:.2f} cores)",
                one / two >= 1.7 if cores > CORES_FOR_VERDICT or one / two >= 1.7 else None,
            ),
        ],
    )


if __name__ == "__main__":
    main()

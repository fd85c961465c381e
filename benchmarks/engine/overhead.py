"""What small things cost: a likelihood call on 300 rows, the import of the package, and what two threads gain.

* Call: the time of a call on 300 rows less 300 times the cost per row on 100,000 rows, kernels warm.
* Import: ``import safespn`` and ``import sklearn`` in new processes, in turns, each the best of several; the time is
  that of the import statement, taken inside the process.
* Threads: ``n_jobs=1`` against ``n_jobs=2`` on 100,000 rows, in turns. It needs two idle cores: tried several times,
  the best ratio counts, and all are printed.
"""

from __future__ import annotations

from measure import Figure, best_of, in_new_process, print_section, use_compiled_pass
from networks import learnspn_tree, rows_of

ROUNDS_OF_IMPORT = 9
ROUNDS_OF_THREADS = 6


def import_time(package: str) -> float:
    code = f"import time; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
    return float(in_new_process(code))


def main() -> None:
    use_compiled_pass()
    spn = learnspn_tree()
    table = rows_of(spn, 100_000)
    small = table[:300].copy()
    spn.log_likelihood(small)
    call = best_of(lambda: spn.log_likelihood(small), 0.5)
    rounds = []
    for _ in range(ROUNDS_OF_THREADS):
        one = best_of(lambda: spn.log_likelihood(table, n_jobs=1), 0.6)
        rounds.append((one, best_of(lambda: spn.log_likelihood(table, n_jobs=2), 0.6)))
    work = 300 * min(one for one, _ in rounds) / len(table)
    ratios = [one / two for one, two in rounds]
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
                f"{max(ratios):.2f} x (rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)})",
                max(ratios) >= 1.7,
            ),
        ],
    )


if __name__ == "__main__":
    main()

"""Worker processes: two against one on 5,000,000 rows, and Dask against the fit in memory on 1,000,000.

Every fit makes the same steps from the same sample; what is compared is the time of whole fits.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from tables import SETTINGS, rows

N_COLUMNS, ROWS_PER_BLOCK = 20, 250_000
MAX_ITER, REPEATS = 25, 5
WORKERS = {
    # Memory that workers give back after every small array must be fetched again for the next one.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2_000_000_000,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1_000_000_000,
    # All tasks of a pass are equal, and their rows and soft labels are large.
    "distributed.scheduler.work-stealing": False,
    # A profile of every worker, a hundred times a second, takes Python away from the tasks.
    "distributed.worker.profile.enabled": False,
}
FITS = {
    "two threads in memory": (0, 2),
    "one worker": (1, 1),
    "two workers": (2, 1),
    "two workers of two threads": (2, 2),
}
"""Worker processes, zero for the fit in memory, and threads of each."""


def seconds_of(workers: int, threads: int, n_rows: int) -> tuple[float, int, float]:
    """Time of a fit with so many workers, zero for the fit in memory; its iterations; its worst case."""
    from safespn import SafeSPNClassifier

    classifier = SafeSPNClassifier(max_iter=MAX_ITER, tol=0.0, persist="rows", **SETTINGS)
    warm_up = rows(0, 60_000, N_COLUMNS)
    if workers == 0:
        import numpy as np

        blocks = [rows(first, ROWS_PER_BLOCK, N_COLUMNS) for first in range(0, n_rows, ROWS_PER_BLOCK)]
        table, labels = (np.concatenate([block[part] for block in blocks]) for part in (0, 2))
        SafeSPNClassifier(max_iter=5, **SETTINGS).fit(warm_up[0], warm_up[2])
        started = time.perf_counter()
        classifier.fit(table, labels)
        return time.perf_counter() - started, classifier.n_iter_, classifier.safety_.worst_case
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    with (
        dask.config.set(WORKERS),
        LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        blocks = [dask.delayed(rows)(first, ROWS_PER_BLOCK, N_COLUMNS) for first in range(0, n_rows, ROWS_PER_BLOCK)]
        tables = [da.from_delayed(block[0], (ROWS_PER_BLOCK, N_COLUMNS), float) for block in blocks]
        labels = [da.from_delayed(block[2], (ROWS_PER_BLOCK,), int) for block in blocks]
        table, label = dask.persist(da.concatenate(tables), da.concatenate(labels))
        wait([table, label])
        SafeSPNClassifier(max_iter=5, **SETTINGS).fit(table[: 2 * ROWS_PER_BLOCK], label[: 2 * ROWS_PER_BLOCK])
        started = time.perf_counter()
        classifier.fit(table, label)
        return time.perf_counter() - started, classifier.n_iter_, classifier.safety_.worst_case


def measure(name: str, n_rows: int) -> float:
    """Measure in a process of its own, so that nothing is warm but what each warms itself."""
    command = [sys.executable, __file__, "--one", *map(str, FITS[name]), str(n_rows)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, n_iter, worst_case = float(words[-3]), int(words[-2]), float(words[-1])
    print(f"| {n_rows:,} | {name} | {seconds:.1f} | {n_iter} | {worst_case:.6f} |", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, type=int, help="measure one fit: workers, threads of each, rows")
    arguments = parser.parse_args()
    if arguments.one:
        print(*seconds_of(*arguments.one))
        return
    in_memory, one, two, two_of_two = FITS
    print("| rows | fit | seconds | iterations | worst case |\n|---|---|---|---|---|")
    speed = measure(one, 5_000_000) / measure(two, 5_000_000)
    # In turns, so that what else the machine does meets all of them.
    turns = [[measure(name, 1_000_000) for name in (in_memory, two, two_of_two)] for _ in range(REPEATS)]
    seconds = [median(of_fit) for of_fit in zip(*turns, strict=True)]
    print(f"\n| figure | measured |\n|---|---|\n| two workers against one | {speed:.2f} times the speed |")
    for name, of_fit in zip((two, two_of_two), seconds[1:], strict=True):
        print(f"| {name} against memory, medians of {REPEATS} | {100 * (of_fit / seconds[0] - 1):+.0f} % time |")


if __name__ == "__main__":
    main()

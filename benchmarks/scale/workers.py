"""Worker processes: two against one on 5,000,000 rows, and Dask against the fit in memory on 1,000,000.

Every fit makes the same steps from the same sample; what is compared is the time of whole fits.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from tables import SETTINGS, rows

N_COLUMNS, ROWS_PER_BLOCK = 20, 250_000
WORKERS = {
    # Memory that workers give back after every small array must be fetched again for the next one.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2_000_000_000,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1_000_000_000,
    # All tasks of a pass are equal, and their rows and soft labels are large.
    "distributed.scheduler.work-stealing": False,
}
FITS = {"memory": 0, "one worker": 1, "two workers": 2}


def seconds_of(workers: int, n_rows: int, max_iter: int) -> tuple[float, int, float]:
    """Time of a fit with so many workers, zero for the fit in memory; its iterations; its worst case."""
    from safespn import SafeSPNClassifier

    classifier = SafeSPNClassifier(max_iter=max_iter, tol=0.0, persist="rows", **SETTINGS)
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
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
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


def measure(name: str, n_rows: int, max_iter: int) -> tuple[float, int, float]:
    """Measure in a process of its own, so that nothing is warm but what each warms itself."""
    command = [sys.executable, __file__, "--one", str(FITS[name]), str(n_rows), str(max_iter)]
    seconds, n_iter, worst_case = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[
        -3:
    ]
    return float(seconds), int(n_iter), float(worst_case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, type=int, help="measure one fit: workers, rows, iterations")
    arguments = parser.parse_args()
    if arguments.one:
        print(*seconds_of(*arguments.one))
        return
    print("| rows | fit | seconds | iterations | worst case |\n|---|---|---|---|---|")
    found = {}
    for n_rows, max_iter, names in (
        (5_000_000, 25, ("one worker", "two workers")),
        (1_000_000, 25, ("memory", "two workers")),
    ):
        for name in names:
            found[n_rows, name] = measure(name, n_rows, max_iter)
            seconds, n_iter, worst_case = found[n_rows, name]
            print(f"| {n_rows:,} | {name} | {seconds:.1f} | {n_iter} | {worst_case:.6f} |", flush=True)
    one, two = (found[5_000_000, name][0] for name in ("one worker", "two workers"))
    memory, dask_ = (found[1_000_000, name][0] for name in ("memory", "two workers"))
    print(f"\n| figure | measured |\n|---|---|\n| two workers against one | {one / two:.2f} times the speed |")
    print(f"| two workers against two threads in memory | {100 * (dask_ / memory - 1):+.0f} % time |")


if __name__ == "__main__":
    main()

"""Worker processes: two against one on 5,000,000 rows, and Dask against the fit in memory on 1,000,000.

Every fit makes the same steps from the same sample; what is compared is the time of whole fits, of a single network
and, on 1,000,000 rows, of the default committee.
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
REPEATS = 5
MODELS = {
    "network": {"max_iter": 25, "tol": 0.0, **SETTINGS},
    "committee": {"sample_size": SETTINGS["sample_size"], "random_state": 0},
}
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


def seconds_of(model: str, workers: int, threads: int, n_rows: int) -> tuple[float, int, float]:
    """Time of a fit with so many workers, zero for the fit in memory; its iterations; its worst case."""
    from safespn import SafeSPNClassifier

    classifier = SafeSPNClassifier(persist="rows", **MODELS[model])
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


def measure(model: str, name: str, n_rows: int) -> float:
    """Measure in a process of its own, so that nothing is warm but what each warms itself."""
    command = [sys.executable, __file__, "--one", model, *map(str, FITS[name]), str(n_rows)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, n_iter, worst_case = float(words[-3]), int(words[-2]), float(words[-1])
    print(f"| {n_rows:,} | {model} | {name} | {seconds:.1f} | {n_iter} | {worst_case:.6f} |", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=4, help="measure one fit: model, workers, threads of each, rows")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    arguments = parser.parse_args()
    if arguments.one:
        print(*seconds_of(arguments.one[0], *map(int, arguments.one[1:])))
        return
    in_memory, one, two, two_of_two = FITS
    print("| rows | model | fit | seconds | iterations | worst case |\n|---|---|---|---|---|---|")
    figures = {}
    for model in MODELS:
        # In turns, so that what else the machine does meets all of them.
        compared = (in_memory, two, two_of_two)
        turns = [[measure(model, name, 1_000_000) for name in compared] for _ in range(arguments.repeats)]
        seconds = [median(of_fit) for of_fit in zip(*turns, strict=True)]
        for name, of_fit in zip(compared[1:], seconds[1:], strict=True):
            figures[f"{model}: {name} against memory"] = f"{100 * (of_fit / seconds[0] - 1):+.0f} % time"
    speed = measure("network", one, 5_000_000) / measure("network", two, 5_000_000)
    figures["two workers against one"] = f"{speed:.2f} times the speed"
    print("\n| figure | measured |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in figures.items()))


if __name__ == "__main__":
    main()

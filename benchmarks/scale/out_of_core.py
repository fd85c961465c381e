"""20,000,000 rows of 10 columns in a Parquet file, fitted by two workers of 1 GB each: ``out_of_core.py [folder]``."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from tables import SETTINGS, write_parquet

N_ROWS, N_COLUMNS = 20_000_000, 10
MAX_ITER = 25


def largest_memory(dask_worker) -> int:  # type: ignore[no-untyped-def]
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from safespn import SafeSPNClassifier

    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        file = Path(folder) / "table.parquet"
        started = time.perf_counter()
        write_parquet(file, N_ROWS, N_COLUMNS)
        print(
            f"file of {file.stat().st_size / 2**20:.0f} MB written in {time.perf_counter() - started:.0f} s", flush=True
        )
        settings = {"distributed.worker.memory.terminate": 0.98}
        with (
            dask.config.set(settings),
            LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            table = dd.read_parquet(file, split_row_groups=1)
            classifier = SafeSPNClassifier(max_iter=MAX_ITER, tol=0.0, **SETTINGS)
            started = time.perf_counter()
            classifier.fit(table.drop(columns="y"), table["y"])
            seconds = time.perf_counter() - started
            peaks = client.run(largest_memory).values()
            n_kept = sum(1 for worker in client.scheduler_info(n_workers=-1)["workers"].values() if worker)
        print(f"\n| {N_ROWS:,} rows x {N_COLUMNS} columns from Parquet, 2 workers of 1 GB | measured |\n|---|---|")
        print(f"| size as float64 | {8 * N_ROWS * N_COLUMNS / 1e9:.1f} GB |")
        print(f"| partitions; workers alive at the end | {table.npartitions}; {n_kept} |")
        print(f"| fit, {classifier.n_iter_} iterations, {classifier.spn_.n_edges} edges | {seconds:.0f} s |")
        print(f"| peak memory of a worker | {max(peaks) / 1e6:.0f} MB |")
        print(f"| certified, worst case | {classifier.safety_.certified}, {classifier.safety_.worst_case:.4g} nats |")


if __name__ == "__main__":
    main()

"""20,000,000 rows of 10 columns in a Parquet file, fitted by two workers of 1 GB each: ``out_of_core.py [folder]``.

Twice in one run, with as many passes: rows read from the file again in every pass, and from a scratch folder.
"""

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


def fit(file: Path, scratch: Path | None) -> float:
    """Fit with new workers, print what was measured, and return the seconds per pass."""
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from safespn import SafeSPNClassifier

    with (
        dask.config.set({"distributed.worker.memory.terminate": 0.98}),
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        table = dd.read_parquet(file, split_row_groups=1)
        classifier = SafeSPNClassifier(max_iter=MAX_ITER, tol=0.0, scratch=scratch, **SETTINGS)
        started = time.perf_counter()
        classifier.fit(table.drop(columns="y"), table["y"])
        seconds = time.perf_counter() - started
        peaks = client.run(largest_memory).values()
        n_kept = sum(1 for worker in client.scheduler_info(n_workers=-1)["workers"].values() if worker)
    where = "read again in every pass" if scratch is None else "from a scratch folder"
    print(f"\n| {N_ROWS:,} rows x {N_COLUMNS} columns, 2 workers of 1 GB, rows {where} | measured |\n|---|---|")
    print(f"| partitions; workers alive at the end | {table.npartitions}; {n_kept} |")
    print(f"| fit, {classifier.n_iter_} iterations, {classifier.spn_.n_edges} edges | {seconds:.0f} s |")
    print(f"| peak memory of a worker | {max(peaks) / 1e6:.0f} MB |")
    safety = classifier.safety_
    print(f"| certified, worst case | {safety.certified}, {safety.worst_case:+.6g} nats |", flush=True)
    return seconds / classifier.n_iter_


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        file = Path(folder) / "table.parquet"
        started = time.perf_counter()
        write_parquet(file, N_ROWS, N_COLUMNS)
        print(
            f"file of {file.stat().st_size / 2**20:.0f} MB written in {time.perf_counter() - started:.0f} s", flush=True
        )
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        kept, read = fit(file, scratch), fit(file, None)
        print(f"\nseconds per pass: {kept:.1f} from the scratch folder, {read:.1f} read again, ratio {kept / read:.2f}")


if __name__ == "__main__":
    main()

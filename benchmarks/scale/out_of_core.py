"""20,000,000 rows of 10 columns in a Parquet file, fitted by two workers of 1 GB each, from a scratch folder.

``out_of_core.py [--folder DIR] [--read-again] [--earlier CHECKOUT]``; in the same run, with as many passes, rows may be
read from the file again in every pass, and the fit of an earlier version may be measured by its own script
(``git worktree add CHECKOUT 35aab8c``: the last version that made a certified fit by stages of falling temperature).
"""

from __future__ import annotations

import argparse
import os
import subprocess
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


def fit(file: Path, scratch: Path | None) -> None:
    """Fit with new workers and print what was measured."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where there are 5 GB of disk")
    parser.add_argument("--read-again", action="store_true")
    parser.add_argument("--earlier", type=Path, help="folder with an earlier version")
    options = parser.parse_args()
    if options.earlier is not None:
        script = options.earlier / "benchmarks" / "scale" / "out_of_core.py"
        command = [sys.executable, str(script), *([] if options.folder is None else [str(options.folder)])]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(options.earlier / "src")})
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder) / "table.parquet"
        started = time.perf_counter()
        write_parquet(file, N_ROWS, N_COLUMNS)
        print(
            f"file of {file.stat().st_size / 2**20:.0f} MB written in {time.perf_counter() - started:.0f} s", flush=True
        )
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        fit(file, scratch)
        if options.read_again:
            fit(file, None)


if __name__ == "__main__":
    main()

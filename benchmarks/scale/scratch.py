"""A table of single precision in a Parquet file, fitted from a scratch folder by two threads of one process.

``scratch.py 100_000_000 --max-iter 10 --network deep --folder DIR``; rows take about 40 bytes each in the file and 120
in the scratch folder. Everything is measured in a process of its own, writing the file aside.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from tables import SETTINGS, write_parquet

N_COLUMNS = 10
BYTES_PER_ROW = 200
"""Of free disk that a run asks for, a fifth of which is the file."""


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, each counted once however many names it has."""
    found = {}
    for file in folder.rglob("*"):
        try:
            status = file.lstat()
        except FileNotFoundError:
            continue
        found[status.st_ino] = status.st_size
    return sum(found.values())


def fit(file: Path, folder: Path, network: str, max_iter: int) -> None:
    """Fit and print what was measured."""
    import dask.dataframe as dd
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from safespn import SafeSPNClassifier
    from safespn.safety.progress import PassRecord, listening

    settings = SETTINGS if network == "deep" else {"random_state": 0, "sample_size": SETTINGS["sample_size"]}
    if network != "auto":
        settings = {**settings, "network": network}
    table = dd.read_parquet(file, split_row_groups=1)
    classifier = SafeSPNClassifier(max_iter=max_iter, tol=0.0, scratch=folder, **settings)
    ends, sizes = [time.perf_counter()], [0]
    started, processor, load = time.perf_counter(), time.process_time(), os.getloadavg()[0]
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("encoding rows, learning networks", total=max_iter)

        def show(record: PassRecord) -> None:
            ends.append(time.perf_counter())
            sizes.append(size_of(folder))
            bar.update(task, completed=record.number, description=str(record))
            if not bar.console.is_terminal:
                print(record, file=sys.stderr, flush=True)

        with listening(show):
            classifier.fit(table.drop(columns="y"), table["y"])
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    n_rows = sum(classifier.safety_.to_dict()[name] for name in ("n_labelled", "n_unlabelled"))
    passes = [later - earlier for earlier, later in pairwise(ends[1:])] or [0.0]
    report = classifier.safety_
    print(f"\n| {n_rows:,} rows x {N_COLUMNS} columns from Parquet, network {network!r} | measured |\n|---|---|")
    print(f"| fit, {len(ends) - 1} passes, {classifier.spn_.n_edges} edges | {seconds:.3g} s |")
    print(f"| processor time of all threads | {processor:.3g} s |")
    first, others = ends[1] - started, median(passes)
    print(f"| until the first pass was done; median of the others | {first:.3g} s; {others:.3g} s |")
    print(f"| peak memory of the process | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6:.0f} MB |")
    print(f"| largest scratch folder after a pass | {max(sizes) / 1e9:.2f} GB |")
    print(f"| certified, fallback, worst case | {report.certified}, {report.fallback}, {report.worst_case:+.6g} nats |")
    best = 0.0
    rising = []
    for entry in classifier.history_:
        best = max(best, entry["worst_case"])
        rising.append(f"{best:.4g}")
    print(f"| best worst case after each step | {', '.join(rising)} |")
    print(f"| load of the machine, two cores, before and after | {load:.1f}, {os.getloadavg()[0]:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_rows", type=int)
    parser.add_argument("--max-iter", type=int, default=25)
    parser.add_argument("--network", default="deep")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file is not None:
        fit(options.file, options.folder, options.network, options.max_iter)
        return
    free = shutil.disk_usage(options.folder).free
    if free < BYTES_PER_ROW * options.n_rows:
        print(
            f"skipped: {options.folder} has {free / 1e9:.0f} GB free, {BYTES_PER_ROW * options.n_rows / 1e9:.0f} asked"
        )
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        started = time.perf_counter()
        write_parquet(folder / "table.parquet", options.n_rows, N_COLUMNS, kind="float32")
        size = (folder / "table.parquet").stat().st_size
        print(f"file of {size / 1e9:.2f} GB written in {time.perf_counter() - started:.0f} s", flush=True)
        (folder / "scratch").mkdir()
        command = [sys.executable, __file__, str(options.n_rows), "--max-iter", str(options.max_iter)]
        command += [
            "--network",
            options.network,
            "--folder",
            str(folder / "scratch"),
            "--file",
            f"{folder}/table.parquet",
        ]
        subprocess.run(command, check=True)
        print(f"left in the scratch folder: {size_of(folder / 'scratch')} bytes")


if __name__ == "__main__":
    main()

"""Speed of structure learning: growth with the number of rows, cost of truncation, and peers side by side.

python benchmarks/structure_speed.py [--peer-python PATH] [--peer-rows 10000] [--peer-limit 1200]

The table is a mixture of eight clusters with four common factors, 32 columns. Use one thread (OMP_NUM_THREADS=1).
Times are processor seconds, so that other programs on the machine hardly disturb them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from safespn import learn_spn

MIN_ROWS = 256
UNIVARIATE = {"multivariate": False, "min_rows": MIN_ROWS}


def make_table(n_rows, n_columns=32, seed=0):
    generator = np.random.default_rng(seed)
    centres, loadings = generator.normal(0, 2, (8, n_columns)), generator.normal(size=(4, n_columns))
    cluster = generator.integers(8, size=n_rows)
    factors = generator.normal(size=(n_rows, 4)) @ loadings
    return centres[cluster] + factors + generator.normal(size=(n_rows, n_columns))


def seconds(n_rows, repeats=1, **options):
    table = make_table(n_rows)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        learn_spn(table, **options)
        times.append(time.process_time() - start)
    return min(times)


def growth(title, **options):
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
    times = [seconds(size, repeats=3 if size <= 10_000 else 1, **options) for size in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    shown = ", ".join(f"{size}: {value:.2f} s" for size, value in zip(sizes, times, strict=True))
    print(f"{title}: {shown}; exponent {exponent:.2f}", flush=True)


def truncation():
    """Time both in turns: a busy machine disturbs long runs one after the other."""
    times = [
        (
            seconds(10_000, refine_iterations=0, **UNIVARIATE),
            seconds(10_000, refine_iterations=0, truncate="aic", **UNIVARIATE),
        )
        for _ in range(6)
    ]
    plain, cut = (min(column) for column in zip(*times, strict=True))
    print(
        f"AIC truncation at 10,000 rows: {plain:.2f} s without, {cut:.2f} s with ({100 * (cut / plain - 1):.0f} % more)"
    )


def processor_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peers(python, n_rows, limit):
    table = make_table(n_rows)
    own = {
        "univariate": seconds(n_rows, repeats=3, **UNIVARIATE),
        "multivariate": seconds(n_rows, repeats=3, min_rows=MIN_ROWS),
    }
    print(f"{n_rows} x 32, min_rows {MIN_ROWS}: " + ", ".join(f"{name} {value:.2f} s" for name, value in own.items()))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.npy"
        np.save(path, table)
        for peer in ("deeprob", "spflow"):
            command = [python, Path(__file__).parent / "peers" / "peer_speed.py", peer, path, str(MIN_ROWS)]
            before = processor_seconds_of_children()
            try:
                output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit).stdout
            except subprocess.TimeoutExpired:
                least = processor_seconds_of_children() - before
                print(f"{peer}: unfinished after {least:.0f} s, more than {least / own['univariate']:.0f} times ours")
                continue
            value = json.loads(output.splitlines()[-1])
            print(f"{peer}: {value:.1f} s, {value / own['univariate']:.0f} times ours", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="a Python that has deeprob-kit and SPFlow 1.1")
    parser.add_argument("--peer-rows", type=int, default=10_000, help="rows of the table that peers learn from")
    parser.add_argument(
        "--peer-limit", type=float, default=1200, help="seconds of wall time after which a peer is stopped"
    )
    arguments = parser.parse_args()
    growth("univariate leaves", **UNIVARIATE)
    growth("multivariate leaves", min_rows=MIN_ROWS)
    truncation()
    if arguments.peer_python:
        peers(arguments.peer_python, arguments.peer_rows, arguments.peer_limit)


if __name__ == "__main__":
    main()

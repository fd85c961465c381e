"""Nanoseconds per edge and row of the likelihood, ours and those of the same algorithm in C (reference.c).

Both run on one thread over the same rows, in turns. The C file is compiled here with the machine's gcc; without
``-fno-math-errno -fno-trapping-math`` it would not vectorise the exponential.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from measure import Figure, best_of, print_section, use_compiled_pass
from networks import learnspn_tree, rows_of
from safespn import SPN
from safespn.typing import FloatArray

FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]
BLOCK = 128
N_ROWS = 10_000


def compile_reference(folder: str) -> ctypes.CDLL:
    """Compile reference.c into a shared library."""
    library = Path(folder, "reference.so")
    source = Path(__file__).with_name("reference.c")
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, *FLAGS, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def in_c(library: ctypes.CDLL, spn: SPN, rows: FloatArray, result: FloatArray) -> object:
    """Return a function without arguments that computes the likelihood in C, into ``result``."""
    s, network = spn._structure, spn._network
    integers = (
        s.edge_start,
        s.edge_unit,
        s.child_start,
        s.child,
        s.sum_level_start,
        s.unit_level_start,
        s.square.start,
        s.square.slot,
        s.square.feature,
    )
    sizes = (len(rows), s.n_columns, s.n_levels, s.n_units, s.n_sums, BLOCK)
    floats = (network.log_weights, network.unit_constant, network.square_centre, network.square_scale, rows, result)
    arrays = [np.ascontiguousarray(array, np.int64) for array in integers] + list(floats)
    arguments = [ctypes.c_int64(size) for size in sizes] + [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def run(keep: object = arrays) -> None:
        library.log_likelihood(*arguments)

    return run


def main() -> None:
    if shutil.which(os.environ.get("CC", "gcc")) is None:
        print("\nreference: there is no C compiler here; skipped")
        return
    use_compiled_pass()
    spn = learnspn_tree()
    rows = rows_of(spn, N_ROWS)
    expected, result = spn.log_likelihood(rows, n_jobs=1), np.empty(N_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        run = in_c(compile_reference(folder), spn, rows, result)
        run()  # type: ignore[operator]
        pairs = [
            (best_of(lambda: spn.log_likelihood(rows, n_jobs=1), 0.5), best_of(run, 0.5))  # type: ignore[arg-type]
            for _ in range(4)
        ]
    ours, theirs = (min(times) * 1e9 / N_ROWS / spn.n_edges for times in zip(*pairs, strict=True))
    difference = float(np.abs(result - expected).max())
    print_section(
        f"reference: {spn!r}, {N_ROWS:,} rows, one thread",
        [
            Figure(
                "likelihood per edge and row",
                "< 0.6 ns, or <= 2 x C",
                f"{ours:.2f} ns; C {theirs:.2f} ns; ratio {ours / theirs:.2f}",
                ours < 0.6 or ours <= 2 * theirs,
            ),
            Figure("largest difference to C", "<= 1e-9", f"{difference:.1e}", difference <= 1e-9),
        ],
        [f"C compiled by gcc {' '.join(FLAGS)}; blocks of {BLOCK} rows."],
    )


if __name__ == "__main__":
    main()

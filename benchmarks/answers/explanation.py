"""Processor time of explanations by a default committee, on wdbc with 40 labels; ``SAFESPN_DATA`` names its folder.

One thread, compiled kernels; a first call that loads them is not counted.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import safespn
from safespn import SafeSPNClassifier, datasets

CASES = ((10, 1_000, "log odds"), (30, 100, "log odds"), (30, 100, "probability"))
"""Columns and rows, and what is split."""
N_LABELLED, TOLERANCE = 40, 0.02


def main() -> None:
    table = datasets.load("wdbc")
    order = np.random.default_rng(0).permutation(len(table.target))
    X, y = table.data[order], np.unique(table.target, return_inverse=True)[1][order]
    labels = np.where(np.arange(len(y)) < N_LABELLED, y, -1)
    print("| columns | rows | of | networks | seconds | largest standard error | rows within 0.02 | values add up to |")
    print("|---|---|---|---|---|---|---|---|")
    for n_columns, n_rows, of in CASES:
        with safespn.use_engine("compiled"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = SafeSPNClassifier(n_jobs=1, random_state=0).fit(X[:, :n_columns], labels)
            # The table has 569 rows: some come twice.
            rows = np.resize(X[:, :n_columns], (n_rows, n_columns))
            clf.explain(rows[:3])
            start = time.process_time()
            found = clf.explain(rows, tolerance=TOLERANCE, of=of)
            seconds = time.process_time() - start
        rest = np.abs(found.base + found.values.sum(axis=1) - found.total).max()
        print(
            f"| {n_columns} | {n_rows} | {of} | {len(clf.members_)} | {seconds:.1f} | {found.standard_error.max():.4f} "
            f"| {np.mean(found.standard_error.max(axis=1) <= TOLERANCE):.0%} | {rest:.0e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""How long does the report on a fit take, and how large is it?

    python benchmarks/report_time.py [--rows 5000] [--columns 30] [--labelled 300] [--profile]

A made-up table of two classes, a fifth of its columns categorical. Printed: processor time of
the fit and of the report beyond it, and the size of the page.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
import warnings

import numpy as np
import pandas as pd

from safespn import SafeSPNClassifier
from safespn.report import collect_report, render_report
from safespn.report.of_classifier import as_training_table


def made_up_table(n_rows: int, n_columns: int, n_labelled: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=n_rows)
    centres = rng.normal(size=(n_columns, 2)) * 0.4
    mixed = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns)
    cells = rng.normal(size=(n_rows, n_columns)) @ mixed + centres[:, classes].T
    frame = pd.DataFrame(cells, columns=[f"x{number}" for number in range(n_columns)])
    for number in range(0, n_columns, 5):
        frame[f"x{number}"] = pd.cut(frame[f"x{number}"], 4, labels=list("abcd")).astype(str)
    return frame, np.where(np.arange(n_rows) < n_labelled, np.where(classes == 1, "ill", "well"), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--labelled", type=int, default=300)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    small = made_up_table(200, options.columns, 40)
    SafeSPNClassifier(random_state=0).fit(*small)  # compiled code comes from the cache from here on
    frame, labels = made_up_table(options.rows, options.columns, options.labelled)
    started = time.process_time()
    classifier = SafeSPNClassifier(random_state=0, n_jobs=1).fit(frame, labels)
    fitted = time.process_time()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    page = render_report(collect_report(*as_training_table(classifier, frame, labels, "a table", "class")))
    profile.disable()
    print(
        f"fit {fitted - started:.1f} s, report {time.process_time() - fitted:.1f} s, {len(page.encode()) / 1e6:.2f} MB"
    )
    if options.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(70)


if __name__ == "__main__":
    main()

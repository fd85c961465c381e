"""What the tables of the wide comparison look like: sizes, base rate, and whether clusters agree with classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans

from safespn.experiments.outputs import ResultTable
from safespn.experiments.suite_protocol import SuiteTable, draw_suite_trial, numbers_of

if TYPE_CHECKING:
    import pandas as pd


def describe(table: SuiteTable) -> dict[str, float]:
    """Describe a table; what depends on rows is computed on the training rows of a draw of its own."""
    trial = draw_suite_trial(table, 0, 0)
    assert trial is not None  # without labels no table is too small
    codes = table.codes[trial.train]
    clusters = KMeans(table.n_classes, n_init=10, random_state=0).fit_predict(numbers_of(trial)[trial.train])
    counts = np.zeros((table.n_classes, table.n_classes))
    np.add.at(counts, (clusters, codes), 1)
    base = float(np.bincount(codes).max() / len(codes))
    purity = float(counts.max(axis=1).sum() / len(codes))
    categorical = table.features.select_dtypes(exclude="number").shape[1]
    return {
        "rows": len(table.codes),
        "training_rows": len(trial.train),
        "columns": table.features.shape[1],
        "categorical": categorical,
        "missing": float(table.features.isna().to_numpy().mean()),
        "classes": table.n_classes,
        "base_rate": base,
        "purity": (purity - base) / (1 - base),
    }


def data_table(descriptions: pd.DataFrame, folder: Path) -> ResultTable:
    """Sizes of the tables and, where the folder's ``index.csv`` names them, their sources."""
    sources = _sources(folder)
    rows = [
        [
            str(name),
            *(f"{row[column]:.0f}" for column in ("rows", "training_rows", "columns", "categorical")),
            f"{100 * row['missing']:.1f} %",
            f"{row['classes']:.0f}",
            f"{row['base_rate']:.2f}",
            f"{row['purity']:.2f}",
            *([sources.get(str(name), "-")] if sources else []),
        ]
        for name, row in descriptions.iterrows()
    ]
    header = [
        *("table", "rows", "training rows", "columns", "of these categorical", "missing cells", "classes"),
        *("base rate", "cluster purity", *(["source"] if sources else [])),
    ]
    note = (
        "Rows without those of classes with fewer than ten. Base rate: share of the commonest class. Cluster purity is "
        "scaled: 0 is the base rate, 1 are k-means clusters of one class each."
    )
    return ResultTable("suite_data", "The tables", note, header, rows, ["source"])


def _sources(folder: Path) -> dict[str, str]:
    import pandas as pd

    path = Path(folder, "index.csv")
    index: Any = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    return dict(zip(index["name"], index["source"], strict=True)) if {"name", "source"} <= {*index.columns} else {}

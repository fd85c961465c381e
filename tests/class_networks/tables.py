"""Small tables with some labels, and the candidates that every family learns from them."""

from __future__ import annotations

from functools import cache

import numpy as np

from safespn.class_networks.candidate import NetworkSettings
from safespn.class_networks.families import FAMILIES
from safespn.class_networks.folds import draw_folds
from safespn.class_networks.labelled_table import LabelledTable

SETTINGS = NetworkSettings(variance_floor=1e-4, prior_rows=0.3, max_depth=None, univariate=False, n_jobs=1)
SOURCES = {
    f"{family}-{source.__module__.rpartition('.')[2]}": source
    for family, sources in FAMILIES.items()
    for source in sources
}
N_ROWS = 240
"""Enough for the smallest number of propagating components."""


def labelled_table(cells, codes, n_states=None, weights=None):
    n_states = [0] * cells.shape[1] if n_states is None else n_states
    return LabelledTable.of_rows(cells, codes, weights, n_states, codes.max() + 1)


def partly(codes, n_labelled, rng):
    """Hide the codes of all rows but some of every class."""
    known = np.concatenate([rng.permutation(np.nonzero(codes == code)[0])[:n_labelled] for code in np.unique(codes)])
    result = np.full(len(codes), -1)
    result[known] = codes[known]
    return result


def real_rows(n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(N_ROWS) % n_classes
    cells = rng.normal(size=(N_ROWS, 2)) + 3.0 * np.column_stack([codes, codes == 1])
    return cells, partly(codes, 12, rng), [0, 0]


def mixed_rows(seed=0):
    """A column of numbers and one of three states, with gaps in both."""
    rng = np.random.default_rng(seed)
    codes = np.arange(N_ROWS) % 2
    cells = np.column_stack([rng.normal(2.0 * codes), (rng.integers(2, size=N_ROWS) + codes).astype(float)])
    cells[rng.random(cells.shape) < 0.15] = np.nan
    return cells, partly(codes, 12, rng), [0, 3]


ROWS = {"real": real_rows(), "mixed": mixed_rows(), "three classes": real_rows(3)}


@cache
def table_of(name):
    cells, codes, n_states = ROWS[name]
    return labelled_table(cells, codes, n_states)


def learn(source, table, folds=None):
    """All candidates of a source; folds and seeds are the same in every call."""
    folds = draw_folds(table, np.random.default_rng(1)) if folds is None else folds
    return list(SOURCES[source](table, folds, SETTINGS, np.random.default_rng(2)))

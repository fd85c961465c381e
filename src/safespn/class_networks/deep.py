"""Deep networks: LearnSPN on all rows, copied per class, as in the paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from safespn.class_networks.blocks import ClassCopies
from safespn.class_networks.candidate import Candidate, NetworkSettings
from safespn.class_networks.folds import Folds
from safespn.class_networks.labelled_table import LabelledTable
from safespn.learning.parameters import Prior
from safespn.structure_learning import learn_spn


def candidates(
    table: LabelledTable, folds: Folds, settings: NetworkSettings, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Yield the copied network."""
    spn = learn_spn(
        table.cells,
        leaves=["categorical" if states else "gaussian" for states in table.n_states],
        multivariate=not settings.univariate,
        max_depth=settings.max_depth,
        truncate="aic" if settings.max_depth is None else None,
        sample_weight=table.weights,
    )
    depth = "Akaike's depth" if settings.max_depth is None else f"depth {settings.max_depth}"
    copied = ClassCopies.of(table, spn.root, settings, shared=True)
    yield copied.candidate("deep", folds, f"LearnSPN, {depth}, {spn.n_nodes} nodes per class", Prior())

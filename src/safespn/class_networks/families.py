"""The families of class networks by name; a new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from safespn.class_networks import blocks, components, deep, forest, propagation
from safespn.class_networks.candidate import Candidate, NetworkSettings
from safespn.class_networks.folds import Folds
from safespn.class_networks.labelled_table import LabelledTable

Candidates = Callable[[LabelledTable, Folds, NetworkSettings, np.random.Generator], Iterator[Candidate]]

FAMILIES: dict[str, tuple[Candidates, ...]] = {
    "blocks": (blocks.candidates,),
    "components": (components.candidates, propagation.candidates),
    "forest": (forest.candidates,),
    "deep": (deep.candidates,),
}
AUTO = ("blocks", "components", "forest")
"""What a committee consists of by default."""


def all_candidates(
    families: Sequence[str],
    table: LabelledTable,
    folds: Folds,
    settings: NetworkSettings,
    generator: np.random.Generator,
) -> list[Candidate]:
    """Learn the candidates of some families."""
    # Each source of candidates draws from a generator of its own: leaving one out does not change the others.
    seeds = generator.integers(2**63, size=sum(len(sources) for sources in FAMILIES.values()))
    sources = [(family, source) for family, each in FAMILIES.items() for source in each]
    return [
        candidate
        for (family, source), seed in zip(sources, seeds.tolist(), strict=True)
        if family in families
        for candidate in source(table, folds, settings, np.random.default_rng(seed))
    ]

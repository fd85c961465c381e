"""Seeded networks for the benchmarks: Gaussian trees as LearnSPN makes them, and diagonal mixtures.

A LearnSPN tree grows by two moves in turn: cluster the rows (a sum), split off columns (a product). Here a tree starts
as a mixture of products of leaves; again and again the product with the most rows hands some of its columns to a
mixture of its own, until the tree has the wanted number of edges. A product keeps its other columns as leaves.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from safespn import SPN, Gaussian, Product, Sum
from safespn.network.nodes import Node
from safespn.typing import FloatArray

KEPT_COLUMNS = (0.6, 0.95)
"""Share of a product's columns that a mixture below it takes over."""
COLUMNS_TO_SPLIT = 4
"""Products with fewer leaves are not split further."""
EDGES_PER_CLUSTER = 570
"""Edges per child of the root: a larger network has more clusters at the root, not deeper ones."""


@dataclass
class _Draft:
    """A product while its tree grows: the mean and deviation of each column that is still a leaf, and its mixtures."""

    leaves: dict[int, tuple[float, float]]
    mixtures: list[tuple[list[_Draft], FloatArray]] = field(default_factory=list)

    def node(self) -> Node:
        leaves: list[Node] = [Gaussian(column, mean, scale**2) for column, (mean, scale) in self.leaves.items()]
        sums: list[Node] = [Sum([part.node() for part in parts], weights) for parts, weights in self.mixtures]
        return Product(leaves + sums) if len(leaves) + len(sums) > 1 else (leaves + sums)[0]


def learnspn_tree(n_edges: int = 1134, n_columns: int = 32, seed: int = 0) -> SPN:
    """Grow a Gaussian tree of about ``n_edges`` edges (never fewer) over ``n_columns`` columns."""
    rng = np.random.default_rng(seed)
    whole = {column: (float(rng.normal()), 1.0) for column in range(n_columns)}
    clusters, weights = _split(whole, max(2, n_edges // EDGES_PER_CLUSTER), rng)
    edges = len(clusters) * (1 + n_columns)
    number = count()
    heap = [(-weight, next(number), part) for part, weight in zip(clusters, weights, strict=True)]
    heapq.heapify(heap)
    while edges < n_edges and heap:
        rows, _, product = heapq.heappop(heap)
        columns = list(product.leaves)
        n_taken = max(2, int(len(columns) * rng.uniform(*KEPT_COLUMNS)))
        taken = {int(column): product.leaves.pop(int(column)) for column in rng.permutation(columns)[:n_taken]}
        parts, shares = _split(taken, int(rng.choice([2, 3], p=[0.7, 0.3])), rng)
        product.mixtures.append((parts, shares))
        edges += 1 - n_taken + len(parts) * (1 + n_taken)
        for share, part in [*zip(shares, parts, strict=True), (1.0, product)]:
            if len(part.leaves) >= COLUMNS_TO_SPLIT:
                heapq.heappush(heap, (rows * float(share), next(number), part))
    return SPN(Sum([part.node() for part in clusters], weights))


def diagonal_mixture(n_components: int = 30, n_columns: int = 32, seed: int = 0) -> SPN:
    """Make a mixture of products of Gaussians: scikit-learn's GaussianMixture with diagonal covariances."""
    rng = np.random.default_rng(seed)
    components = [
        Product([Gaussian(column, rng.normal(), rng.uniform(0.3, 2.0)) for column in range(n_columns)])
        for _ in range(n_components)
    ]
    return SPN(Sum(components, rng.dirichlet(np.full(n_components, 5.0))))


def rows_of(spn: SPN, n_rows: int, seed: int = 1) -> FloatArray:
    """Draw rows from the network itself, so that they look like data that it was learned from."""
    drawn = spn.sample(min(n_rows, 20_000), random_state=seed)
    return np.ascontiguousarray(np.tile(drawn, (-(-n_rows // len(drawn)), 1))[:n_rows])


def _split(
    leaves: dict[int, tuple[float, float]], n_clusters: int, rng: np.random.Generator
) -> tuple[list[_Draft], FloatArray]:
    """Make clusters: each has its own means, a little way off, and smaller deviations."""
    parts = [
        _Draft(
            {
                column: (mean + scale * float(rng.normal(0, 0.6)), scale * float(rng.uniform(0.75, 0.95)))
                for column, (mean, scale) in leaves.items()
            }
        )
        for _ in range(n_clusters)
    ]
    return parts, rng.dirichlet(np.full(n_clusters, 5.0))

"""Random networks and an independent, recursive evaluation of them."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum

KINDS = ("gaussian", "categorical", "poisson")


def random_leaf(rng, column, kind, n_states=3):
    if kind == "gaussian":
        return Gaussian(column, mean=rng.normal(), variance=rng.uniform(0.2, 2))
    if kind == "poisson":
        return Poisson(column, rate=rng.uniform(0.3, 5))
    return Categorical(column, rng.dirichlet(np.ones(n_states)))


def random_block(rng, columns):
    d = len(columns)
    root = rng.normal(size=(d, d + 2))
    return MultivariateGaussian(columns, rng.normal(size=d), root @ root.T / d)


def random_root(rng, kinds, *, depth=4, share=0.3):
    """A random network over ``len(kinds)`` columns; with probability ``share`` a part is one made before: a DAG."""
    made = {}

    def part(columns, depth):
        known = made.setdefault(columns, [])
        if known and rng.random() < share:
            return known[rng.integers(len(known))]
        known.append(build(columns, depth))
        return known[-1]

    def build(columns, depth):
        if len(columns) > 1 and all(kinds[column] == "gaussian" for column in columns) and rng.random() < 0.3:
            return random_block(rng, columns)
        if len(columns) == 1 and (depth <= 0 or rng.random() < 0.5):
            return random_leaf(rng, columns[0], kinds[columns[0]])
        if len(columns) > 1 and (depth <= 0 or rng.random() < 0.5):
            cut = 1 + rng.integers(len(columns) - 1)
            mixed = rng.permutation(columns).tolist()
            return Product([part(tuple(sorted(mixed[:cut])), depth - 1), part(tuple(sorted(mixed[cut:])), depth - 1)])
        n = int(rng.integers(1, 4))
        return Sum([part(columns, depth - 1) for _ in range(n)], rng.dirichlet(np.ones(n)))

    return build(tuple(range(len(kinds))), depth)


def random_table(rng, kinds, n_rows, *, missing=0.0, n_states=3):
    draw = {
        "gaussian": lambda: rng.normal(0, 1.5, n_rows),
        "poisson": lambda: rng.poisson(2.5, n_rows),
        "categorical": lambda: rng.integers(n_states, size=n_rows),
    }
    table = np.column_stack([draw[kind]() for kind in kinds]).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def random_problem(seed, *, n_rows=50, n_columns=4, missing=0.2, kinds=KINDS, **options):
    """A random network over mixed columns and a table for it."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(kinds, n_columns).tolist()
    if seed % 2 == 0:
        kinds[:3] = ["gaussian"] * 3
    return SPN(random_root(rng, kinds, **options)), random_table(rng, kinds, n_rows, missing=missing), rng


def brute_force(node, row):
    """Density of one row, straight from the definition, in the linear domain."""
    if isinstance(node, Sum):
        return math.fsum(w * brute_force(c, row) for w, c in zip(node.weights, node.children, strict=True))
    if isinstance(node, Product):
        return math.prod(brute_force(child, row) for child in node.children)
    if isinstance(node, MultivariateGaussian):
        seen = [position for position, column in enumerate(node.columns) if not math.isnan(row[column])]
        if not seen:
            return 1.0
        part = np.array(node.covariance)[np.ix_(seen, seen)]
        mean = np.array(node.mean)[seen]
        return stats.multivariate_normal.pdf(row[[node.columns[position] for position in seen]], mean, part)
    x = row[node.column]
    if math.isnan(x):
        return 1.0
    if isinstance(node, Gaussian):
        return stats.norm.pdf(x, node.mean, math.sqrt(node.variance))
    if isinstance(node, Poisson):
        return stats.poisson.pmf(x, node.rate)
    return node.probabilities[int(x)]

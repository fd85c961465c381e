"""Posteriors of mixtures along chains of subsets, against passes over rows with missing cells."""

from __future__ import annotations

import numpy as np
import pytest

import safespn
from safespn import Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum
from safespn.answers.coalitions import RowPosteriors
from safespn.answers.explanation import subsets_in_chains
from safespn.answers.gaussians import chains
from safespn.answers.mixtures import MixturePosteriors, mixture_of
from safespn.class_networks.candidate import compile_checked
from safespn.class_networks.committee import Member


def shared(tied=True, n_components=5):
    """Two classes over the same components, correlated columns among others."""
    rng = np.random.default_rng(0)
    components = []
    for number in range(n_components):
        covariance = np.array([[1.0, 0.6], [0.6, 2.0]]) * (1 if tied else 1 + number)
        gaussian = MultivariateGaussian([0, 2], rng.normal(size=2), covariance, tie=0 if tied else None)
        leaves = [gaussian, Gaussian(1, mean=rng.normal(), variance=0.5 + number)]
        leaves += [Categorical(3, rng.dirichlet(np.ones(3))), Poisson(4, rate=1 + number)]
        components.append(Product(leaves))
    return Sum([Sum(components, rng.dirichlet(np.ones(n_components))) for _ in range(2)], [0.3, 0.7])


def one_per_class(tied=False):
    return Sum(shared(tied).children[0].children[:3], [0.2, 0.3, 0.5])


def member_of(root, temperature=0.7):
    return Member("components", "", 1.0, temperature, 0.0, 1.0, *compile_checked(root))


def rows_with_gaps(n=30):
    rng = np.random.default_rng(1)
    cells = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.poisson(3, n)]).astype(float)
    cells[rng.random(cells.shape) < 0.2] = np.nan
    cells[0], cells[1, 0], cells[2, 1] = np.nan, 1e200, 80.0
    return cells


ROOTS = {"shared": shared(), "own": one_per_class(), "tied": one_per_class(tied=True)}
# Numbers of components that fill vectors of 16 or 32, and that do not.
ROOTS |= {f"{n} components": shared(n_components=n) for n in (7, 16, 17, 32, 33, 48)}


@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_posteriors_along_chains_are_those_of_rows_with_gaps(root, engine):
    member, cells = member_of(root), rows_with_gaps()
    mixture = mixture_of(member)
    assert mixture is not None
    subsets = np.concatenate([subsets_in_chains(5), np.random.default_rng(2).random((20, 5)) < 0.5])
    with safespn.use_engine(engine):
        expected = RowPosteriors(lambda known: member.evaluate(known)[1])(cells, subsets)
        for n_jobs in (1, 2):
            found = MixturePosteriors(member, mixture, n_jobs)(cells, subsets)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_other_networks_are_no_mixtures():
    (first, *_), leaf = shared().children, Gaussian(0, mean=0.0, variance=1.0)
    deep = Product([Sum([leaf, Gaussian(0, mean=1.0, variance=1.0)], [0.5, 0.5]), Gaussian(1, mean=0.0, variance=1.0)])
    assert mixture_of(member_of(Sum([deep, deep.children[0].children[0] and deep], [0.5, 0.5]))) is None
    assert mixture_of(member_of(shared(tied=False))) is None
    own = Sum([Sum(first.children[:2], [0.5, 0.5]), Sum(first.children[2:4], [0.5, 0.5])], [0.5, 0.5])
    assert mixture_of(member_of(own)) is None


def test_impossible_cells_say_nothing_about_the_classes():
    table = [Product([Categorical(0, [1.0, 0.0]), Gaussian(1, mean=m, variance=1.0)]) for m in (0.0, 1.0)]
    for root in (Sum(table, [0.2, 0.8]), Sum([Sum(table, w) for w in ([0.4, 0.6], [0.7, 0.3])], [0.2, 0.8])):
        member = member_of(root, temperature=1.0)
        found = MixturePosteriors(member, mixture_of(member), 1)(np.array([[1.0, 0.3]]), np.array([[True, True]]))
        np.testing.assert_allclose(np.exp(found[0, 0]), [0.2, 0.8])


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_all_subsets_are_in_as_few_chains_as_there_can_be(n):
    from math import comb

    subsets = subsets_in_chains(n)
    assert len(np.unique(subsets, axis=0)) == len(subsets) == 2**n
    assert len(chains(subsets)) <= comb(n, n // 2)

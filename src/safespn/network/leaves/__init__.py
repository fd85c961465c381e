"""Leaf families, one file each. To add one, write its file after the model of a neighbour and list it here."""

from __future__ import annotations

from safespn.network.leaves.categorical import Categorical
from safespn.network.leaves.density_tree import DensityTree
from safespn.network.leaves.family import LeafFamily, LeafPrior
from safespn.network.leaves.gaussian import Gaussian
from safespn.network.leaves.multivariate_gaussian import MultivariateGaussian
from safespn.network.leaves.poisson import Poisson
from safespn.network.nodes import Leaf

LEAF_TYPES: tuple[type[Leaf], ...] = (Gaussian, Categorical, Poisson, MultivariateGaussian, DensityTree)
"""Every leaf type, in the order that saved files number them: append only."""

__all__ = [
    "LEAF_TYPES",
    "Categorical",
    "DensityTree",
    "Gaussian",
    "LeafFamily",
    "LeafPrior",
    "MultivariateGaussian",
    "Poisson",
]

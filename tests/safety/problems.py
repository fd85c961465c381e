"""Small semi-supervised problems."""

from __future__ import annotations

import numpy as np

from safespn import SPN, Gaussian, MultivariateGaussian, Product, Sum
from safespn.learning.parameters import Prior
from safespn.network.leaves import LeafPrior
from safespn.rows.lockstep import run_in_lockstep
from safespn.rows.memory import MemoryRows
from safespn.safety.certified import certified_passes
from safespn.safety.problem import Problem
from safespn.safety.supervised import fit_supervised


def random_problem(seed, *, n_classes=2, n_labelled=12, n_unlabelled=60, n_columns=2, leaf="gaussian", weights=False):
    """Gaussian blobs that overlap; a product or a block per class; the true classes of the unlabelled rows."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1.5, (n_classes, n_columns))
    classes = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_labelled + n_unlabelled - n_classes)]
    )
    table = centres[classes] + rng.normal(size=(len(classes), n_columns))

    def part():
        if leaf == "block":
            return MultivariateGaussian(range(n_columns), table.mean(axis=0), np.cov(table.T))
        return Product([Gaussian(d, table[:, d].mean(), table[:, d].var()) for d in range(n_columns)])

    spn = SPN(Sum([part() for _ in range(n_classes)], [1 / n_classes] * n_classes))
    row_weights = rng.uniform(0.5, 2, len(table)) if weights else None
    prior = Prior(0.1, LeafPrior(min_variance=0.05))
    codes = np.where(np.arange(len(table)) < n_labelled, classes, -1)
    problem = Problem(spn._structure, MemoryRows(table, codes, n_classes, row_weights), prior)
    return problem, spn._parameters, classes[n_labelled:], rng


def supervised_problem(seed, conditional=False, **options):
    problem, start, truth, rng = random_problem(seed, **options)
    return problem, fit_supervised(problem, start, conditional=conditional, max_iter=50), truth, rng


def fit_certified(em, **options):
    """Run a certified fit alone."""
    return run_in_lockstep(em.problem.rows, [certified_passes(em, **options)])[0]

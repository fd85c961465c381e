from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from safespn import SPN, Categorical, Gaussian, Poisson, Product, Sum
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import Evidence, class_evidence
from safespn.learning.em import fit_em
from safespn.learning.parameters import Prior, PseudoDataPrior, constrain, log_prior, m_step
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves import LeafPrior
from tests.networks import random_problem


@pytest.mark.parametrize("seed", range(200))
def test_an_em_step_never_lowers_the_penalised_likelihood(seed):
    """With weights, missing cells, priors, floors and every third time hard assignments; no safeguard in between."""
    spn, table, rng = random_problem(seed, n_rows=40)
    structure = spn._structure
    weights = rng.uniform(0, 2, len(table))
    prior = Prior(rng.choice([0.0, 0.5]), LeafPrior(rng.choice([1e-6, 0.1]), rng.choice([0.0, 0.5])))
    if seed % 2:
        pseudo_data = PseudoDataPrior(
            spn._parameters,
            rng.uniform(0, 3, structure.n_edges),
            tuple(rng.uniform(0, 3, group.n_leaves) for group in structure.groups),
        )
        prior = replace(prior, pseudo_data=pseudo_data)
    parameters, last = constrain(structure, spn._parameters, prior), -np.inf
    for _ in range(10):
        statistics = passes.statistics(bind(structure, parameters), table, weights=weights, hard=seed % 3 == 0)
        value = statistics.objective + log_prior(structure, parameters, prior)
        assert value >= last - 1e-9
        last = value
        parameters = m_step(structure, parameters, statistics, prior)


def test_the_likelihood_rises_along_the_recorded_objective():
    spn, table, _ = random_problem(6, n_rows=200, depth=6)
    result = fit_em(TableSource(spn._structure, table), spn._parameters, tol=1e-6, max_iter=500)
    assert result.converged
    assert result.n_iter > 3
    assert (np.diff(result.objective) > 0).all()
    fitted = SPN._from_parameters(spn._structure, result.parameters)
    assert fitted.log_likelihood(table).mean() == pytest.approx(result.objective[-1])


def test_one_step_is_that_of_a_gaussian_mixture(backend):
    """Identical model, identical start, one EM step: the same weights, means and variances as scikit-learn's."""
    rng = np.random.default_rng(0)
    table = np.vstack([rng.normal(0, 1, (150, 5)), rng.normal(3, 2, (100, 5))])
    weights, means, variances = np.array([0.3, 0.7]), rng.normal(size=(2, 5)), rng.uniform(0.5, 2, (2, 5))
    peer = GaussianMixture(
        2,
        covariance_type="diag",
        max_iter=1,
        reg_covar=0,
        weights_init=weights,
        means_init=means,
        precisions_init=1 / variances,
    )
    with pytest.warns(ConvergenceWarning):
        peer.fit(table)
    parts = [Product([Gaussian(d, means[k, d], variances[k, d]) for d in range(5)]) for k in range(2)]
    with pytest.warns(ConvergenceWarning):
        root = SPN(Sum(parts, weights)).fit_em(table, max_iter=1, tol=0).root
    np.testing.assert_allclose(root.weights, peer.weights_)
    np.testing.assert_allclose([[leaf.mean for leaf in part.children] for part in root.children], peer.means_)
    np.testing.assert_allclose([[leaf.variance for leaf in part.children] for part in root.children], peer.covariances_)


def test_single_leaves_get_their_maximum_likelihood_estimates(backend):
    table = np.array([[1.0, 0, 2], [3.0, 2, 4], [np.nan, 2, np.nan], [8.0, np.nan, 0]])
    weights = np.array([1.0, 2.0, 5.0, 1.0])
    start = SPN(Product([Gaussian(0, 0, 1), Categorical(1, [0.2, 0.3, 0.5]), Poisson(2, 1.0)]))
    gaussian, categorical, poisson = start.fit_em(table, sample_weight=weights, tol=1e-9).root.children
    assert gaussian.mean == pytest.approx(15 / 4)
    assert gaussian.variance == pytest.approx((1 + 18 + 64) / 4 - (15 / 4) ** 2)
    assert categorical.probabilities == pytest.approx((1 / 8, 0, 7 / 8))
    assert poisson.rate == pytest.approx(10 / 4)


def test_class_evidence_fits_each_class_to_its_rows(backend):
    """Complete evidence on the root: each class network sees its own rows; a row of unknown class is shared."""
    table = np.array([[0.0], [2.0], [10.0], [14.0], [12.0]])
    spn = SPN(Sum([Gaussian(0, 0, 1), Gaussian(0, 10, 1)], [0.5, 0.5]))
    evidence = class_evidence([0, 0, 1, 1, -1], 5, 2)
    result = fit_em(TableSource(spn._structure, table, evidence), spn._parameters, tol=1e-9)
    root = SPN._from_parameters(spn._structure, result.parameters).root
    assert root.weights == pytest.approx((0.4, 0.6), abs=1e-6)
    assert [leaf.mean for leaf in root.children] == pytest.approx([1, 12], abs=1e-6)


def test_complete_soft_labels_are_weights(backend):
    """With tilt zero, class k sees row m with weight q_mk whatever the model thinks."""
    spn = SPN(Sum([Gaussian(0, 50, 1), Gaussian(0, -9, 1)], [0.5, 0.5]))
    soft_labels = np.array([[0.75, 0.25], [0.5, 0.5]])
    statistics = passes.statistics(spn._network, np.array([[0.0], [6.0]]), Evidence(np.log(soft_labels), tilt=0.0))
    root = SPN._from_parameters(spn._structure, m_step(spn._structure, spn._parameters, statistics, Prior())).root
    assert root.weights == pytest.approx((1.25 / 2, 0.75 / 2))
    assert [leaf.mean for leaf in root.children] == pytest.approx([3 / 1.25, 3 / 0.75])


def test_variance_floor_and_priors_hold(backend):
    table = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    spn = SPN(Sum([Product([Gaussian(0, m, 1), Categorical(1, [0.5, 0.5])]) for m in (0, 3)], [0.5, 0.5]))
    fitted = spn.fit_em(table, min_variance=np.array([0.01, 9.0]), weight_prior=1.0, category_prior=0.5, max_iter=1000)
    for part in fitted.root.children:
        assert part.children[0].variance >= 0.01 - 1e-15
        assert min(part.children[1].probabilities) > 0
    assert min(fitted.root.weights) >= 1 / 5 - 1e-12
    assert np.isfinite(spn.fit_em(table, max_iter=1000).log_likelihood(table)).all()


def test_unreached_parts_keep_their_parameters(backend):
    spn = SPN(Sum([Gaussian(0, 0, 1), Sum([Gaussian(0, 7, 2), Gaussian(0, 8, 3)], [0.4, 0.6])], [1.0, 0.0]))
    fitted = spn.fit_em([[1.0], [2.0]]).root
    assert fitted.weights == (1.0, 0.0)
    assert fitted.children[1].weights == pytest.approx((0.4, 0.6))
    assert fitted.children[1].children[0].mean == 7


def test_not_converging_is_a_typed_warning():
    spn, table, _ = random_problem(6, n_rows=200, depth=6)
    with pytest.warns(ConvergenceWarning, match=r"EM did not converge within max_iter=2 iterations \(tol=0\)"):
        spn.fit_em(table, max_iter=2, tol=0)


def test_the_original_network_is_not_changed():
    spn, table, _ = random_problem(1)
    before = str(spn)
    spn.fit_em(table, tol=1.0)
    assert str(spn) == before


def test_shared_leaves_stay_shared(backend):
    leaf = Gaussian(0, 0, 1)
    spn = SPN(Sum([Product([leaf, Gaussian(1, 0, 1)]), Product([leaf, Gaussian(1, 5, 1)])], [0.5, 0.5]))
    root = spn.fit_em(np.random.default_rng(0).normal(3, 1, (50, 2)), tol=1e-3).root
    assert root.children[0].children[0] is root.children[1].children[0]


@pytest.mark.parametrize("unit", [1e-50, 1.0, 1e50])
def test_a_leaf_that_sees_one_value_keeps_a_share_of_its_columns_variance(unit, backend):
    table = unit * np.concatenate([np.full(30, 2.0), np.random.default_rng(0).normal(size=30)])[:, None]
    spn = SPN(Sum([Gaussian(0, 2 * unit, unit**2), Gaussian(0, 0, unit**2)], [0.5, 0.5]))
    narrow, broad = spn.fit_em(table, max_iter=500).root.children
    assert narrow.variance == pytest.approx(1e-16 * table.var(), rel=1e-6)
    assert broad.variance > 0.1 * unit**2

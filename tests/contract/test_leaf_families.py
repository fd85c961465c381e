"""What every leaf family must obey; a new family joins by one line in LEAVES."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from safespn import SPN, Categorical, Gaussian, Poisson
from safespn.engine import passes
from safespn.learning.parameters import FreeCoordinates, Prior, maximise
from safespn.network.leaves import LEAF_TYPES, LeafPrior

LEAVES = {
    "Gaussian": (Gaussian(0, 1.5, 0.7), stats.norm(1.5, 0.7**0.5).logpdf, np.linspace(-3, 6, 50)),
    "Categorical": (Categorical(0, [0.2, 0.5, 0.3]), lambda x: np.log([0.2, 0.5, 0.3])[x.astype(int)], np.arange(3.0)),
    "Poisson": (Poisson(0, 2.3), stats.poisson(2.3).logpmf, np.arange(30.0)),
}


@pytest.fixture(params=[leaf_type.__name__ for leaf_type in LEAF_TYPES])
def leaf(request):
    return LEAVES[request.param]


def test_log_density_is_that_of_scipy(leaf, backend):
    node, reference, values = leaf
    np.testing.assert_allclose(SPN(node).log_likelihood(values[:, None]), reference(values), rtol=1e-12, atol=1e-12)
    of_family = node.family.log_density(np.tile(node.parameters, (len(values), 1)), values)
    np.testing.assert_allclose(of_family, reference(values), rtol=1e-12, atol=1e-12)


def test_description_and_parameters_are_inverse(leaf):
    node, *_ = leaf
    again = node.family.node(node.column, node.parameters)
    assert repr(again) == repr(node)
    np.testing.assert_array_equal(again.parameters, node.parameters)


def test_update_maximises_the_likelihood(leaf, backend):
    """No small step away from the update is better; weights and a missing cell included."""
    node, _, values = leaf
    rng = np.random.default_rng(0)
    table = np.append(rng.choice(values, 40), np.nan)[:, None]
    weights = rng.uniform(size=41)
    spn = SPN(node)
    statistics = passes.statistics(spn._network, table, weights=weights)
    best = maximise(spn._structure, spn._parameters, statistics, Prior())
    coordinates = FreeCoordinates(spn._structure, best)
    vector = coordinates.pack(best)

    def value(vector):
        return SPN._from_parameters(spn._structure, coordinates.unpack(vector)).log_likelihood(table) @ weights

    top = value(vector)
    for _ in range(30):
        assert value(vector + rng.normal(0, 0.02, len(vector))) <= top


def test_free_coordinates_are_invertible(leaf):
    node, *_ = leaf
    parameters = node.parameters[None]
    np.testing.assert_allclose(node.family.from_free(node.family.to_free(parameters)), parameters)
    bound = node.family.free_lower_bound(node.family.to_free(parameters), np.array([0]), LeafPrior(0.1))
    assert (bound <= node.family.to_free(parameters)).all()


def test_mode_is_the_most_probable_value(leaf):
    node, reference, values = leaf
    mode = node.family.mode(node.parameters[None])
    assert reference(mode)[0] >= reference(values).max() - 1e-12
    assert not node.family.domain(node.parameters.size).refuses(mode).any()


def test_draws_follow_the_density(leaf):
    node, reference, values = leaf
    draws = node.family.draw(np.tile(node.parameters, (20_000, 1)), np.random.default_rng(0))
    assert not node.family.domain(node.parameters.size).refuses(draws).any()
    if node.family.domain(node.parameters.size).kind == "real":
        assert stats.kstest(draws, stats.norm(1.5, 0.7**0.5).cdf).pvalue > 1e-4
    else:
        probability = np.exp(reference(values))
        frequent = probability > 1e-3
        counts = np.array([(draws == value).sum() for value in values[frequent]])
        assert stats.chisquare(counts, counts.sum() * probability[frequent] / probability[frequent].sum()).pvalue > 1e-4


def test_a_leaf_that_no_row_reaches_keeps_its_parameters(leaf, backend):
    node, *_ = leaf
    spn = SPN(node)
    statistics = passes.statistics(spn._network, np.array([[np.nan]]))
    after = maximise(spn._structure, spn._parameters, statistics, Prior())
    np.testing.assert_array_equal(after.leaves[0][0], node.parameters)


def test_degenerate_rows_leave_finite_parameters(leaf, backend):
    """A single value, again and again."""
    node, _, values = leaf
    fitted = SPN(node).fit_em(np.full((5, 1), values[0]), tol=1e-3)
    assert np.isfinite(fitted.root.parameters).all()
    assert not np.isnan(fitted.log_likelihood(values[:, None])).any()

import numpy as np
import pytest

from safespn import SPN, Product, learn_spn
from safespn.structure_learning.describe import Describer
from safespn.structure_learning.floors import variance_floors
from safespn.structure_learning.learnspn import GrowthSettings, grow
from safespn.structure_learning.table import prepare
from safespn.structure_learning.truncation import depths_by_score, information_criterion
from safespn.structure_learning.univariate import Regularisation, whole_table


@pytest.fixture(scope="module")
def deep():
    """A tree of several depths, what describes it, and its table."""
    generator = np.random.default_rng(0)
    side, inner = generator.integers(2, size=(2, 400))
    table = np.column_stack(
        [side * 5, side * 5, inner * side * 4, inner * side * 4, generator.integers(2, size=400) * 4]
    ) + generator.normal(size=(400, 5))
    prepared = prepare(table, None, "gaussian")
    floors = variance_floors(prepared, 1e-3)
    settings = GrowthSettings(5, None, 0.05, "cosine", "aic", 0)
    plan = grow(whole_table(prepared), settings, Regularisation(floors, 1.0, 0.1))
    return plan, Describer(prepared, floors, 0.5, 1.0), table


def test_every_depth_is_a_valid_network(deep):
    plan, describer, table = deep
    assert plan.depth >= 3
    likelihoods, sizes = [], []
    for depth in range(plan.depth + 1):
        spn = SPN(describer.describe(plan, depth).root)
        likelihoods.append(spn.log_likelihood(table).mean())
        sizes.append(spn.n_parameters)
        assert spn.n_columns == 5
        assert spn.depth <= 2 * depth + 2
    assert np.all(np.diff(sizes) >= 0)
    assert likelihoods[-1] > likelihoods[0] + 0.5


def test_depth_zero_is_a_product_of_leaves_over_all_rows(deep):
    plan, describer, table = deep
    root = describer.describe(plan, 0).root
    assert isinstance(root, Product)
    np.testing.assert_allclose([leaf.mean for leaf in root.children], table.mean(axis=0))
    np.testing.assert_allclose([leaf.variance for leaf in root.children], table.var(axis=0))


def test_own_depth_is_the_whole_tree(deep):
    plan, describer, table = deep
    whole, cut = (SPN(describer.describe(plan, depth).root) for depth in (None, plan.depth))
    np.testing.assert_array_equal(whole.log_likelihood(table), cut.log_likelihood(table))


@pytest.mark.parametrize(("criterion", "price"), [("aic", 1.0), ("bic", 0.5 * np.log(400))])
def test_scores_are_the_criterion(deep, criterion, price):
    plan, describer, table = deep
    best, scores = depths_by_score(plan, information_criterion(plan, describer, criterion))
    for depth, score in enumerate(scores):
        spn = SPN(describer.describe(plan, depth).root)
        assert score == pytest.approx(spn.log_likelihood(table).sum() - price * spn.n_parameters)
    assert best == np.argmax(scores)


def test_noise_is_cut_to_a_product():
    noise = np.random.default_rng(1).normal(size=(60, 3))
    spn = learn_spn(noise, alpha=0.9, criterion="aic", truncate="bic")
    assert isinstance(spn.root, Product)
    assert spn.n_nodes == 4

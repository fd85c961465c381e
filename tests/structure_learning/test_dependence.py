import numpy as np
import pytest
from scipy import stats

from safespn.structure_learning.dependence import independent_groups, pairwise_p_values
from safespn.structure_learning.table import prepare
from safespn.structure_learning.univariate import whole_table


def part_of(table, leaves="gaussian", sample_weight=None):
    return whole_table(prepare(table, sample_weight, leaves))


def noise(n_rows, n_columns, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


@pytest.mark.parametrize("method", ["cosine", "rdc", "rank"])
def test_independent_columns_are_rarely_linked(method):
    linked = sum(len(independent_groups(part_of(noise(100, 5, seed)), 0.05, method, 0)) < 5 for seed in range(100))
    assert linked <= 13  # 5 expected; more than 13 has a probability below 0.001


@pytest.mark.parametrize("method", ["cosine", "rdc", "rank"])
def test_p_values_of_independent_columns_are_uniform(method):
    part = part_of(noise(300, 40))
    p_values = pairwise_p_values(part, method, 0)[np.triu_indices(40, k=1)]
    assert stats.kstest(p_values, "uniform").statistic < 0.1


@pytest.mark.parametrize(("method", "sees_it"), [("cosine", True), ("rdc", True), ("rank", False)])
def test_non_linear_dependence(method, sees_it):
    x = noise(400, 3)
    x[200:, 0] = -x[:200, 0]
    table = np.column_stack([x[:, 0], x[:, 0] ** 2 + 0.1 * x[:, 1], x[:, 2]])
    groups = [group.tolist() for group in independent_groups(part_of(table), 0.01, method, 0)]
    assert ([0, 1] in groups) is sees_it
    assert [2] in groups


def test_groups_are_connected_components():
    x = noise(500, 4)
    table = np.column_stack([x[:, 0], x[:, 1], x[:, 0] + x[:, 2], x[:, 1] + x[:, 3], x[:, 2] + x[:, 0]])
    groups = independent_groups(part_of(table), 0.01, "cosine", 0)
    assert sorted(group.tolist() for group in groups) == [[0, 2, 4], [1, 3]]


def test_mixed_columns():
    generator = np.random.default_rng(0)
    code = generator.integers(3, size=400)
    table = np.column_stack(
        [code, generator.normal(size=400) + (code == 1) * 2, generator.poisson(3, 400), generator.integers(4, size=400)]
    )
    part = part_of(table, ["categorical", "gaussian", "poisson", "categorical"])
    groups = independent_groups(part, 0.01, "cosine", 0)
    assert sorted(group.tolist() for group in groups) == [[0, 1], [2], [3]]


def test_two_codes_agree_with_the_test_of_their_contingency_table():
    generator = np.random.default_rng(1)
    first = generator.integers(3, size=500)
    second = np.where(generator.random(500) < 0.15, first, generator.integers(3, size=500))
    expected = stats.chi2_contingency(stats.contingency.crosstab(first, second)[1], lambda_="log-likelihood").pvalue
    found = pairwise_p_values(part_of(np.column_stack([first, second]), "categorical"), "cosine", 0)[0, 1]
    assert np.log(found) == pytest.approx(np.log(expected), rel=0.15)


def test_missing_cells_leave_the_test_to_the_rows_that_have_both():
    x = noise(1000, 2)
    table = np.column_stack([x[:, 0], x[:, 0] + 0.5 * x[:, 1], x[:, 1] * 0 + noise(1000, 1, 5)[:, 0]])
    table[np.random.default_rng(2).random(table.shape) < 0.4] = np.nan
    groups = independent_groups(part_of(table), 0.01, "cosine", 0)
    assert sorted(group.tolist() for group in groups) == [[0, 1], [2]]


def test_a_constant_column_depends_on_nothing():
    table = np.column_stack([np.zeros(50), noise(50, 2)])
    part = part_of(table, ["categorical", "gaussian", "gaussian"])
    np.testing.assert_array_equal(pairwise_p_values(part, "cosine", 0)[2, :2], 1.0)

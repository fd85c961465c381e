import numpy as np
import pytest
from scipy import stats

from safespn.structure_learning.clustering import _em, find_two_clusters, looks_gaussian
from safespn.structure_learning.table import prepare
from safespn.structure_learning.univariate import Regularisation, whole_table


def part_of(table):
    return whole_table(prepare(table, None, "gaussian"))


def regularisation_of(part):
    return Regularisation(np.full(part.n_columns, 1e-3), 1.0, 0.1)


def two_clusters(n_rows=100):
    side = np.repeat([0, 1], n_rows // 2)
    return np.random.default_rng(0).normal(size=(n_rows, 3)) + 6 * side[:, None], side


def test_the_gain_is_that_of_the_mixture_over_one_product():
    table, side = two_clusters()
    part = part_of(table)
    regularisation = regularisation_of(part)
    single = part.fit(part.weights[:, None], regularisation)
    clusters = find_two_clusters(part, single, regularisation)
    found = clusters.second[np.argsort(np.lexsort(table.T[::-1]))]
    assert (found == side).all() or (found != side).all()
    whole = stats.norm.logpdf(part.real, single.mean, np.sqrt(single.variance)).sum()
    apart = sum(
        (stats.norm.logpdf(rows, rows.mean(axis=0), rows.std(axis=0)).sum(axis=1) + np.log(0.5)).sum()
        for rows in (part.real[clusters.second], part.real[~clusters.second])
    )
    # One pseudo-row of the broader leaves widens the clusters a little.
    assert clusters.gain == pytest.approx(apart - whole, rel=0.03)


def test_mixtures_fitted_side_by_side_are_those_fitted_alone():
    part = part_of(two_clusters()[0])
    regularisation = regularisation_of(part)
    single = part.fit(part.weights[:, None], regularisation)
    starts = np.random.default_rng(1).uniform(0.2, 0.8, size=(100, 3))
    together = _em(part, starts, single, regularisation, 1)
    for number in range(3):
        alone = _em(part, starts[:, number : number + 1], single, regularisation, 1)
        np.testing.assert_allclose(together.log_likelihood[number], alone.log_likelihood[0])
        np.testing.assert_allclose(together.second[:, number], alone.second[:, 0])


def test_one_normal_column_is_not_split_unless_a_value_repeats_among_its_own_rows():
    normal = stats.norm.ppf((np.arange(60) + 0.5) / 60)
    part = part_of(np.concatenate([normal, [5.0, 6.0]])[:, None])
    assert looks_gaussian(part.take(np.arange(60)))
    # Equal rows of one column become one of their total weight.
    repetitive = part_of(np.concatenate([normal, [5.0] * 3])[:, None])
    assert looks_gaussian(repetitive.take(np.arange(60)))
    assert not looks_gaussian(part_of(np.concatenate([normal, [normal[30]] * 2])[:, None]))

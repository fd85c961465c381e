import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import nan_euclidean_distances

from safespn import Gaussian, learn_spn
from safespn.network.nodes import walk
from safespn.structure_learning.floors import nearest_neighbour_floor, variance_floors
from safespn.structure_learning.table import prepare


def z_scores(table):
    return (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0)


def brute_force(distances):
    distances = np.where(np.isnan(distances) | np.eye(len(distances), dtype=bool), np.inf, distances)
    nearest = np.sort(distances.min(axis=1))
    percentiles = nearest[np.ceil(np.arange(1, 101) / 100 * len(nearest)).astype(int) - 1]
    return percentiles[percentiles > 0][0]


@pytest.mark.parametrize("n_rows", [7, 60, 300])
def test_bound_is_the_smallest_positive_percentile(n_rows):
    table = np.random.default_rng(0).normal(size=(n_rows, 3)) * [1.0, 100.0, 0.01]
    nearest = brute_force(cdist(z_scores(table), z_scores(table)))
    prepared = prepare(table, None, "gaussian")
    assert nearest_neighbour_floor(prepared, "distance") == pytest.approx(nearest)
    assert nearest_neighbour_floor(prepared, "squared distance") == pytest.approx(nearest**2 / 3)


def test_missing_cells_are_left_out_of_distances():
    table = np.random.default_rng(0).normal(size=(80, 4))
    table[np.random.default_rng(1).random(table.shape) < 0.2] = np.nan
    nearest = brute_force(nan_euclidean_distances(z_scores(table)))
    assert nearest_neighbour_floor(prepare(table, None, "gaussian"), "distance") == pytest.approx(nearest)


def test_repeated_rows_do_not_make_the_bound_zero():
    table = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 3, axis=0)
    assert nearest_neighbour_floor(prepare(table, None, "gaussian")) > 1e-6


def test_codes_and_counts_take_no_part():
    generator = np.random.default_rng(0)
    real, codes = generator.normal(size=(50, 2)), generator.integers(3, size=(50, 1))
    mixed = prepare(np.column_stack([real, codes]), None, ["gaussian", "gaussian", "categorical"])
    assert nearest_neighbour_floor(mixed) == pytest.approx(nearest_neighbour_floor(prepare(real, None, "gaussian")))
    assert nearest_neighbour_floor(prepare(codes, None, "categorical")) > 0


def test_every_leaf_of_a_network_respects_the_bound():
    generator = np.random.default_rng(0)
    cluster = np.repeat([0.0, 10.0, 20.0], 70)
    table = np.column_stack([cluster, cluster + generator.normal(0.0, 0.5, 210)]) * [1.0, 1e-3]
    floors = variance_floors(prepare(table, None, "gaussian"), 0.5) * table.var(axis=0)
    nodes = walk(learn_spn(table, leaves="gaussian", variance_floor=0.5).root)
    gaussians = [node for node in nodes if isinstance(node, Gaussian)]
    assert all(node.variance >= floors[node.column] * (1 - 1e-9) for node in gaussians)
    assert any(node.variance <= floors[node.column] * (1 + 1e-9) for node in gaussians)


@pytest.mark.parametrize("copies", [1, 100])
def test_repeated_values_cannot_raise_densities_beyond_the_default_bound(copies):
    generator = np.random.default_rng(0)
    table = np.column_stack([generator.integers(3, size=60) * 5.0, generator.choice([0.0, 0.0, 1.0, 7.0], size=60)])
    table = np.repeat(table, copies, axis=0)
    spn = learn_spn(table, leaves="gaussian")
    highest = -0.5 * np.log(2 * np.pi * 1e-6 * table.var(axis=0)).sum()
    assert (spn.log_likelihood(table) <= highest).all()
    # A value beside all repeated ones is unlikely, not impossible.
    assert spn.log_likelihood([[2.5, 3.0]])[0] > -np.log(len(table)) * table.shape[1] - 20


def test_the_default_bound_follows_the_unit_of_a_column():
    generator = np.random.default_rng(0)
    table = np.column_stack([np.where(generator.random(200) < 0.4, 0.0, generator.normal(3.0, 1.0, 200))])
    plain, scaled = (learn_spn(table * unit, leaves="gaussian").log_likelihood(table * unit) for unit in (1.0, 1e-4))
    np.testing.assert_allclose(scaled, plain + 4 * np.log(10), rtol=1e-6)

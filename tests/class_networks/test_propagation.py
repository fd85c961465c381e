from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_moons

from safespn.class_networks import propagation
from safespn.class_networks.folds import draw_folds
from safespn.engine import passes
from safespn.engine.bound import bind
from tests.class_networks.tables import SETTINGS, labelled_table, table_of


def moons(n_rows=400, per_class=3):
    cells, codes = make_moons(n_rows, noise=0.05, random_state=0)
    known = np.concatenate([np.nonzero(codes == code)[0][:per_class] for code in (0, 1)])
    partly = np.full(n_rows, -1)
    partly[known] = codes[known]
    return cells, codes, partly


@pytest.mark.parametrize(("n_rows", "least"), [(400, 0.97), (100, 0.9)])
def test_labels_travel_along_two_moons(n_rows, least):
    """From three labels of each moon to nearly all rows; without propagation the tables know their neighbours only."""
    cells, codes, partly = moons(n_rows)
    table = labelled_table(cells, partly)
    folds = draw_folds(table, np.random.default_rng(0))
    candidates = list(propagation.candidates(table, folds, SETTINGS, np.random.default_rng(0)))
    accuracy = []
    for candidate in candidates:
        network = candidate.build()
        joint = passes.log_joint(bind(network.structure, network.parameters), cells)
        accuracy.append((joint.argmax(axis=1) == codes).mean())
    assert max(accuracy) > least


@pytest.mark.parametrize(("n_rows", "sizes"), [(70, []), (80, [64]), (160, [64, 128]), (400, [64, 128, 256])])
def test_small_tables_have_fewer_sizes_and_correlated_ones_the_smallest_and_the_largest(n_rows, sizes):
    cells, _, partly = moons(n_rows)
    table = labelled_table(cells, partly)
    folds = draw_folds(table, np.random.default_rng(0))
    names = [each.size for each in propagation.candidates(table, folds, SETTINGS, np.random.default_rng(0))]
    for shape, expected in {"propagating": sizes, "correlated": sizes[:1] + sizes[1:][-1:]}.items():
        of_shape = [int(name.split()[0]) for name in names if name.split()[1] == shape]
        assert of_shape == [size for size in expected for _ in propagation.PERPLEXITIES]


@pytest.mark.parametrize(("name", "perplexity"), [("real", 2.0), ("real", 6.0), ("mixed", 6.0)])
def test_rows_belong_to_as_many_components_as_wanted(name, perplexity):
    table = table_of(name)
    cells = propagation._Cells(table, 64, 0)
    share = softmax(cells.log_density(table.cells, cells.width_for(perplexity)), axis=1)
    entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
    assert np.exp(entropy).mean() == pytest.approx(perplexity, rel=0.1)


def test_components_do_not_get_narrower_than_the_floor():
    """Rows with gaps belong to many components at any width."""
    table = table_of("mixed")
    cells = propagation._Cells(table, 64, 0)
    assert cells.width_for(2.0) == pytest.approx(propagation.WIDTH_FLOOR)


@pytest.mark.parametrize(("name", "is_correlated"), [("real", False), ("mixed", False), ("real", True)])
def test_the_network_has_the_responsibilities_that_labels_travelled_by(name, is_correlated):
    table = table_of(name)
    table = replace(table, cells=np.where(np.isnan(table.cells), table.mean, table.cells)) if is_correlated else table
    generator = np.random.default_rng(0)
    covariance = propagation._covariance_within_clusters(table, generator) if is_correlated else None
    cells = propagation._Cells(table, 64, 0, covariance)
    width = cells.width_for(2.0)
    complete = table.cells[~np.isnan(table.cells).any(axis=1)]
    # With a class for each component, class posteriors are responsibilities.
    network = cells.connected(width, SETTINGS, np.full((64, 64), 1e-12) + np.eye(64))
    by_network = softmax(passes.log_joint(bind(network.structure, network.parameters), complete), axis=1)
    np.testing.assert_allclose(by_network, softmax(cells.log_density(complete, width), axis=1), atol=1e-9)


def test_correlated_components_follow_a_diagonal():
    """Two thin parallel stripes, close beside the columns' spread and far apart across the correlation."""
    generator = np.random.default_rng(1)
    along, codes = generator.uniform(-3, 3, 400), np.arange(400) % 2
    cells = np.column_stack([along, along + 0.5 * codes]) + generator.normal(scale=0.03, size=(400, 2))
    table = labelled_table(cells, np.where(np.arange(400) < 8, codes, -1))
    folds = draw_folds(table, generator)
    accuracy = {}
    for candidate in propagation.candidates(table, folds, SETTINGS, generator):
        network = candidate.build()
        joint = passes.log_joint(bind(network.structure, network.parameters), cells)
        accuracy[candidate.size] = (joint.argmax(axis=1) == codes).mean()
    assert max(score for name, score in accuracy.items() if "correlated" in name) > 0.95

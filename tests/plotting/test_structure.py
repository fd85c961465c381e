from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum
from safespn.plotting import library, plot_structure
from safespn.plotting.layout import lay_out
from tests.networks import random_problem


def small_network():
    return Sum(
        [
            Product([Gaussian(0, 0.25, 1), Categorical(1, [0.9, 0.1])]),
            Product([Gaussian(0, 3, 1), Sum([Categorical(1, [0.2, 0.8]), Categorical(1, [0.5, 0.5])], [0.4, 0.6])]),
        ],
        [0.7, 0.3],
    )


def wide_network(n_columns=40):
    return Sum(
        [Product([Gaussian(column, mean, 1) for column in range(n_columns)]) for mean in (0, 1)],
        [0.99, 0.01],
    )


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_visible()]


def n_symbols(ax, name):
    return sum(len(collection.get_offsets()) for collection in ax.collections if collection.get_label() == name)


def n_lines(ax, name):
    return sum(len(collection.get_segments()) for collection in ax.collections if collection.get_label() == name)


def test_every_node_of_a_small_network_is_drawn_and_labelled():
    ax = SPN(small_network()).plot()
    assert (n_symbols(ax, "sum"), n_symbols(ax, "product")) == (2, 2)
    assert (n_lines(ax, "edges"), n_lines(ax, "extra edges")) == (8, 0)
    assert sorted(texts(ax)) == sorted(
        [
            "0.70",
            "0.30",
            "0.40",
            "0.60",
            "Gaussian: column 0 (mean 0.25, variance 1)",
            "Gaussian: column 0 (mean 3, variance 1)",
            "Categorical: column 1 (probabilities 0.9, 0.1)",
            "Categorical: column 1 (probabilities 0.2, 0.8)",
            "Categorical: column 1 (probabilities 0.5, 0.5)",
        ]
    )
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["sum", "product", "Gaussian", "Categorical"]


def test_edges_of_sums_are_as_wide_as_their_weights():
    ax = plot_structure(Sum([Gaussian(0, mean, 1) for mean in range(3)], [0.1, 0.2, 0.7]))
    first, second, third = ax.collections[0].get_linewidths()
    assert (third - second) / (second - first) == pytest.approx(5)


def test_names_of_columns_are_written_as_they_are():
    ax = plot_structure(small_network(), feature_names=np.array(["$cost$ in $", "x_1"]))
    labels = " ".join(texts(ax))
    assert "Gaussian: $cost$ in $" in labels
    assert "Categorical: x_1" in labels
    ax.figure.canvas.draw()


def test_shared_nodes_are_drawn_once():
    shared = Sum([Gaussian(1, 0, 1), Gaussian(1, 2, 1)], [0.5, 0.5])
    root = Sum([Product([Gaussian(0, mean, 1), shared]) for mean in (0, 1, 2)], [0.2, 0.3, 0.5])
    ax = plot_structure(root)
    assert n_symbols(ax, "sum") == 2
    assert sum(label.startswith("Gaussian: column 1") for label in texts(ax)) == 2
    assert n_lines(ax, "extra edges") == 2
    assert n_lines(ax, "edges") == len(lay_out(root, 100).marks) - 1


def test_a_child_named_twice_gets_one_edge():
    leaf = Gaussian(0, 0, 1)
    (link,) = lay_out(Sum([leaf, leaf], [0.25, 0.75]), 100).links
    assert link.weight == 1.0


def test_many_leaves_share_a_box():
    ax = plot_structure(wide_network())
    assert texts(ax) == ["0.99", "0.01", "40 Gaussian: columns 0–39", "40 Gaussian: columns 0–39"]
    names = [f"a name {column}" for column in range(40)]
    listed = texts(plot_structure(wide_network(), feature_names=names))[-1]
    assert listed.startswith("40 Gaussian: a name 0, a name 1, ")
    assert listed.endswith(", …")
    assert len(listed) < 80


def test_different_families_and_shared_leaves_keep_boxes_of_their_own():
    shared = Poisson(2, 1)
    several = [
        [Gaussian(0, m, 1), Gaussian(1, m, 1), shared, MultivariateGaussian([3, 4], [m, m], np.eye(2))] for m in (0, 1)
    ]
    root = Sum([Product(children) for children in several], [0.5, 0.5])
    marks = lay_out(root, max_nodes=9).marks
    assert sorted(len(mark.nodes) for mark in marks) == [1] * 6 + [2] * 2
    assert sum(mark.nodes == (shared,) for mark in marks) == 1


def test_what_is_least_probable_is_folded_first():
    layout = lay_out(wide_network(), 4)
    folded = [mark for mark in layout.marks if mark.n_hidden]
    assert [(mark.row, mark.n_hidden) for mark in folded] == [(pytest.approx(1.4), 40)]
    assert "… 40 nodes: columns 0–39" in texts(plot_structure(wide_network(), max_nodes=4))
    labels = texts(plot_structure(wide_network(), max_nodes=1, feature_names=["a"] * 40))
    assert sum(label.startswith("… 40 nodes: a, a,") for label in labels) == 2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("max_nodes", [10, 1000])
def test_every_layout_is_a_tree_of_marks_apart_from_each_other(seed, max_nodes):
    spn, _, _ = random_problem(seed, n_columns=6, depth=7)
    layout = lay_out(spn.root, max_nodes)
    assert len(layout.marks) == spn.n_nodes if max_nodes > spn.n_nodes else len(layout.marks) <= max_nodes
    places = {}
    for mark in layout.marks:
        places.setdefault(mark.depth, []).append(mark.row)
    for rows in places.values():
        assert np.diff(sorted(rows)).min(initial=np.inf) >= 1 - 1e-9
    owned = [link.child for link in layout.links if not link.is_extra]
    assert sorted(owned) == list(range(1, len(layout.marks)))
    assert all(layout.marks[link.parent].depth < layout.marks[link.child].depth for link in layout.links)


def test_labels_stay_inside_the_figure():
    for network in (small_network(), wide_network()):
        ax = plot_structure(network)
        right = ax.figure.bbox.x1
        assert all(text.get_window_extent().x1 <= right for text in ax.texts)


def test_given_axes_are_used_and_labels_shrink_to_fit_or_give_way():
    figure, (narrow, tiny) = plt.subplots(1, 2, figsize=(9, 3))
    assert plot_structure(small_network(), narrow) is narrow
    assert plt.get_fignums() == [figure.number]
    assert all(text.get_window_extent().x1 <= narrow.bbox.x1 for text in narrow.texts)
    tiny.set_position((0.5, 0.5, 0.1, 0.1))
    plot_structure(small_network(), tiny)
    assert not tiny.texts
    assert n_symbols(tiny, "Gaussian") == 2


def test_a_single_leaf_is_a_picture():
    assert texts(SPN(Gaussian(0, 1, 4)).plot()) == ["Gaussian: column 0 (mean 1, variance 4)"]


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="each of 2 columns, got 1"):
        plot_structure(small_network(), feature_names=["a"])
    with pytest.raises(ValueError, match="max_nodes must be positive, got 0"):
        plot_structure(small_network(), max_nodes=0)


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    def missing(name):
        if name == "matplotlib":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr(library, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'safespn\[plot\]'"):
        SPN(small_network()).plot()


def test_the_library_does_not_import_matplotlib_by_itself():
    code = "import sys, safespn, safespn.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

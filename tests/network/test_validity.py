from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, Categorical, Gaussian, Poisson, Product, Sum


def gaussian(column):
    return Gaussian(column, 0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sum([gaussian(0), gaussian(0)], [0.5, 0.6]), r"Sum at root: the weights add up to 1\.1; expected 1"),
        (lambda: Sum([gaussian(0), gaussian(0)], [1.5, -0.5]), r"Sum at root: weight 1 is -0\.5"),
        (lambda: Sum([gaussian(0), gaussian(0)], [np.nan, 0.5]), r"Sum at root: weight 0 is nan"),
        (lambda: Sum([gaussian(0)], [0.5, 0.5]), r"Sum at root has 1 children but 2 weights"),
        (lambda: Sum([], []), r"Sum at root has no children"),
        (lambda: Product([gaussian(0), Product([])]), r"Product at root/1 has no children"),
        (
            lambda: Product([gaussian(2), Sum([gaussian(0), gaussian(1)], [0.5, 0.5])]),
            r"Sum at root/1: child 0 models columns 0 but child 1 models columns 1",
        ),
        (
            lambda: Sum([Product([gaussian(0), gaussian(1), gaussian(0)])], [1]),
            r"Product at root/0: children 0 and 2 both model column 0",
        ),
        (
            lambda: Sum([gaussian(0), Categorical(0, [0.5, 0.5])], [0.5, 0.5]),
            r"Categorical at root/1 and Gaussian at root/0 disagree about column 0",
        ),
        (
            lambda: Sum([Categorical(0, [0.5, 0.5]), Categorical(0, [0.2, 0.3, 0.5])], [0.5, 0.5]),
            r"disagree about column 0: an integer code from 0 to 2",
        ),
        (lambda: Product([gaussian(0), "leaf"]), r"has a child that is not a node: 'leaf'"),
        (lambda: "network", r"expected the root node of a network, got str"),
    ],
)
def test_invalid_networks_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        SPN(make())


def test_a_cycle_is_refused():
    node = Product([gaussian(0), gaussian(1)])
    object.__setattr__(node, "children", (Sum([node], [1.0]),))
    with pytest.raises(ValueError, match="its own descendant"):
        SPN(node)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0, 0, 0), r"Gaussian on column 0: the variance must be finite and positive, got 0\.0"),
        (lambda: Gaussian(3, np.inf, 1), r"Gaussian on column 3: the mean must be finite"),
        (lambda: Gaussian(-1, 0, 1), r"Gaussian: the column must be a non-negative integer, got -1"),
        (lambda: Gaussian(0.5, 0, 1), r"non-negative integer, got 0\.5"),
        (lambda: Poisson(1, -2), r"Poisson on column 1: the rate must be finite and positive, got -2\.0"),
        (lambda: Categorical(2, [0.5, 0.6]), r"Categorical on column 2: probabilities must be .* \(total 1\.1\)"),
        (lambda: Categorical(2, [np.nan, 1]), r"Categorical on column 2"),
        (lambda: Categorical(2, []), r"at least one probability"),
    ],
)
def test_leaves_refuse_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_nodes_are_immutable():
    with pytest.raises(AttributeError):
        gaussian(0).mean = 3.0
    with pytest.raises(AttributeError):
        Sum([gaussian(0)], [1.0]).weights = (2.0,)


def test_a_network_prints_readably():
    shared = Sum([gaussian(1), gaussian(1)], [0.5, 0.5])
    root = Sum([Product([gaussian(0), shared]), Product([Gaussian(0, 1, 1), shared])], [0.25, 0.75])
    lines = str(root).split("\n")
    assert lines[0] == "Sum(2 children)"
    assert lines[1] == "  0.25 × Product(2 children)"
    assert lines[2] == "    Gaussian(0, mean=0, variance=1)"
    assert "Sum(2 children) (drawn above)" in lines[-1]
    assert repr(SPN(root)) == "SPN(2 columns, 8 nodes, 8 edges, depth 3)"


def test_counts():
    shared = Sum([gaussian(1), gaussian(1)], [0.5, 0.5])
    spn = SPN(Sum([Product([gaussian(0), shared]), Product([gaussian(0), shared])], [0.25, 0.75]))
    assert (spn.n_nodes, spn.n_edges, spn.depth, spn.n_columns) == (8, 8, 3, 2)
    assert spn.n_parameters == 1 + 1 + 4 * 2
    assert SPN(Product([Categorical(0, [0.2, 0.3, 0.5]), Poisson(1, 2)])).n_parameters == 3

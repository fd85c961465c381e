"""Density trees that are not valid, in Python and in files."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import SPN, DensityTree, ModelFileError
from tests.network.test_files import rewrite

INF = np.inf
NODES = [[0, -INF, 0.5, 1, -3], [1, 0.5, 1.5, -1, -2]]


def changed(row, column, value):
    nodes = np.array(NODES)
    nodes[row, column] = value
    return {"nodes": nodes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(0, 0, 2), "node 0 tests column 2 of the leaf; expected 0 to 1"),
        (changed(1, 0, 0.5), "node 1 tests column 0.5"),
        (changed(0, 2, -INF), "node 0 tests -inf < x <= -inf, which no value passes"),
        (changed(0, 2, np.nan), "node 0 holds NaN"),
        (changed(0, 3, 2), "node 0 has child 2; expected a node from 1 to 1 or a box from -1 to -3"),
        (changed(0, 3, -4), "node 0 has child -4"),
        (changed(1, 3, 0), "node 1 has child 0, which does not come after it"),
        (changed(1, 3, 1), "node 1 has child 1, which does not come after it"),
        (changed(1, 3, -3), "node 1 has child -3, which has a parent already"),
        (changed(0, 4, 1), "node 0 has child 1, which has a parent already"),
        (changed(0, 3, -1), "box 1 has probability 0.3, but the root does not reach it"),
        ({"nodes": [[0, -INF, 0.5, 1, -3], [1, 7.5, 8.5, -1, -2]]}, "no value of column 6"),
        ({"probabilities": [0.2, 0.3, 0.4]}, "the probabilities add up to 0.9; expected 1"),
        ({"probabilities": [-0.2, 0.7, 0.5]}, "box 0 has probability -0.2"),
        ({"probabilities": [0.5, 0.5]}, r"got shapes \(2, 5\), \(2,\) and \(2, 2\)"),
        ({"nodes": np.zeros((2, 4))}, r"expected nodes of shape \(n, 5\)"),
        ({"base": [[0, -1], [3, 0]]}, r"base 0 is \(0, -1\); expected a mean and a positive variance"),
        ({"base": [[0, 1], [2.5, 0]]}, r"base 1 is \(2.5, 0\)"),
        ({"columns": [5, 5]}, "each only once"),
        ({"columns": [-1, 5]}, "non-negative integer"),
    ],
)
def test_mistakes_are_named(change, message):
    valid = {"columns": [5, 6], "nodes": NODES, "probabilities": [0.2, 0.3, 0.5], "base": [[0, 1], [3, 0]]}
    DensityTree(**valid)
    with pytest.raises(ValueError, match=message):
        DensityTree(**{**valid, **change})


def test_nodes_cannot_be_changed():
    tree = DensityTree([0, 1], NODES, [0.2, 0.3, 0.5], [[0, 1], [3, 0]])
    for values in (tree.parameters, tree.probabilities, tree.nodes, tree.base):
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, np.nan),
        (3, 9.0),
        (6, 5.0),
        (6, 0.0),
        (7, -99.0),
        (-1, 3.0),
        (-1, 1e300),
        (-1, np.nan),
        (-1, -2.0),
        (-2, -1.0),
    ],
)
def test_crafted_files_are_refused(index, value, tmp_path):
    path = tmp_path / "tree.safespn"
    leaf = DensityTree([0, 1], NODES, [0.2, 0.3, 0.5], [[0, 1], [3, 0]])
    SPN(leaf).save(path)
    parameters = leaf.parameters.copy()
    parameters[index] = value
    rewrite(path, parameters=parameters)
    with pytest.raises(ModelFileError):
        SPN.load(path)
    rewrite(path, parameters=leaf.parameters[:-1])
    with pytest.raises(ModelFileError):
        SPN.load(path)

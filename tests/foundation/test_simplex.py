from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from safespn import project_simplex
from safespn.foundation.posteriors import pessimistic, posterior
from safespn.foundation.simplex import dirichlet

numbers = st.floats(-1e6, 1e6)


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=numbers))
def test_projection_lies_on_the_simplex_and_is_nearest(points):
    """The projection's optimality: no corner of the simplex lies on the far side of the plane through it."""
    projected = project_simplex(points)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1)
    towards_corners = np.eye(points.shape[1])[None] - projected[:, None, :]
    products = np.einsum("nkd,nd->nk", towards_corners, points - projected)
    assert (products <= 1e-8 * (1 + np.abs(points).max())).all()


def test_projection_agrees_with_a_solver():
    rng = np.random.default_rng(0)
    for _ in range(5):
        point = rng.normal(0, 2, 4)
        constraint = {"type": "eq", "fun": lambda q: q.sum() - 1}
        solved = minimize(
            lambda q, point=point: ((q - point) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints=constraint,
        )
        np.testing.assert_allclose(project_simplex([point])[0], solved.x, atol=1e-5)


def test_projection_leaves_the_simplex_alone_and_refuses_nonsense():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    np.testing.assert_allclose(project_simplex(rows), rows)
    with pytest.raises(ValueError, match="row 1, column 0: nan"):
        project_simplex([[0.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        project_simplex([0.0, 1.0])


def test_soft_labels_are_on_the_simplex_for_any_input():
    joint = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [-1e5, -2e5], [3.0, 3.0]])
    np.testing.assert_allclose(posterior(joint), [[0.5, 0.5], [1, 0], [1, 0], [0.5, 0.5]])
    gains = np.array([[np.inf, -1.0], [-np.inf, 0.0], [1e8, -1e8], [0.0, 0.0]])
    np.testing.assert_allclose(pessimistic(gains, 0.1), [[0, 1], [1, 0], [0, 1], [0.5, 0.5]])
    draws = dirichlet(500, 3, np.random.default_rng(0))
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert dirichlet(0, 3, np.random.default_rng(0)).shape == (0, 3)

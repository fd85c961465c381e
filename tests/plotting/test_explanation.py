from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs the extra [plot]")

from matplotlib import pyplot

from safespn.answers.explanation import Explanation
from safespn.plotting import plot_explanation


@pytest.fixture
def explanation():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3)) * [0.1, 2.0, 1.0]
    cells = rng.normal(size=(30, 3))
    cells[0, 2] = np.nan
    values[0, 2] = 0
    total = 0.5 + values.sum(axis=1)
    labels = np.repeat("ill", 30)
    return Explanation(values, np.full(30, 0.5), total, np.zeros((30, 3)), labels, cells, ["a", "b", "c"])


def test_one_row_is_drawn_as_bars_largest_first(explanation):
    display = plot_explanation(explanation, 3)
    order = np.argsort(-np.abs(explanation.values[3]))
    assert display.columns == [explanation.columns[column] for column in order]
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, explanation.values[3][order])
    assert "class ill" in display.ax_.get_title()
    pyplot.close("all")


def test_many_rows_are_drawn_as_points_without_missing_cells(explanation):
    _, ax = pyplot.subplots()
    display = plot_explanation(explanation, max_columns=2, ax=ax)
    assert display.ax_ is ax
    assert display.columns == ["b", "c"]
    b, c = (points.get_offsets() for points in ax.collections)
    np.testing.assert_allclose(b[:, 0], explanation.values[:, 1])
    assert len(c) == 29
    assert np.abs(b[:, 1]).max() < 0.5
    pyplot.close("all")


def test_a_row_that_does_not_exist(explanation):
    with pytest.raises(ValueError, match="no row 30"):
        plot_explanation(explanation, 30)

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safespn.report.charts import BOTTOM, GAP, HEIGHT, LEFT, LETTER, RIGHT, TOP, WIDTH, Chart, Mark, draw, nice_ticks
from safespn.report.features import by_class_difference
from safespn.report.figures import density_chart
from safespn.report.render import _breakable, _cell, _environment
from safespn.summaries import FeatureDensity, _histogram, _shown_range


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 100, ["0", "20", "40", "60", "80", "100"]),
        (-1500, 1500, ["−1,500", "−1,000", "−500", "0", "500", "1,000", "1,500"]),
        (0, 2e7, ["0", "5e6", "1e7", "1.5e7", "2e7"]),
    ],
)
def test_ticks(low, high, texts):
    assert [text for _, text in nice_ticks(low, high, 5)] == texts


def test_numbers_of_labels_get_whole_ticks():
    chart = Chart("t", "d", "labels", "", [Mark("line", np.array([9.0, 12.0]), np.array([0.1, 0.2]))])
    assert [tick.text for tick in draw(chart).x_ticks] == ["9", "10", "11", "12"]


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_ticks_are_few_and_within_the_range(low, width):
    high = low + width
    if high - low < 1e-6 * max(abs(low), abs(high)):
        return
    values = [value for value, _ in nice_ticks(low, high, 4)]
    assert 1 <= len(values) <= 10
    assert low - 1e-6 * width <= min(values)
    assert max(values) <= high + 1e-6 * width


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=8))
def test_any_numbers_make_a_picture_that_stays_in_its_frame(values):
    y = np.array(values)
    x = np.arange(len(values), dtype=float)
    marks = [Mark(shape, x, y, number) for number, shape in enumerate(("line", "area", "bars", "points", "rug"))]
    if (np.abs(y[np.isfinite(y)]) > 1e300).any():
        return
    drawing = draw(Chart("t", "d", "x", "y", marks))
    line = drawing.shapes[0].path
    for across, up in re.findall(r"(-?[\d.]+),(-?[\d.]+)", line):
        assert LEFT - 0.1 <= float(across) <= WIDTH - RIGHT + 0.1
        assert TOP - 0.1 <= float(up) <= HEIGHT - BOTTOM + 0.1


@pytest.mark.parametrize(
    ("names", "slanted", "texts"),
    [
        (["no", "yes"], False, ["no", "yes"]),
        (["north", "a very long name"], False, ["north", "a very long name"]),
        (["Upper Austria", "Styria", "Tyrol", "Vienna"], True, ["Upper Aus…", "Styria", "Tyrol", "Vienna"]),
        ([str(number) for number in range(12)], False, [str(number) for number in range(12)]),
    ],
)
def test_every_category_is_named(names, slanted, texts):
    places = np.arange(len(names), dtype=float)
    drawing = draw(Chart("t", "d", "", "y", [Mark("bars", places, places)], x_names=names))
    assert [tick.text for tick in drawing.x_ticks] == texts
    assert drawing.slanted == slanted


def test_numbers_as_people_write_them():
    filters = _environment().filters
    assert filters["signed"](-0.0004, 3) == "+0.000"
    assert filters["signed"](-1234.56) == "−1,234.6"
    assert filters["number"](-0.001, 2) == "0.00"
    assert filters["sentence"]("cells are separated by semicolons") == "Cells are separated by semicolons."


def test_a_chart_is_well_formed_and_says_what_it_shows():
    chart = Chart(
        "A <title>",
        "What is to be seen & more.",
        "x",
        "y",
        [Mark("line", np.array([0.0, 1.0]), np.array([1.0, 2.0]))],
        [(0, "first", False), (9, "tenth", False)],
        x_names=["one", "a very long name of a category indeed"],
    )
    text = str(_environment().globals["picture"](chart))
    root = ElementTree.fromstring(text)
    picture = root.find("svg")
    assert picture.attrib["role"] == "img"
    assert picture.attrib["aria-label"] == "A <title>. What is to be seen & more."
    assert [entry.find("svg/path").attrib["class"] for entry in root.iter("li")] == ["line c0", "line c1 dashed"]


def test_texts_of_large_negative_numbers_have_room():
    line = Mark("line", np.array([0.0, 12_500.0]), np.array([-400_000.0, 0.0]))
    drawing = draw(Chart("t", "d", "x", "y", [line]))
    longest = max(len(tick.text) for tick in drawing.y_ticks)
    assert drawing.left - GAP >= longest * LETTER
    assert all(tick.at + len(tick.text) * LETTER / 2 <= WIDTH for tick in drawing.x_ticks)


def test_far_values_do_not_press_a_density_into_one_line():
    cells = np.append(np.linspace(0.0, 1.0, 199), 1000.0)
    low, high = _shown_range(cells)
    assert low == 0
    assert 1 < high < 2
    edges, heights = _histogram(cells, np.array([low, high]))
    assert edges[-1] == 1
    assert (heights * np.diff(edges)).sum() == pytest.approx(199 / 200)
    assert _shown_range(cells[:-1]) == (0.0, 1.0)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_densities_of_many_classes_are_lines(n_classes):
    values = np.linspace(0.0, 1.0, 5)
    empty = np.empty(0)
    density = FeatureDensity("x", values, np.ones((5, n_classes)), None, [empty] * n_classes, (empty, empty))
    shapes = [mark.shape for mark in density_chart(density, list("abcd"[:n_classes])).marks]
    assert shapes.count("area") == (n_classes if n_classes == 3 else 0)
    assert shapes.count("line") == n_classes


def test_long_cells_have_no_powers_of_ten():
    assert [_cell(value) for value in (18152.4, -0.25, 1e12)] == ["18,152", "−0.25", "1e+12"]


def test_long_texts_below_the_x_axis_do_not_touch():
    x = np.array([-300.0, 15_300.0])
    ticks = draw(Chart("t", "d", "", "", [Mark("line", x, np.array([0.0, 0.00022]))])).x_ticks
    assert len(ticks) > 1
    for one, other in pairwise(ticks):
        assert other.at - one.at >= LETTER * (len(one.text) + len(other.text)) / 2


def test_columns_whose_labelled_rows_differ_come_first():
    codes = np.array([0, 0, 1, 1, -1])
    cells = np.array([[1.0, 5, 0, 7], [2, 5, np.nan, 8], [1, 9, 4, 7], [2, 9.1, 3, 9], [500, 0, 0, 0]])
    assert by_class_difference(["a", "b", "c"], ["a", "b", "c", "unused"], cells, codes) == ["b", "c", "a"]


def test_long_names_of_columns_may_go_on_in_a_further_line():
    assert _breakable("total_day <b>") == "total_<wbr>day &lt;b&gt;"

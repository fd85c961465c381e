"""Charts as small SVG pictures: their colours come from the page, so that they follow it into dark mode and print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from safespn.typing import FloatArray

WIDTH, HEIGHT = 360.0, 232.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 26.0, 44.0
LETTER = 6.5
"""Width of a letter of a tick's text, more or less."""
LONGEST_SLANTED = 10
"""Letters of a slanted text that have room below the axis."""
LARGEST = 1e150
"""Numbers beyond this are not drawn: their squares and ranges would overflow."""
GAP = 6.0
"""Between the texts of the y axis and the axis."""
N_COLOURS = 8
"""Colours that the page defines; further classes begin again, dashed."""


@dataclass(frozen=True, eq=False)
class Mark:
    """Something drawn in a chart's coordinates.

    Parameters
    ----------
    shape : {"line", "area", "band", "bars", "histogram", "points", "rug"}
    x, y : array of shape (n,)
        For bars, middles and tops; for a band, its upper edge; a rug has no y.
    colour : int
        Number of one of the page's colours.
    base : array of shape (n,), optional
        Lower edge of a band or of bars; zero by default.
    width : float
        Width of bars, in units of x.
    """

    shape: str
    x: FloatArray
    y: FloatArray
    colour: int = 0
    base: FloatArray | None = None
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture with axes.

    Parameters
    ----------
    title, description : str
        What it shows, and what is to be seen, for those who cannot see it.
    x_label, y_label : str
        What the axes measure; empty if the title says so.
    legend : list of tuple
        Colour, name, and whether dashed.
    x_names : list of str, optional
        Names of the places 0, 1, ... of the x axis, instead of numbers.
    x_range, y_range : tuple of float, optional
    """

    title: str
    description: str
    x_label: str
    y_label: str
    marks: Sequence[Mark]
    legend: Sequence[tuple[int, str, bool]] = field(default_factory=list)
    x_names: Sequence[str] | None = None
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Shape:
    """A path in the picture's own coordinates."""

    path: str
    kind: str
    colour: int
    dashed: bool


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis, in the picture's own coordinates."""

    at: float
    text: str


@dataclass(frozen=True, eq=False)
class Drawing:
    """What a picture is made of; ``slanted`` says that the texts below the x axis need to be."""

    chart: Chart
    shapes: list[Shape]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    slanted: bool
    left: float
    """Where the x axis begins: after the texts of the y axis."""


def draw(chart: Chart) -> Drawing:
    """Bring a chart into the coordinates of its picture."""
    x_low, x_high = chart.x_range or _x_range(chart)
    y_low, y_high = chart.y_range or _y_range(chart)
    y_texts = nice_ticks(y_low, y_high, 4)
    left = max(LEFT, GAP + 2 + LETTER * max((len(text) for _, text in y_texts), default=0))

    def across(x: FloatArray) -> FloatArray:
        return left + (np.asarray(x) - x_low) / (x_high - x_low) * (WIDTH - left - RIGHT)

    def up(y: FloatArray) -> FloatArray:
        return HEIGHT - BOTTOM - (np.asarray(y) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    shapes = []
    for mark in map(_drawable, chart.marks):
        base = up(np.zeros(len(mark.x)) if mark.base is None else mark.base)
        half = mark.width / 2 / (x_high - x_low) * (WIDTH - left - RIGHT)
        path = _PATHS[mark.shape](across(mark.x), up(mark.y), base, half)
        shapes.append(Shape(path, mark.shape, mark.colour % N_COLOURS, mark.dashed or mark.colour >= N_COLOURS))
    names, slanted = _names(chart.x_names or [])
    whole = all((mark.x == np.round(mark.x)).all() for mark in chart.marks)
    x_texts = (
        _ticks_with_room(x_low, x_high, WIDTH - left - RIGHT, whole) if chart.x_names is None else enumerate(names)
    )
    x_ticks = [Tick(_within(float(across(np.array(value))), text, slanted), text) for value, text in x_texts]
    y_ticks = [Tick(float(up(np.array(value))), text) for value, text in y_texts]
    return Drawing(chart, shapes, x_ticks, y_ticks, slanted, left)


def _ticks_with_room(low: float, high: float, room: float, whole: bool) -> list[tuple[float, str]]:
    """Ticks of the x axis, fewer where their texts are long."""
    ticks: list[tuple[float, str]] = []
    for about in (5, 4, 3, 2):
        ticks = nice_ticks(low, high, about, whole=whole)
        if LETTER * sum(len(text) + 1 for _, text in ticks) <= room:
            break
    return ticks


def _within(at: float, text: str, slanted: bool) -> float:
    """Where a text below the x axis has its middle, so that the picture's edge does not cut it."""
    return at if slanted else min(at, WIDTH - LETTER * len(text) / 2)


def _names(names: Sequence[str]) -> tuple[list[str], bool]:
    """Texts for the places of the x axis, and whether they have to be slanted to have room."""
    longest = max(map(len, names), default=0)
    if (longest + 1) * LETTER * len(names) <= WIDTH - LEFT - RIGHT:
        return list(names), False
    return [shortened(name, LONGEST_SLANTED) for name in names], True


def _drawable(mark: Mark) -> Mark:
    """Leave out numbers that are too large to draw."""
    return replace(
        mark, x=_clipped(mark.x), y=_clipped(mark.y), base=None if mark.base is None else _clipped(mark.base)
    )


def _clipped(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < LARGEST, values, np.nan)


def nice_ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[tuple[float, str]]:
    """Choose about so many round (or whole) numbers within a range, each with its text."""
    rough = (high - low) / about
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - rough)))
    step = max(step, 1.0) if whole else step
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step + 0.0  # no -0
    decimals = max(0, int(-np.floor(np.log10(step) + 1e-9)))
    largest = max(abs(low), abs(high))
    if largest >= 1e6 or decimals > 5:
        return [(float(value), _powers(value)) for value in values]
    return [(float(value), f"{value:,.{decimals}f}".replace("-", "−")) for value in values]


def _powers(value: float) -> str:
    """Write a very large or small number shortly: 2e6, 5e−6."""
    return re.sub(r"e([+-])0*", lambda found: "e" + found[1].strip("+"), f"{value:.3g}").replace("-", "−")


def shortened(text: str, length: int) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= length else f"{text[: max(length - 1, 1)]}…"


def _x_range(chart: Chart) -> tuple[float, float]:
    if chart.x_names is not None:
        return -0.6, len(chart.x_names) - 0.4
    return _wide_enough(np.concatenate([mark.x for mark in chart.marks]))


def _y_range(chart: Chart) -> tuple[float, float]:
    values = [mark.y for mark in chart.marks if mark.shape != "rug"]
    values += [mark.base for mark in chart.marks if mark.base is not None]
    if any(mark.shape in ("bars", "area", "histogram") for mark in chart.marks):
        values.append(np.zeros(1))
    low, high = _wide_enough(np.concatenate(values))
    room = 0.06 * (high - low)
    return (low if low == 0 else low - room), high + room


def _wide_enough(values: FloatArray) -> tuple[float, float]:
    """Range of the values that can be drawn, never empty."""
    values = values[np.abs(values) < LARGEST]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    least = max(1e-9 * max(abs(low), abs(high)), 1 / LARGEST)
    return (low, high) if high - low > least else (low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2)


def _points(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b))


def _line(x: FloatArray, y: FloatArray, base: FloatArray, half: float) -> str:
    points = _points(x, y)
    return f"M{points.replace(' ', ' L')}" if points else ""


def _filled(x: FloatArray, y: FloatArray, base: FloatArray, half: float) -> str:
    points = _points(np.concatenate([x, x[::-1]]), np.concatenate([y, base[::-1]]))
    return f"M{points.replace(' ', ' L')}Z" if points else ""


def _bars(x: FloatArray, y: FloatArray, base: FloatArray, half: float) -> str:
    return "".join(
        f"M{a - half:.1f},{c:.1f}V{b:.1f}H{a + half:.1f}V{c:.1f}Z"
        for a, b, c in zip(x, y, base, strict=True)
        if np.isfinite(b)
    )


def _dots(x: FloatArray, y: FloatArray, base: FloatArray, half: float) -> str:
    return "".join(
        f"M{a - 3:.1f},{b:.1f}a3,3 0 1,0 6,0a3,3 0 1,0 -6,0"
        for a, b in zip(x, y, strict=True)
        if np.isfinite(a) and np.isfinite(b)
    )


def _rug(x: FloatArray, y: FloatArray, base: FloatArray, half: float) -> str:
    return "".join(f"M{a:.1f},{HEIGHT - BOTTOM:.1f}v-7" for a in x if np.isfinite(a))


_PATHS = {
    "line": _line,
    "area": _filled,
    "band": _filled,
    "bars": _bars,
    "histogram": _bars,
    "points": _dots,
    "rug": _rug,
}

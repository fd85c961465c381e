"""The plotting library is optional: it is imported when a picture is asked for, not before."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C6D31")
"""Colours of classes, in the order of ``classes_``, and of leaf families; distinguishable for colour-blind people."""


def require_matplotlib() -> None:
    """Check that matplotlib can be imported.

    Raises
    ------
    ImportError
        If it cannot; the message says how to install it.
    """
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'safespn[plot]'") from error


def colour_of(code: int) -> str:
    """Colour of a class or family by its number; they repeat after eight."""
    return COLOURS[code % len(COLOURS)]


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]

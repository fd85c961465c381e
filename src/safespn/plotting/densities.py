"""A picture of each column's distribution in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.plotting.inputs import class_codes, class_names, column_names, column_number, encoded_rows
from safespn.plotting.library import colour_of, require_matplotlib
from safespn.summaries import FeatureDensity, feature_density
from safespn.typing import AnyArray, ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from safespn.classifier import SafeSPNClassifier

MOST_COLUMNS = 12
"""Columns that are drawn by default."""
PANELS_ACROSS = 3
PANEL_INCHES = (3.4, 2.4)


@dataclass(eq=False)
class DensitiesDisplay:
    """Distributions of columns by class; made by :func:`plot_densities`.

    Parameters
    ----------
    densities : list of FeatureDensity
        One for each column.
    class_names : list of str

    Attributes
    ----------
    axes_ : array of matplotlib Axes of shape (n_columns,)
    figure_ : matplotlib Figure
    """

    densities: list[FeatureDensity]
    class_names: list[str]
    axes_: AnyArray = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, axes: Any = None) -> DensitiesDisplay:
        """Draw into the given axes, one for each column, or into a new figure; returns itself."""
        self.axes_ = _new_axes(len(self.densities)) if axes is None else np.atleast_1d(axes).ravel()
        if len(self.axes_) != len(self.densities):
            raise ValueError(f"expected axes for each of {len(self.densities)} columns, got {len(self.axes_)}")
        self.figure_ = self.axes_[0].figure
        for ax, density in zip(self.axes_, self.densities, strict=True):
            draw = self._draw_numbers if density.categories is None else self._draw_categories
            draw(ax, density)
            ax.set_xlabel(density.name)
            ax.set_ylim(bottom=0.0)
        self.axes_[0].legend(fontsize="small")
        return self

    def _draw_numbers(self, ax: Axes, density: FeatureDensity) -> None:
        for code, name in enumerate(self.class_names):
            colour, height = colour_of(code), density.densities[:, code]
            ax.plot(density.values, height, color=colour, label=f"class {name}")
            ax.fill_between(density.values, height, color=colour, alpha=0.15, linewidth=0)
            ticks = density.labelled[code]
            # Ticks of labelled rows stand on the axis, whatever the height of the density.
            ax.vlines(ticks, 0.0, 0.05, color=colour, linewidth=0.8, transform=ax.get_xaxis_transform())
        ax.set_ylabel("density")

    def _draw_categories(self, ax: Axes, density: FeatureDensity) -> None:
        assert density.categories is not None
        width = 0.8 / len(self.class_names)
        for code, name in enumerate(self.class_names):
            shift = (code - (len(self.class_names) - 1) / 2) * width
            height = density.densities[:, code]
            ax.bar(density.values + shift, height, 0.92 * width, color=colour_of(code), label=f"class {name}")
        ax.set_xticks(density.values, density.categories)
        ax.set_ylabel("probability")


def plot_densities(
    classifier: SafeSPNClassifier,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    axes: Any = None,
) -> DensitiesDisplay:
    """Draw the distribution of columns in each class, all other columns marginalised exactly.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted.
    X : array-like or data frame of shape (n_rows, n_features)
        Rows that say over which range to draw.
    y : array-like of shape (n_rows,), optional
        Labels, with the classifier's marker for unlabelled rows; labelled rows are drawn as ticks on the axis.
    columns : sequence of int or str, optional
        Columns by number or name; by default the first twelve that are not ignored.
    axes : matplotlib Axes or array of them, optional
        Where to draw, one for each column; by default a new figure.

    Returns
    -------
    DensitiesDisplay
        With ``axes_`` and ``figure_``, and the values drawn.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such column, or labels or axes do not fit.
    """
    require_matplotlib()
    table, names = encoded_rows(classifier, X), column_names(classifier)
    codes = class_codes(classifier, y, len(table))
    used = [column for column, kind in enumerate(classifier.column_types_) if kind != "ignored"]
    chosen = used[:MOST_COLUMNS] if columns is None else columns
    numbers = [column_number(classifier, column) for column in chosen]
    densities = [feature_density(classifier, number, names[number], table, codes) for number in numbers]
    return DensitiesDisplay(densities, class_names(classifier)).plot(axes)


def _new_axes(n_panels: int) -> AnyArray:
    """Open a figure with a panel for each column."""
    from matplotlib import pyplot

    n_across = min(n_panels, PANELS_ACROSS)
    n_up = -(-n_panels // n_across)
    size = (PANEL_INCHES[0] * n_across, PANEL_INCHES[1] * n_up)
    grid = pyplot.subplots(n_up, n_across, figsize=size, layout="constrained", squeeze=False)[1].ravel()
    for unused in grid[n_panels:]:
        unused.remove()
    return np.asarray(grid[:n_panels])

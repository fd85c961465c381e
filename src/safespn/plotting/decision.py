"""A picture of what a classifier makes of two columns: class densities, the decision boundary, the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safespn.plotting.inputs import class_codes, class_names, column_names, column_number, encoded_rows
from safespn.plotting.library import axes_or_new, colour_of, require_matplotlib
from safespn.typing import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from safespn.classifier import SafeSPNClassifier

LEVELS = (-5.0, -3.5, -2.0, 1e-9)
"""Edges of the bands of a class density, in nats below its peak."""
ROOM = 0.1
"""Share of a column's range that is drawn beyond its least and largest value."""
UNKNOWN, BOUNDARY = "0.35", "0.25"
OPACITIES = (0.12, 0.24, 0.4)
"""Of the bands, from the outermost to the peak."""
ROW_SIZE, LABELLED_ROW_SIZE = 9.0, 55.0
"""Areas of dots in square points."""


@dataclass(eq=False)
class DecisionDisplay:
    """Class densities and decision boundary over two columns; made by :func:`plot_decision`.

    Parameters
    ----------
    across, up : array of shape (n_grid,)
        Values of the two columns at the points of the grid.
    log_joint : array of shape (n_grid, n_grid, n_classes)
        Log density of a point together with each class; the first index goes up, the second across.
    rows : array of shape (n_rows, 2)
    codes : array of shape (n_rows,)
        Number of each row's class, -1 for an unlabelled row.
    soft_labels : array of shape (n_unlabelled, n_classes), optional
    class_names : list of str
    column_names : tuple of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    across: FloatArray
    up: FloatArray
    log_joint: FloatArray
    rows: FloatArray
    codes: IntArray
    soft_labels: FloatArray | None
    class_names: list[str]
    column_names: tuple[str, str]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> DecisionDisplay:
        """Draw into the given axes, or into a new figure.

        Returns
        -------
        DecisionDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw_model()
        self._draw_rows()
        self.ax_.set(xlabel=self.column_names[0], ylabel=self.column_names[1])
        self.ax_.set(xlim=(self.across[0], self.across[-1]), ylim=(self.up[0], self.up[-1]))
        if legend:
            entries = self.key()
            self.ax_.legend(list(entries.values()), list(entries), fontsize="small")
        return self

    def _draw_model(self) -> None:
        from matplotlib.colors import to_rgba

        n_classes = self.log_joint.shape[2]
        for code in range(n_classes):
            joint = self.log_joint[..., code]
            colours = [to_rgba(colour_of(code), opacity) for opacity in OPACITIES]
            self.ax_.contourf(self.across, self.up, joint, levels=joint.max() + np.array(LEVELS), colors=colours)
        # The boundary between two classes is one line; drawing it for both would draw it twice.
        for code in range(1 if n_classes == 2 else 0, n_classes):
            lead = self.log_joint[..., code] - np.delete(self.log_joint, code, axis=2).max(axis=2)
            if lead.min() < 0 < lead.max():
                self.ax_.contour(self.across, self.up, lead, levels=[0.0], colors=BOUNDARY, linewidths=1.4)

    def _draw_rows(self) -> None:
        known = self.codes >= 0
        x, y = self.rows.T
        if self.soft_labels is not None:
            self.ax_.scatter(x[~known], y[~known], c=self._shades(), s=ROW_SIZE, linewidths=0, label="unlabelled")
        elif not known.all():
            self.ax_.scatter(x[~known], y[~known], c=UNKNOWN, s=ROW_SIZE / 2, linewidths=0, label="unlabelled")
        if known.any():
            # Large dots mark the few rows that were labelled; where all are, they would hide the picture.
            few = not known.all()
            self.ax_.scatter(
                x[known],
                y[known],
                c=[colour_of(code) for code in self.codes[known]],
                s=LABELLED_ROW_SIZE if few else ROW_SIZE,
                edgecolors="black" if few else "none",
                linewidths=1.0 if few else 0.0,
                zorder=3,
                label="labelled",
            )

    def _shades(self) -> FloatArray:
        """Mixture of the classes' colours for each unlabelled row, shape (n_unlabelled, 3)."""
        from matplotlib.colors import to_rgb

        assert self.soft_labels is not None
        colours = np.array([to_rgb(colour_of(code)) for code in range(self.soft_labels.shape[1])])
        return np.asarray((self.soft_labels @ colours).clip(0.0, 1.0))

    def key(self) -> dict[str, Artist]:
        """Legend entries: what each colour and sign means."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        def dot(colour: str, size: float, edge: str = "none") -> Line2D:
            return Line2D([], [], marker="o", linestyle="", color=colour, markersize=size, markeredgecolor=edge)

        entries: dict[str, Artist] = {
            f"class {name}": Patch(color=colour_of(code), alpha=0.4) for code, name in enumerate(self.class_names)
        }
        entries["decision boundary"] = Line2D([], [], color=BOUNDARY)
        if (self.codes >= 0).any() and (self.codes < 0).any():
            entries["labelled row"] = dot(colour_of(0), 8, "black")
        if self.soft_labels is not None:
            entries["unlabelled row, shaded by soft label"] = dot(colour_of(1), 4)
        elif (self.codes < 0).any():
            entries["unlabelled row"] = dot(UNKNOWN, 3)
        return entries


def plot_decision(
    classifier: SafeSPNClassifier,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    columns: tuple[int | str, int | str] = (0, 1),
    soft_labels: ArrayLike | None = None,
    n_grid: int = 160,
    ax: Axes | None = None,
    legend: bool = True,
) -> DecisionDisplay:
    """Draw class densities, the decision boundary and the rows of a table over two of its columns.

    Each class density is shown as three bands, within 2, 3.5 and 5 nats of its peak. If the table has more than two
    columns the others are marginalised exactly: the boundary is that of a classifier who knows these two only.

    Parameters
    ----------
    classifier : SafeSPNClassifier
        Fitted.
    X : array-like or data frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), optional
        Labels, with the classifier's marker for unlabelled rows; None if all are unlabelled.
    columns : pair of int or str
        The columns to draw across and up, by number or name.
    soft_labels : array-like of shape (n_unlabelled, n_classes), optional
        Shade the unlabelled rows by these, for instance by the classifier's ``soft_labels_``.
    n_grid : int
        Points of the grid along each column.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    legend : bool

    Returns
    -------
    DecisionDisplay
        With ``ax_`` and ``figure_``, and the values drawn.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If a column is categorical or not there, or labels or soft labels do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from safespn import SafeSPNClassifier
    >>> from safespn.plotting import plot_decision
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[10:] = -1
    >>> clf = SafeSPNClassifier(max_depth=4).fit(X, y)
    >>> display = plot_decision(clf, X, y, soft_labels=clf.soft_labels_)
    >>> display.figure_.savefig("decision.png")  # doctest: +SKIP
    """
    require_matplotlib()
    table, names = encoded_rows(classifier, X), column_names(classifier)
    first, second = (column_number(classifier, column) for column in columns)
    for column in (first, second):
        kind = classifier.column_types_[column]
        if kind in ("categorical", "ignored"):
            raise ValueError(f"{names[column]!r} is {kind}; plot_decision draws numbers, see plot_densities")
    codes = class_codes(classifier, y, len(table))
    across, up = (_spread(table[:, column], names[column], n_grid) for column in (first, second))
    points = np.full((n_grid * n_grid, table.shape[1]), np.nan)
    points[:, first], points[:, second] = (part.ravel() for part in np.meshgrid(across, up))
    return DecisionDisplay(
        across,
        up,
        classifier._committee.joint(points).reshape(n_grid, n_grid, -1),
        table[:, [first, second]],
        codes,
        None if soft_labels is None else _checked(soft_labels, int((codes < 0).sum()), len(classifier.classes_)),
        class_names(classifier),
        (names[first], names[second]),
    ).plot(ax, legend=legend)


def _spread(cells: FloatArray, name: str, n_grid: int) -> FloatArray:
    """Evenly spread values over the range of a column, and some room around it."""
    seen = cells[~np.isnan(cells)]
    if not len(seen):
        raise ValueError(f"{name!r} is missing in every row: there is nothing to draw")
    low, high = seen.min(), seen.max()
    room = ROOM * (high - low) or 1.0
    return np.linspace(low - room, high + room, n_grid)


def _checked(soft_labels: ArrayLike, n_unlabelled: int, n_classes: int) -> FloatArray:
    checked = np.asarray(soft_labels, dtype=np.float64)
    if checked.shape != (n_unlabelled, n_classes):
        raise ValueError(
            f"expected soft labels of shape {(n_unlabelled, n_classes)}, a row for each unlabelled row of y and a "
            f"column for each class, got {checked.shape}"
        )
    return checked

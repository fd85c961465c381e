"""Pictures. They need matplotlib, which ``pip install 'safespn[plot]'`` installs.

Functions that draw what a classifier does return a display, as scikit-learn's do: the values drawn, ``ax_`` and
``figure_``, and a method ``plot`` that draws them again elsewhere.
"""

from __future__ import annotations

from safespn.plotting.decision import DecisionDisplay, plot_decision
from safespn.plotting.densities import DensitiesDisplay, plot_densities
from safespn.plotting.explanation import ExplanationDisplay, plot_explanation
from safespn.plotting.fits import HistoryDisplay, SoftLabelsDisplay, plot_history, plot_soft_labels
from safespn.plotting.structure import plot_structure

__all__ = [
    "DecisionDisplay",
    "DensitiesDisplay",
    "ExplanationDisplay",
    "HistoryDisplay",
    "SoftLabelsDisplay",
    "plot_decision",
    "plot_densities",
    "plot_explanation",
    "plot_history",
    "plot_soft_labels",
    "plot_structure",
]

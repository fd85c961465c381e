"""Pictures. They need matplotlib, which ``pip install 'safespn[plot]'`` brings along."""

from __future__ import annotations

from safespn.plotting.structure import plot_structure

__all__ = ["plot_structure"]

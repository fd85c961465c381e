"""The report on a fit: what is in it (plain values), and how it looks (one HTML page that needs nothing else)."""

from __future__ import annotations

from safespn.report.contents import Report, collect_report
from safespn.report.render import render_report

__all__ = ["Report", "collect_report", "render_report"]

"""The report on a fit: what is in it (plain values), and how it looks (one HTML page that needs nothing else)."""

from __future__ import annotations

from safespn.report.contents import Report, collect_report
from safespn.report.learning_curve import Evaluation, evaluate_table
from safespn.report.of_classifier import write_report
from safespn.report.render import render_evaluation, render_report

__all__ = [
    "Evaluation",
    "Report",
    "collect_report",
    "evaluate_table",
    "render_evaluation",
    "render_report",
    "write_report",
]

"""The report on a fit: what is in it (plain values), and how it looks (one HTML page that needs nothing else)."""

from __future__ import annotations

from safespn.report.comparison import HeldOutComparison
from safespn.report.contents import Report, collect_report, quick_comparison
from safespn.report.evaluation import Evaluation
from safespn.report.learning_curve import evaluate_table
from safespn.report.of_classifier import evaluate_classifier, write_report
from safespn.report.render import render_evaluation, render_report

__all__ = [
    "Evaluation",
    "HeldOutComparison",
    "Report",
    "collect_report",
    "evaluate_classifier",
    "evaluate_table",
    "quick_comparison",
    "render_evaluation",
    "render_report",
    "write_report",
]

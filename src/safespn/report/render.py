"""A report as one HTML page."""

from __future__ import annotations

import re
from base64 import b64encode
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from safespn import __version__
from safespn.report import charts, figures
from safespn.report.charts import Chart, draw
from safespn.report.comparison import recall_and_precision
from safespn.report.contents import Report
from safespn.report.evaluation import Evaluation
from safespn.report.peers import FOREST, LOGISTIC

if TYPE_CHECKING:
    from safespn.experiments.outputs import Picture, Reproduction


MOST_NAMES = 60
"""Columns of a type that are named."""
LONG_NUMBER, LONGEST_NUMBER = 1e4, 1e9
"""Cells from here to there are written without decimals, beyond it with a power of ten."""
MOST_ROWS = 40
"""Rows of a table of experiments that are shown unasked."""


def render_report(report: Report) -> str:
    """Write the page; it loads nothing and runs no script."""
    environment = _environment()
    page = environment.get_template("report.html.j2")
    return page.render(
        report=report,
        version=report.version,
        history_charts=figures.history_charts(report.history, report.safety.worst_case),
        soft_label_chart=figures.soft_label_chart(report.soft_labels, report.classes) if report.n_unlabelled else None,
        soft_label_counts=figures.soft_label_counts(report.soft_labels, report.classes),
        calibration_chart=figures.calibration_chart(report.comparison) if report.comparison.scores else None,
        threshold_charts=figures.threshold_charts(report.comparison),
        class_rates=recall_and_precision(report.comparison.confusion),
        density_charts=[figures.density_chart(density, report.classes) for density in report.densities],
        relevance_bars=figures.relevance_bars(report.relevances or []),
        class_legend=figures.class_legend(report.classes),
        most_names=MOST_NAMES,
        peer_names=(LOGISTIC, FOREST),
    )


def render_evaluation(evaluation: Evaluation) -> str:
    """Write a page about a learning curve."""
    page = _environment().get_template("evaluation.html.j2")
    charts_shown = figures.curve_charts(evaluation)
    return page.render(evaluation=evaluation, charts=charts_shown, models=list(figures.CURVES), version=__version__)


def render_experiments(made: Reproduction, *, title: str, subtitle: str, protocol: str, command: str) -> str:
    """Write a page of tables and pictures of experiments."""
    images = {
        name: f"data:image/svg+xml;base64,{b64encode(picture.svg.encode()).decode()}"
        for name, picture in made.pictures.items()
    }
    page = _environment().get_template("experiments.html.j2")
    return page.render(
        made=made,
        parts=[(table, _below(made, table.name)) for table in made.tables],
        others={name: each for name, each in made.pictures.items() if each.after not in {t.name for t in made.tables}},
        images=images,
        most_rows=MOST_ROWS,
        title=title,
        subtitle=subtitle,
        command=command,
        protocol=protocol,
        minutes=made.seconds / 60,
        libraries=", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")),
        version=__version__,
    )


def _below(made: Reproduction, table: str) -> dict[str, Picture]:
    return {name: picture for name, picture in made.pictures.items() if picture.after == table}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("safespn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("chart.html.j2")

    def picture(chart: Chart, level: str = "h3") -> Markup:
        return Markup(template.render(drawing=draw(chart), chart=chart, size=charts, level=level))

    environment.globals |= {"picture": picture, "n_colours": charts.N_COLOURS}
    environment.filters |= {"number": _number, "percent": _percent, "cell": _cell, "signed": _signed}
    environment.filters |= {"sentence": _sentence, "minus": _minus, "breakable": _breakable}
    return environment


def _number(value: float, digits: int = 3) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")  # no -0


def _signed(value: float, digits: int = 1) -> str:
    return f"{round(value, digits) + 0.0:+,.{digits}f}".replace("-", "−")


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _breakable(name: str) -> Markup:
    """A column's name that may go on in a further line after an underscore."""
    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def _sentence(text: str) -> str:
    """A note with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _minus(text: str) -> str:
    """A sentence with minus signs in the place of hyphens before numbers."""
    return re.sub(r"(?<![\w'])-(?=\d)", "−", text)


def _cell(value: Any) -> str:
    """A cell of the table as people write it."""
    if value is None or value != value:
        return "missing"
    if not isinstance(value, float):
        return str(value)
    return _minus(f"{value:,.0f}" if LONG_NUMBER <= abs(value) < LONGEST_NUMBER else f"{value:,.4g}")

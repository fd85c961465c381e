"""The paper's tables and figure, from data to a folder of results."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from safespn.datasets import NAMES, load
from safespn.exceptions import DatasetNotFoundError
from safespn.experiments import figure1, tables
from safespn.experiments.claims import claims
from safespn.experiments.rank_plot import draw_ranks
from safespn.experiments.runner import Settings, run_trials, seconds_of
from safespn.experiments.tables import Results, Table
from safespn.foundation.atomic_files import atomic_write

PARTS = {
    "table2": ("table2",),
    "table3": ("table3",),
    "figure1": (),
    "all": ("table2", "table3"),
}


@dataclass
class Reproduction:
    """What was made: tables and pictures by the names of their files, and what was not available.

    Parameters
    ----------
    tables : list of Table
    pictures : dict
        Name -> SVG.
    missing : dict
        Data set -> why it is missing.
    seconds : float
        Processor time of the trials.
    """

    tables: list[Table] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def reproduce(
    what: str,
    folder: Path,
    *,
    n_trials: int = 100,
    n_jobs: int = 1,
    data_dir: str | None = None,
    names: Sequence[str] = NAMES,
    settings: Settings | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reproduction:
    """Make a table, the figure or all of them, and write them to a folder.

    Parameters
    ----------
    what : {"table2", "table3", "figure1", "all"}
    folder : Path
        Gets ``trials/`` (raw results, from which an interrupted run goes on), tables as Markdown and CSV, pictures as
        SVG and PNG, and the trials of each data set as JSON.
    progress : callable
        Called with the number of finished trials and of all trials.
    """
    if find_spec("matplotlib") is None:  # better known before the trials than after them
        raise ModuleNotFoundError("the figures need matplotlib", name="matplotlib")
    settings = settings or Settings()
    folder.mkdir(parents=True, exist_ok=True)
    made = Reproduction()
    parts = PARTS[what]
    if parts:
        data = _load_all(names, data_dir, made)
        results = run_trials(data, n_trials, parts, folder / "trials", settings, n_jobs=n_jobs, progress=progress)
        made.seconds = seconds_of(folder / "trials")
        _write_tables(folder, made, data, results, parts)
        _write_raw(folder, results, settings)
    if what in ("figure1", "all"):
        moons = figure1.two_moons(data_dir, settings.seed)
        _write_picture(folder, made, "figure1", figure1.draw(*figure1.panels(moons, settings.seed)))
    return made


def _load_all(names: Sequence[str], data_dir: str | None, made: Reproduction) -> list[Bunch]:
    data = []
    for name in names:
        try:
            data.append(load(name, data_dir))
        except DatasetNotFoundError as error:
            made.missing[name] = str(error)
    if not data:
        raise DatasetNotFoundError(f"none of the data sets is available; {next(iter(made.missing.values()))}")
    return data


def _write_tables(
    folder: Path, made: Reproduction, data: Sequence[Bunch], results: Results, parts: tuple[str, ...]
) -> None:
    made.tables = [claims(results), tables.table1(data)]
    if "table2" in parts:
        made.tables += [tables.table2(results), tables.comparisons(results, "table2")]
    if "table3" in parts:
        made.tables += [*tables.table3(results), tables.comparisons(results, "table3"), tables.rank_table(results)]
        for score, title in {"f1_decision": "F1", "log_loss": "log loss"}.items():
            picture = draw_ranks(*tables.ranks(results, score), f"Average ranks in {title}")
            _write_picture(folder, made, f"ranks_{title.replace(' ', '_').lower()}", picture)
    for table in made.tables:
        atomic_write(folder / f"{table.name}.md", table.markdown().encode())
        atomic_write(folder / f"{table.name}.csv", table.csv().encode())


def _write_raw(folder: Path, results: Results, settings: Settings) -> None:
    """Write the trials of each data set as one file, method by method: score -> list over trials."""
    for name, trials in results.items():
        gathered: dict[str, Any] = {}
        for table in trials[0]:
            for method in trials[0][table]:
                scores = {
                    score: [float(f"{trial[table][method][score]:.6g}") for trial in trials]
                    for score in trials[0][table][method]
                }
                gathered.setdefault(table, {})[method] = scores
        content = {"data": name, "seed": settings.seed, "split": settings.split, **gathered}
        atomic_write(folder / f"{name}.json", (json.dumps(content, separators=(",", ":")) + "\n").encode())


def _write_picture(folder: Path, made: Reproduction, name: str, figure: Any) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "safespn"}):
        for kind, metadata in {"svg": {"Date": None}, "png": {"Software": None}}.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
            atomic_write(folder / f"{name}.{kind}", buffer.getvalue())
            if kind == "svg":
                made.pictures[name] = buffer.getvalue().decode()

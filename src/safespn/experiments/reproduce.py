"""The paper's tables and figure, from data to a folder of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sklearn.utils import Bunch

from safespn.datasets import NAMES, load
from safespn.exceptions import DatasetNotFoundError
from safespn.experiments import figure1, tables
from safespn.experiments.claims import claims
from safespn.experiments.outputs import Reproduction, require_matplotlib, write_picture, write_tables
from safespn.experiments.rank_plot import RANK_NOTE, draw_ranks
from safespn.experiments.recorded import gathered, unpack
from safespn.experiments.runner import TrialSettings, run_trials, seconds_of
from safespn.experiments.tables import RANKED, Results
from safespn.foundation.atomic_files import atomic_write

PARTS = {
    "table2": ("table2",),
    "table3": ("table3",),
    "figure1": (),
    "all": ("table2", "table3"),
}
FIGURE1 = ("Figure 1. Two moons", "Class densities, decision boundaries and soft labels.")


def reproduce(
    what: str,
    folder: Path,
    *,
    n_trials: int = 100,
    n_jobs: int = 1,
    data_dir: str | None = None,
    names: Sequence[str] = NAMES,
    settings: TrialSettings | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reproduction:
    """Make a table, the figure or all of them, and write them to a folder.

    Parameters
    ----------
    what : {"table2", "table3", "figure1", "all"}
    folder : Path
        Gets ``trials/`` (raw results, from which an interrupted run resumes; ``NAME.json.gz`` there, the trials of a
        data set that another run has gathered, take the place of fits), tables as Markdown and CSV, pictures as
        SVG and PNG, and the trials of each data set as JSON.
    progress : callable
        Called with the number of finished trials and of all trials.
    """
    require_matplotlib()
    settings = settings or TrialSettings()
    folder.mkdir(parents=True, exist_ok=True)
    made = Reproduction()
    parts = PARTS[what]
    if parts:
        data = _load_all(names, data_dir, made)
        for table in data:
            recorded = folder / "trials" / f"{table.name}.json.gz"
            if recorded.is_file():
                unpack(recorded, folder / "trials" / table.name)
        results = run_trials(data, n_trials, parts, folder / "trials", settings, n_jobs=n_jobs, progress=progress)
        made.seconds = seconds_of(folder / "trials")
        _write_tables(folder, made, data, results, parts)
        for name, trials in results.items():
            atomic_write(folder / f"{name}.json", gathered(name, trials, settings))
    if what in ("figure1", "all"):
        moons = figure1.two_moons(data_dir, settings.seed)
        figure = figure1.draw(*figure1.panels(moons, settings.seed))
        made.pictures["figure1"] = write_picture(folder, "figure1", *FIGURE1, figure)
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
        for score, title in RANKED.items():
            name, heading = f"ranks_{score}", f"Average ranks in {title}"
            figure = draw_ranks(*tables.ranks(results, score), heading)
            made.pictures[name] = write_picture(folder, name, heading, RANK_NOTE, figure)
    write_tables(folder, made.tables)

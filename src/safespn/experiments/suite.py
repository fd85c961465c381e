"""The wide comparison, from a folder of tables to a folder of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safespn.exceptions import DatasetNotFoundError
from safespn.experiments import suite_gains, suite_plots, suite_tables
from safespn.experiments.outputs import (
    Picture,
    Reproduction,
    ResultTable,
    require_matplotlib,
    write_picture,
    write_tables,
)
from safespn.experiments.rank_plot import RANK_NOTE, draw_ranks
from safespn.experiments.runner import Job, Progress, run_jobs, seconds_of
from safespn.experiments.suite_description import data_table, describe
from safespn.experiments.suite_methods import available_fits, run_suite_trial
from safespn.experiments.suite_protocol import BUDGETS, SuiteTable, draw_suite_trial, load_table, table_names
from safespn.experiments.suite_results import (
    FIELDS,
    KEY,
    SCORES,
    as_frame,
    methods_in,
    name_of,
    read_recorded,
    write_trials,
)

if TYPE_CHECKING:
    import pandas as pd

TRIALS_FILE = "trials.csv.gz"
"""All trials of a run, in its folder."""


@dataclass(frozen=True)
class Plan:
    """What to run.

    Parameters
    ----------
    data_dir : Path
        Folder of the tables.
    tables : sequence of str
        Their names; empty for all.
    budgets : sequence of int
        Numbers of labels.
    trials : range
        Settings are chosen on trials 100 and up, others are reported.
    fits : sequence of str
        Of :func:`safespn.experiments.suite_methods.available_fits`; empty for all.
    recorded : Path, optional
        Recorded trials; what they contain is not run.
    """

    data_dir: Path
    tables: Sequence[str] = ()
    budgets: Sequence[int] = BUDGETS
    trials: range = range(5)
    fits: Sequence[str] = ()
    recorded: Path | None = None


def reproduce_suite(
    plan: Plan, folder: Path, *, n_jobs: int = 1, progress: Progress = lambda done, total: None
) -> Reproduction:
    """Run the comparison and write its results to a folder.

    Parameters
    ----------
    folder : Path
        Gets ``trials/`` (raw results, from which an interrupted run resumes), all of them as ``trials.csv.gz``, tables
        as Markdown and CSV, and pictures as SVG and PNG.
    """
    require_matplotlib()
    tables = [load_table(plan.data_dir, name) for name in plan.tables or table_names(plan.data_dir)]
    recorded = None if plan.recorded is None else _recorded(plan, tables)
    fits = _fits(plan, recorded)
    jobs = dict(_trial_jobs(plan, tables, fits, folder / "trials"))
    if not jobs:
        raise DatasetNotFoundError(
            f"no table of {plan.data_dir} is large enough: a number of labels needs twice as many training rows"
        )
    of_tables = {table.name: _description_job(plan, table, folder / "trials") for table in tables}
    run_jobs([*of_tables.values(), *(job for job in jobs.values() if job.parts)], n_jobs=n_jobs, progress=progress)
    trials = _gather(jobs, fits, recorded)
    made = Reproduction(missing=_failures(trials), seconds=seconds_of(folder / "trials"))
    write_trials(folder / TRIALS_FILE, trials)
    _show(made, trials, _descriptions(of_tables), plan, folder)
    return made


def _fits(plan: Plan, recorded: pd.DataFrame | None) -> tuple[str, ...]:
    """Names of the fits to run."""
    if plan.fits:
        return tuple(plan.fits)
    known = set() if recorded is None else set(recorded["method"])
    return tuple(name for name in available_fits() if name not in known)


def _recorded(plan: Plan, tables: Sequence[SuiteTable]) -> pd.DataFrame:
    """Recorded trials that belong to the plan."""
    assert plan.recorded is not None
    frame = read_recorded(plan.recorded)
    asked = (
        frame["table"].isin([table.name for table in tables])
        & frame["budget"].isin(plan.budgets)
        & frame["trial"].isin(plan.trials)
    )
    if not asked.any():
        raise DatasetNotFoundError(f"{plan.recorded} has no trial of these tables, numbers of labels and trials")
    return frame[asked]


def _trial_jobs(
    plan: Plan, tables: Sequence[SuiteTable], fits: tuple[str, ...], folder: Path
) -> Iterator[tuple[tuple[str, int, int], Job]]:
    """A job for each table, number of labels that the table is large enough for, and trial."""
    for trial in plan.trials:
        for budget in plan.budgets:
            for table in tables:
                if draw_suite_trial(table, budget, trial) is not None:
                    path = folder / table.name / f"{budget:04d}-{trial:04d}.json"
                    compute = partial(_run_one, plan.data_dir, table.name, budget, trial)
                    yield (table.name, budget, trial), Job(path, _settings(table), fits, compute)


def _description_job(plan: Plan, table: SuiteTable, folder: Path) -> Job:
    path = folder / table.name / "description.json"
    return Job(path, _settings(table), ("description",), partial(_describe_one, plan.data_dir, table.name))


def _settings(table: SuiteTable) -> dict[str, int]:
    """What distinguishes a table from another one of the same name."""
    return {"rows": len(table.codes), "columns": table.features.shape[1], "classes": table.n_classes}


def _run_one(data_dir: Path, name: str, budget: int, number: int, fits: tuple[str, ...]) -> dict[str, Any]:
    trial = draw_suite_trial(load_table(data_dir, name), budget, number)
    assert trial is not None  # jobs are made for tables that are large enough
    return run_suite_trial(trial, number, fits)


def _describe_one(data_dir: Path, name: str, parts: tuple[str, ...]) -> dict[str, Any]:
    return dict.fromkeys(parts, describe(load_table(data_dir, name)))


def _gather(
    jobs: dict[tuple[str, int, int], Job], fits: tuple[str, ...], recorded: pd.DataFrame | None
) -> pd.DataFrame:
    """All trials, those of this run before recorded ones."""
    import pandas as pd

    run = as_frame(
        (*key, {fit: scores for fit, scores in job.found().items() if fit in fits}) for key, job in jobs.items()
    )
    rows = [row for part in (run, recorded) if part is not None for row in part.to_dict("records")]
    trials = pd.DataFrame(rows, columns=FIELDS).drop_duplicates([*KEY, "method"])
    # Recorded scores have six decimals; with more of ours, methods that tie would not.
    trials[list(SCORES)] = trials[list(SCORES)].round(6)
    return trials.sort_values(KEY, kind="stable", ignore_index=True)


def _descriptions(jobs: dict[str, Job]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame.from_dict({name: job.found()["description"] for name, job in jobs.items()}, orient="index")


def _failures(trials: pd.DataFrame) -> dict[str, str]:
    """Fits that failed: method and table -> the first error."""
    failed = trials[trials["error"].notna()]
    return {
        f"{method} on {table}": (
            f"{name_of(str(method))} failed on {table} in {len(part)} trials, first with {part['error'].iloc[0]}"
        )
        for (method, table), part in failed.groupby(["method", "table"])
    }


def _show(made: Reproduction, trials: pd.DataFrame, descriptions: pd.DataFrame, plan: Plan, folder: Path) -> None:
    budgets = suite_tables.budgets_in(trials)
    of_budgets = [suite_tables.budget_table(trials, budget) for budget in budgets]
    if "safespn" in methods_in(trials):
        made.tables = [suite_tables.suite_claims(trials), *of_budgets, suite_tables.wins_table(trials)]
    else:
        made.tables = of_budgets
    if (curves := suite_plots.curves(trials)) is not None:
        figure = suite_plots.draw_curves(curves)
        made.pictures["suite_curves"] = write_picture(folder, "suite_curves", *suite_plots.CURVES, figure, "summary")
    by_table = suite_gains.gains_by_table(trials, descriptions)
    if "safespn accuracy" in by_table:
        made.tables += _gain_tables(trials, by_table)
        figure = suite_plots.draw_gains(by_table)
        name = "suite_gains_plot"
        made.pictures[name] = write_picture(folder, name, *suite_plots.GAINS, figure, "suite_predictors")
    made.tables += [suite_tables.seconds_table(trials), data_table(descriptions, plan.data_dir)]
    made.pictures |= _rank_pictures(trials, budgets, folder)
    write_tables(folder, made.tables)


def _gain_tables(trials: pd.DataFrame, by_table: pd.DataFrame) -> list[ResultTable]:
    return [
        suite_gains.gain_table(trials),
        suite_gains.prediction_table(by_table),
        suite_gains.gain_by_table_table(by_table),
    ]


def _rank_pictures(trials: pd.DataFrame, budgets: Sequence[int], folder: Path) -> dict[str, Picture]:
    pictures = {}
    for budget in budgets:
        for score in suite_tables.RANKED:
            methods, average, difference, _ = suite_tables.ranks(trials, budget, score)
            if methods:
                name, title = f"suite_ranks_{budget}_{score}", f"Average ranks in {SCORES[score]}, {budget} labels"
                figure = draw_ranks([name_of(method) for method in methods], average, difference, title)
                pictures[name] = write_picture(folder, name, title, RANK_NOTE, figure, f"suite_{budget}")
    return pictures

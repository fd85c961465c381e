"""Runs trials in parallel, each kept in a file of its own, so that an interrupted run resumes where it stopped."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from safespn.engine.backends import use_engine
from safespn.exceptions import ResultsMismatchError
from safespn.experiments.methods import run_trial
from safespn.experiments.protocol import draw_trial
from safespn.foundation.atomic_files import atomic_write

DIGITS = 10
"""Significant digits kept of a score."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Job:
    """A file of results, and how to compute the parts that it lacks.

    Parameters
    ----------
    path : Path
    settings : mapping
        What decides the outcome besides the place of the file; a file with others is refused.
    parts : tuple of str
        Names of what the file should hold.
    compute : callable
        From names of parts to their results: nested dicts of numbers and texts.
    """

    path: Path
    settings: Mapping[str, Any]
    parts: tuple[str, ...]
    compute: Callable[[tuple[str, ...]], dict[str, Any]]

    def found(self) -> dict[str, Any]:
        """Parts that an earlier run has left; none where the file is damaged."""
        return dict(self._content()["scores"])

    def missing(self) -> tuple[str, ...]:
        found = self.found()
        return tuple(part for part in self.parts if part not in found)

    def run(self) -> None:
        """Compute the missing parts and write the file; the processor time of all its parts is kept with them."""
        before = self._content()
        started = time.process_time()
        # One pass for all trials: rounding must not depend on what a process has done before.
        with threadpool_limits(1), use_engine("compiled"):
            computed = self.compute(self.missing())
        seconds = before["seconds"] + time.process_time() - started
        scores = {**before["scores"], **_rounded(computed)}
        content = {"settings": dict(self.settings), "seconds": round(seconds, 3), "scores": scores}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(self.path, json.dumps(content, indent=1).encode())

    def _content(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {"seconds": 0.0, "scores": {}}
        if not self.path.is_file():
            return nothing
        try:
            content = json.loads(self.path.read_text())
            settings, _ = content["settings"], (content["scores"], content["seconds"])
        except (ValueError, KeyError):
            return nothing
        if settings != dict(self.settings):
            raise ResultsMismatchError(
                f"{self.path} holds a trial with {settings}, not {dict(self.settings)}; "
                "choose another output folder or delete it"
            )
        return dict(content)


def run_jobs(jobs: Sequence[Job], *, n_jobs: int = 1, progress: Progress = lambda done, total: None) -> None:
    """Run the jobs whose files lack something.

    Parameters
    ----------
    n_jobs : int
        Processes of joblib; another backend of joblib serves as well.
    progress : callable
        Called with the number of finished jobs and of all jobs.
    """
    missing = [job for job in jobs if job.missing()]
    done = len(jobs) - len(missing)
    progress(done, len(jobs))
    finished: Iterable[None] = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(Job.run)(job) for job in missing
    )
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, and warns of it in a thread that hands out jobs: where
        # warnings are errors that thread ends, and the other jobs would wait for ever.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        for _ in finished:
            done += 1
            progress(done, len(jobs))


@dataclass(frozen=True)
class TrialSettings:
    """What decides the outcome of a trial of the paper besides its data and number.

    Parameters
    ----------
    seed : int
    split : {"new", "fixed"}
        A new test set for each trial, or one for all of them.
    """

    seed: int = 0
    split: str = "new"


def run_trials(
    data: Sequence[Bunch],
    n_trials: int,
    tables: tuple[str, ...],
    folder: Path,
    settings: TrialSettings,
    *,
    n_jobs: int = 1,
    progress: Progress = lambda done, total: None,
) -> dict[str, list[dict[str, Any]]]:
    """Run the paper's trials of each data set that are not in the folder yet, and return all of them.

    Parameters
    ----------
    data : sequence of Bunch
        From :func:`safespn.datasets.load`.
    tables : tuple of "table2", "table3"
    folder : Path
        Keeps one file per data set and trial.

    Returns
    -------
    dict
        Data set -> list over trials of table -> method -> score -> value.
    """
    jobs = {
        (table.name, trial): Job(
            Path(folder, table.name, f"{trial:04d}.json"),
            asdict(settings),
            tables,
            partial(_run_one, table, trial, settings),
        )
        for trial in range(n_trials)
        for table in data
    }
    run_jobs(list(jobs.values()), n_jobs=n_jobs, progress=progress)
    return {table.name: [jobs[table.name, trial].found() for trial in range(n_trials)] for table in data}


def seconds_of(folder: Path) -> float:
    """Processor time of all trials in a folder."""
    return sum(float(json.loads(path.read_text())["seconds"]) for path in sorted(folder.glob("*/*.json")))


def _run_one(table: Bunch, trial: int, settings: TrialSettings, tables: tuple[str, ...]) -> dict[str, Any]:
    codes = np.unique(table.target, return_inverse=True)[1]
    drawn = draw_trial(table.data, codes, trial, seed=settings.seed, fixed_split=settings.split == "fixed")
    return run_trial(drawn, tables)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return value if isinstance(value, str) else float(f"{value:.{DIGITS}g}")

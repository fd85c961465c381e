"""Runs trials in parallel, each kept in a file of its own, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from safespn.exceptions import ResultsMismatchError
from safespn.experiments.methods import run_trial
from safespn.experiments.protocol import draw_trial
from safespn.foundation.atomic_files import atomic_write

DIGITS = 10
"""Significant digits kept of a score."""


@dataclass(frozen=True)
class Settings:
    """What decides the outcome of a trial besides its data and number.

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
    settings: Settings,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, list[dict[str, Any]]]:
    """Run the trials of each data set that are not in the folder yet, and return all of them.

    Parameters
    ----------
    data : sequence of Bunch
        From :func:`safespn.datasets.load`.
    tables : tuple of "table2", "table3"
    folder : Path
        Keeps one file per data set and trial.
    n_jobs : int
        Processes of joblib; another backend of joblib serves as well.
    progress : callable
        Called with the number of finished trials and of all trials.

    Returns
    -------
    dict
        Data set -> list over trials of table -> method -> score -> value.
    """
    wanted = [(table, trial) for trial in range(n_trials) for table in data]
    missing = [job for job in wanted if not set(tables) <= _found(_path(folder, *job), settings).keys()]
    done = len(wanted) - len(missing)
    progress(done, len(wanted))
    jobs = (delayed(_run_one)(table, trial, tables, _path(folder, table, trial), settings) for table, trial in missing)
    finished: Iterable[None] = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    for _ in finished:
        done += 1
        progress(done, len(wanted))
    return {
        table.name: [json.loads(_path(folder, table, trial).read_text())["scores"] for trial in range(n_trials)]
        for table in data
    }


def seconds_of(folder: Path) -> float:
    """Processor time of all trials in a folder."""
    return sum(float(json.loads(path.read_text())["seconds"]) for path in sorted(folder.glob("*/*.json")))


def _run_one(table: Bunch, trial: int, tables: tuple[str, ...], path: Path, settings: Settings) -> None:
    codes = np.unique(table.target, return_inverse=True)[1]
    drawn = draw_trial(table.data, codes, trial, seed=settings.seed, fixed_split=settings.split == "fixed")
    started = time.process_time()
    with threadpool_limits(1):
        scores = run_trial(drawn, tables)
    scores = _found(path, settings) | scores
    content = {
        "settings": asdict(settings),
        "data": {"name": table.name, "shape": list(table.data.shape)},
        "trial": trial,
        "seconds": round(time.process_time() - started, 3),
        "scores": _rounded(scores),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(content, indent=1).encode())


def _path(folder: Path, table: Bunch, trial: int) -> Path:
    return Path(folder, table.name, f"{trial:04d}.json")


def _found(path: Path, settings: Settings) -> dict[str, Any]:
    """Scores by table that an earlier run has left; nothing where the file is damaged."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text())
        found, scores = content["settings"], content["scores"]
    except (ValueError, KeyError):
        return {}
    if found != asdict(settings):
        raise ResultsMismatchError(
            f"{path} holds a trial with {found}, not {asdict(settings)}; choose another output folder or delete it"
        )
    return dict(scores)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return float(f"{value:.{DIGITS}g}")

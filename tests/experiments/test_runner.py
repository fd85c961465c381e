import json
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils import Bunch

from safespn.exceptions import ResultsMismatchError
from safespn.experiments import runner
from safespn.experiments.runner import Job, TrialSettings, run_jobs, run_trials


@pytest.fixture
def iris():
    data, target = load_iris(return_X_y=True)
    return Bunch(data=data, target=target, name="iris", source="memory")


@pytest.fixture
def calls(monkeypatch):
    """Replace the methods by something quick that leaves a trace."""
    seen = []

    def run_trial(trial, tables):
        seen.append(tables)
        return {table: {"method": {"f1": float(trial.test.mean()), "third": 1 / 3}} for table in tables}

    monkeypatch.setattr(runner, "run_trial", run_trial)
    return seen


def test_finished_trials_are_not_run_again(iris, calls, tmp_path):
    first = run_trials([iris], 3, ("table2",), tmp_path, TrialSettings())
    progress = []
    again = run_trials([iris], 5, ("table2",), tmp_path, TrialSettings(), progress=lambda *now: progress.append(now))
    assert len(calls) == 5
    assert again["iris"][:3] == first["iris"]
    assert progress == [(3, 5), (4, 5), (5, 5)]
    assert first["iris"][0]["table2"]["method"]["third"] == 0.3333333333


def test_another_table_is_added_to_what_is_there(iris, calls, tmp_path):
    run_trials([iris], 1, ("table2",), tmp_path, TrialSettings())
    both = run_trials([iris], 1, ("table2", "table3"), tmp_path, TrialSettings())
    assert set(both["iris"][0]) == {"table2", "table3"}


def test_a_damaged_trial_is_run_again(iris, calls, tmp_path):
    run_trials([iris], 2, ("table2",), tmp_path, TrialSettings())
    path = tmp_path / "iris" / "0001.json"
    path.write_text(path.read_text()[:40])
    assert len(run_trials([iris], 2, ("table2",), tmp_path, TrialSettings())["iris"]) == 2
    assert len(calls) == 3
    assert "table2" in json.loads(path.read_text())["scores"]


@pytest.mark.parametrize("other", [TrialSettings(seed=1), TrialSettings(split="fixed")])
def test_trials_of_other_settings_are_not_mixed_in(iris, calls, tmp_path, other):
    run_trials([iris], 1, ("table2",), tmp_path, TrialSettings())
    with pytest.raises(ResultsMismatchError, match=r"0000\.json holds a trial with .* choose another output folder"):
        run_trials([iris], 1, ("table2",), tmp_path, other)


def test_trials_depend_on_their_number_only(iris, calls, tmp_path):
    several = run_trials([iris], 2, ("table2",), tmp_path / "a", TrialSettings())
    one = run_trials([iris], 1, ("table2",), tmp_path / "b", TrialSettings())
    assert several["iris"][0] == one["iris"][0]
    assert not np.isclose(several["iris"][0]["table2"]["method"]["f1"], several["iris"][1]["table2"]["method"]["f1"])


HELD = []


def hold_memory(parts):
    """Keep more memory than joblib lets a process keep, for longer than it waits between two looks."""
    HELD.append(np.ones(50_000_000))
    time.sleep(1.1)
    return {part: {"mib": 381.0} for part in parts}


def run_jobs_that_hold_memory(folder):
    run_jobs([Job(folder / f"{number}.json", {}, ("held",), hold_memory) for number in range(5)], n_jobs=2)


@pytest.mark.slow
def test_processes_whose_memory_grows_are_replaced_also_where_warnings_are_errors(tmp_path):
    program = (
        f"from pathlib import Path; from tests.experiments.test_runner import run_jobs_that_hold_memory as run; "
        f"run(Path({str(tmp_path)!r}))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=120)
    assert len(list(tmp_path.glob("*.json"))) == 5

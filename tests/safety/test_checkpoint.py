"""Fits that are interrupted go on where they were, with the same result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from safespn import SafeSPNClassifier
from safespn.safety import checkpoint
from safespn.safety.climb import Climber
from tests.rows.tables import blobs


class StoppedError(Exception):
    pass


@pytest.fixture
def steps(monkeypatch):
    """Count the steps that fits make themselves, and interrupt them when there are none left."""
    counter = {"left": 10**9, "made": 0}
    original = Climber.step

    def step(self, rule, guess, best):
        if self.journal is None or not self.journal.knows(len(self.history) + 1):
            if counter["left"] == 0:
                raise StoppedError
            counter["left"] -= 1
            counter["made"] += 1
        return original(self, rule, guess, best)

    monkeypatch.setattr(Climber, "step", step)
    return counter


@pytest.mark.parametrize("n_steps", [1, 7, 30])
@pytest.mark.parametrize("options", [{}, {"batch_size": 60, "max_iter": 40}], ids=str)
def test_an_interrupted_fit_goes_on_to_the_same_result(tmp_path, steps, monkeypatch, n_steps, options):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(250)
    whole = SafeSPNClassifier(random_state=0, **options).fit(X, partly)
    folder = tmp_path / "steps"
    classifier = SafeSPNClassifier(random_state=0, checkpoint=folder, **options)
    steps["left"] = n_steps
    with pytest.raises(StoppedError):
        classifier.fit(X, partly)
    assert not hasattr(classifier, "spn_")
    assert list(folder.glob("step-*"))
    steps.update(left=10**9, made=0)
    classifier.fit(X, partly)
    assert steps["made"] == whole.n_iter_ - n_steps
    np.testing.assert_array_equal(classifier.joint_log_likelihood(X), whole.joint_log_likelihood(X))
    np.testing.assert_array_equal(classifier.soft_labels_, whole.soft_labels_)
    assert classifier.history_ == whole.history_
    assert not folder.exists()


def test_another_fits_checkpoint_is_refused(tmp_path, steps):
    X, _, partly = blobs(150)
    steps["left"] = 3
    with pytest.raises(StoppedError):
        SafeSPNClassifier(random_state=0, checkpoint=tmp_path).fit(X, partly)
    for other, options in ((X + 1, {}), (X, {"tol": 1e-3})):
        with pytest.raises(
            ValueError, match=r"belongs to a fit of other rows or settings; delete it or choose another"
        ):
            SafeSPNClassifier(random_state=0, checkpoint=tmp_path, **options).fit(other, partly)


def test_a_damaged_checkpoint_is_refused(tmp_path, steps):
    X, _, partly = blobs(150)
    steps["left"] = 3
    with pytest.raises(StoppedError):
        SafeSPNClassifier(random_state=0, checkpoint=tmp_path).fit(X, partly)
    steps["left"] = 10**9
    (file,) = tmp_path.glob("step-*/steps.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"steps\.safetensors cannot be read .*; delete it"):
        SafeSPNClassifier(random_state=0, checkpoint=tmp_path).fit(X, partly)


SCRIPT = """
import sys
import numpy as np
from safespn import SafeSPNClassifier
from tests.rows.tables import blobs
X, _, partly = blobs(20_000, n_columns=6)
lazily = sys.argv[3] == "dask"
if lazily:
    import dask.array as da
    X = da.from_array(X, chunks=(4_000, 6))
options = {} if sys.argv[1] == "-" else {"checkpoint": sys.argv[1]}
fitted = SafeSPNClassifier(random_state=0, tol=0, **options).fit(X, partly)
np.save(sys.argv[2], np.asarray(fitted.joint_log_likelihood(X)))
"""


@pytest.mark.parametrize("where", ["memory", "dask"])
def test_a_killed_process_goes_on_to_the_same_result(tmp_path, where):
    if where == "dask":
        pytest.importorskip("dask", reason="needs the extra [dask]")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}

    def start(checkpoint, output):
        arguments = [sys.executable, "-c", SCRIPT, str(checkpoint), str(tmp_path / output), where]
        return subprocess.Popen(arguments, env=environment)

    folder = tmp_path / "steps"
    killed = start(folder, "killed.npy")
    deadline = time.monotonic() + 120
    while not list(folder.glob("step-*")):
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed.npy").exists()
    assert list(folder.glob("step-*"))
    assert start(folder, "resumed.npy").wait() == 0
    assert start("-", "whole.npy").wait() == 0
    resumed, whole = np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy")
    np.testing.assert_allclose(resumed, whole, rtol=1e-9)
    assert not folder.exists()

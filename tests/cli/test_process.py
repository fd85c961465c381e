"""The installed command as a process of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import ONE_FIT, ONE_NETWORK, patients
from tests.processes import COMMAND, call

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND.exists(), reason="the command safespn is not installed"),
]


@pytest.mark.xdist_group("demo")
def test_demo_ends_with_a_summary_and_a_report(demo_run):
    done, folder = demo_run
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("report: report.html")
    assert "accuracy" in done.stdout
    assert "certified            yes" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    assert "Predicting diagnosis" in (folder / "report.html").read_text()


def test_fit_and_predict(tmp_path):
    patients(120, 5).to_csv(tmp_path / "t.csv", index=False)
    files = ("-o", "m.safespn", "--report", "r.html")
    fit = call("fit", "t.csv", "--target", "outcome", *files, *ONE_NETWORK, folder=tmp_path)
    assert fit.returncode == 0, fit.stderr
    predict = call("predict", "m.safespn", "t.csv", "-o", "out.csv", folder=tmp_path)
    assert predict.returncode == 0, predict.stderr
    assert len(pd.read_csv(tmp_path / "out.csv")) == 120
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safespn", "out.csv", "r.html", "t.csv"]


def test_evaluate(tmp_path):
    patients(150, 100).to_csv(tmp_path / "t.csv", index=False)
    done = call("evaluate", "t.csv", "-t", "outcome", "--labelled", 10, "--trials", 1, *ONE_NETWORK, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 trial, scored on at least 20 labelled rows each" in done.stdout


def test_a_mistake_is_one_line_and_status_2(tmp_path):
    done = call("fit", "none.csv", "--target", "y", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "safespn: none.csv: no such file; check the name and the folder\n"


def _wait_for(stream, words: str) -> None:
    for line in stream:
        if words in line:
            return
    raise AssertionError(f"the process ended without saying {words!r}")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_fits_leave_nothing(tmp_path, number, status):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(20_000, 30)), columns=[f"x{column}" for column in range(30)])
    frame["y"] = [*("ab" * 100), *([""] * 19_800)]
    frame.to_parquet(tmp_path / "t.parquet")
    process = subprocess.Popen(
        [COMMAND, "fit", "t.parquet", "-t", "y", "-o", "m", "--report", "r.html"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(process.stderr, "fitting")
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    if number == signal.SIGINT:
        assert err.splitlines()[-1] == "safespn: interrupted; nothing was written"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_predictions_leave_nothing(tmp_path, model_file, number, status):
    patients(200_000).to_parquet(tmp_path / "t.parquet")
    process = subprocess.Popen(
        [COMMAND, "predict", str(model_file), "t.parquet", "-o", "out.csv"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(process.stderr, "predicting")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_reader_that_has_seen_enough(tmp_path, model_file):
    patients(100_000).to_parquet(tmp_path / "t.parquet")
    with subprocess.Popen(
        [COMMAND, "predict", str(model_file), "t.parquet"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().startswith('"class"')
        process.stdout.close()
        errors = process.stderr.read()
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
    assert "Exception" not in errors


@pytest.mark.parametrize(
    ("streams", "status", "error"),
    [
        (">&-", 2, "safespn: standard output is closed; write the result to a file with --output\n"),
        (">&- 2>&-", 2, ""),
        (">/dev/full", 2, "safespn: No space left on device; check the path, its permissions and the space left\n"),
        ("2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
        ("<&- >&- 2>&- -o out.csv", 0, ""),
        (">/dev/full -o out.csv -q", 0, ""),
        ("--id none 2>&-", 2, ""),
        ("--id none 2>/dev/full", 2, ""),
    ],
)
def test_predictions_with_streams_that_are_closed_or_full(tmp_path, model_file, streams, status, error):
    patients().to_csv(tmp_path / "t.csv", index=False)
    words = f"{shlex.quote(str(COMMAND))} predict {shlex.quote(str(model_file))} t.csv {streams}"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    told = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("predicting"))
    assert (done.returncode, told) == (status, error)
    if status == 0:
        table = done.stdout if "-o" not in streams else (tmp_path / "out.csv").read_text()
        assert len(table.splitlines()) == 121


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_fits_with_streams_that_are_closed_or_full(tmp_path, model_file, streams):
    patients().to_csv(tmp_path / "t.csv", index=False)
    words = f"{shlex.quote(str(COMMAND))} fit t.csv -t outcome {' '.join(ONE_FIT)} -o m {streams}"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m").read_bytes() == model_file.read_bytes()


def test_importing_the_library_needs_nothing_of_the_command_line():
    # scikit-learn itself imports pandas where there is one, so the packages are made unavailable.
    packages = ["typer", "rich", "pandas", "pyarrow", "jinja2", "matplotlib"]
    code = f"import sys; sys.modules.update(dict.fromkeys({packages})); import safespn"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_that_is_not_installed_is_named(tmp_path):
    code = "import sys; sys.modules['typer'] = None; from safespn.cli import main; sys.argv = ['safespn']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "safespn: typer is not installed; pip install 'safespn[cli]' installs it\n"


@pytest.mark.parametrize("source", ["pipe", "/dev/stdin"])
def test_tables_from_a_pipe(tmp_path, model_file, source):
    patients().to_csv(tmp_path / "t.csv", index=False)
    content = (tmp_path / "t.csv").read_bytes()

    def through(*arguments: object) -> subprocess.CompletedProcess[bytes]:
        if source == "/dev/stdin":
            command = [COMMAND, *(source if each == "DATA" else each for each in arguments)]
            return subprocess.run(command, input=content, capture_output=True, timeout=120)
        words = " ".join("<(cat t.csv)" if each == "DATA" else shlex.quote(str(each)) for each in (COMMAND, *arguments))
        return subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, timeout=120)

    predicted = through("predict", model_file, "DATA", "-q")
    assert predicted.returncode == 0, predicted.stderr
    assert len(predicted.stdout.splitlines()) == 121
    fitted = through("fit", "DATA", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "-q")
    assert fitted.returncode == 0, fitted.stderr
    assert (tmp_path / "m").read_bytes() == model_file.read_bytes()

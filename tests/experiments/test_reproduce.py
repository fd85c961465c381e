"""The command as users run it: content of its results, interruptions, missing data."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

pytest.importorskip("typer", reason="needs the extra [cli]")

from tests.report.test_page import browser, show  # noqa: F401

from safespn import datasets
from safespn.cli.app import run
from safespn.experiments import outputs
from safespn.experiments import reproduce as module
from safespn.experiments.claims import claims
from safespn.experiments.recorded import gathered
from safespn.experiments.runner import TrialSettings
from safespn.experiments.tables import (
    SEMI_SUPERVISED,
    SIDE_BY_SIDE,
    TABLE2_METHODS,
    TABLE3_OTHERS,
    TABLE3_OURS,
    table1,
)

ARGUMENTS = ["--trials", "2", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder with a small iris table: every trial takes about a second."""
    path = tmp_path_factory.mktemp("data")
    data, target = load_iris(return_X_y=True)
    rows = [",".join([*map(str, row), str(label)]) for row, label in zip(data[::2], target[::2], strict=True)]
    (path / "iris.csv").write_text("\n".join(["a,b,c,d,class", *rows]))
    return path


def start(*arguments, **environment):
    command = [Path(sys.executable).parent / "safespn", "reproduce", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def tables_of(path):
    return {file.name: file.read_bytes() for kind in ("*.md", "*.csv", "*.svg") for file in sorted(path.glob(kind))}


@pytest.fixture(scope="module")
def uninterrupted(folder, tmp_path_factory):
    """The tables of a run that nothing interrupted."""
    out = tmp_path_factory.mktemp("uninterrupted")
    arguments = ["table3", *ARGUMENTS, "--data-dir", folder, "--data-sets", "iris", "-o", out]
    assert run(["reproduce", *map(str, arguments)]) == 0
    return tables_of(out)


@pytest.mark.slow
@pytest.mark.xdist_group("interrupted trials")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_to_the_same_tables(folder, uninterrupted, tmp_path, how):
    arguments = ["table3", *ARGUMENTS, "--data-dir", folder, "--data-sets", "iris"]
    process = start(*arguments, "-o", tmp_path / "interrupted")
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("interrupted/trials/iris/0000.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    assert process.returncode == (130 if how == signal.SIGINT else -how), error
    assert not list(tmp_path.glob("interrupted/*.md"))
    assert run(["reproduce", *map(str, arguments), "-o", str(tmp_path / "interrupted")]) == 0
    assert tables_of(tmp_path / "interrupted") == uninterrupted
    assert {"table1.md", "table3.csv", "ranks_f1.svg", "summary.md"} <= set(uninterrupted)


@pytest.mark.slow
def test_a_missing_data_set_is_told_and_skipped(folder, tmp_path, monkeypatch, capfd):
    def load(name, data_dir):
        if name != "iris":
            raise datasets.DatasetNotFoundError(f"data set {name!r}: put {name}.csv into a folder")
        return datasets.load(name, data_dir)

    monkeypatch.delenv("SAFESPN_SUITE", raising=False)
    monkeypatch.setattr(module, "load", load)
    monkeypatch.setattr(module, "run_trials", lambda data, *_, **__: {"iris": [FAKE, FAKE]})
    arguments = ["all", *ARGUMENTS, "--data-dir", str(folder), "--data-sets", "iris,bupa", "-o", str(tmp_path)]
    assert run(["reproduce", *arguments]) == 1
    error = capfd.readouterr().err
    assert "skipped data set 'bupa': put bupa.csv into a folder" in error
    assert "safespn: incomplete, without bupa" in error
    assert "without the wide comparison: SAFESPN_SUITE names no folder with its tables" in error
    assert "bupa" in (tmp_path / "index.html").read_text()
    assert run(["reproduce", *arguments[:-4], "--data-sets", "bupa", "-o", str(tmp_path)]) == 2
    assert "none of the data sets is available" in capfd.readouterr().err


FAKE = {
    "table2": {
        name: {"log_likelihood": -1.0, "worst_case": 1.0, "fallback": 0.0, "disagreement": 0.0}
        for name in TABLE2_METHODS
    },
    "table3": {
        name: {"f1": 0.5, "f1_decision": 0.5, "macro_f1": 0.5, "accuracy": 0.5, "log_loss": 0.5}
        for name in (*TABLE3_OURS, *TABLE3_OTHERS)
    },
}


def test_certificates_are_counted_for_each_kind_of_fits():
    gave_up = {**FAKE["table2"], "certified": {**FAKE["table2"]["certified"], "fallback": 1.0}}
    univariate = {**FAKE["table2"]["certified univariate"], "worst_case": -1.0}
    negative = {**FAKE["table2"], "certified univariate": univariate}
    measured = dict(claims({"iris": [{"table2": gave_up}, {"table2": negative}]}).rows)
    assert measured["committees: worst case not negative, recomputed"] == "2 of 2 certified fits"
    assert measured["committees: supervised model returned instead"] == "50.0 % of certified fits"
    assert measured["univariate networks: worst case not negative, recomputed"] == "1 of 2 certified fits"
    assert measured["univariate networks: supervised model returned instead"] == "0.0 % of certified fits"


def test_recorded_trials_take_the_place_of_fits(folder, tmp_path, capfd):
    recorded = tmp_path / "trials" / "iris.json.gz"
    recorded.parent.mkdir()
    recorded.write_bytes(gzip.compress(gathered("iris", [FAKE] * 3, TrialSettings())))
    arguments = [*ARGUMENTS, "--data-dir", str(folder), "--data-sets", "iris", "-o", str(tmp_path)]
    assert run(["reproduce", "table2", *arguments]) == 0
    assert cells(tmp_path / "table2.csv")["iris"]["certified"] == "-1.00±0.00"
    assert run(["reproduce", "table3", *arguments]) == 0
    assert cells(tmp_path / "table3.csv")["iris"]["extra trees"] == "0.500±0.000"
    assert run(["reproduce", "table2", *arguments, "--seed", "1"]) == 2
    assert "choose another output folder" in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"{}"), gzip.compress(b"[1]"), gzip.compress(b"{}")[:9]])
def test_damaged_records_get_one_line(folder, tmp_path, capfd, content):
    recorded = tmp_path / "trials" / "iris.json.gz"
    recorded.parent.mkdir()
    recorded.write_bytes(content)
    arguments = ["table2", *ARGUMENTS, "--data-dir", str(folder), "--data-sets", "iris", "-o", str(tmp_path)]
    assert run(["reproduce", *arguments]) == 2
    error = capfd.readouterr().err
    assert "iris.json.gz holds no recorded trials" in error
    assert len(error.splitlines()) == 1


def test_mistakes_get_one_line(folder, tmp_path, capfd):
    assert run(["reproduce", "table2", "--data-sets", "mnist", "-o", str(tmp_path)]) == 2
    assert "'mnist' is none of bupa" in capfd.readouterr().err
    assert run(["reproduce", "table9", "-o", str(tmp_path)]) == 2
    assert run(["reproduce", "figure1", "--data-dir", str(tmp_path / "nowhere"), "-o", str(tmp_path)]) == 2


def test_a_missing_library_is_told_before_the_trials(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(outputs, "find_spec", lambda name: None)
    assert run(["reproduce", "all", "-o", str(tmp_path / "out")]) == 2
    assert "matplotlib is not installed; pip install 'safespn[cli]'" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_figure1_on_made_moons(tmp_path):
    assert run(["reproduce", "figure1", "--quiet", "-o", str(tmp_path)]) == 0
    svg = (tmp_path / "figure1.svg").read_text()
    assert svg.count('<g id="axes_') == 6
    assert "figure1" in (tmp_path / "index.html").read_text()


NAMES = ("fertility", "wine")  # two and three classes, and quick
TWO_TRIALS = pytest.mark.xdist_group("two trials")


@pytest.fixture(scope="module")
def data_dir():
    data = os.environ.get("SAFESPN_DATA")
    if not data or not (Path(data) / "bupa.csv").is_file():
        pytest.skip("needs the data sets of the paper in the folder that SAFESPN_DATA names")
    return data


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """Two trials of two data sets and of a table for the wide comparison, through the command."""
    out, suite = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("suite")
    data, target = load_iris(return_X_y=True)
    rows = [",".join([*map(str, row), str(label)]) for row, label in zip(data, target, strict=True)]
    (suite / "flowers.csv").write_text("\n".join(["a,b,c,d,class", *rows]))
    of_paper = ("--data-sets", ",".join(NAMES), "--data-dir", data_dir)
    of_suite = ("--methods", "base,lr", "--budgets", 20)
    process = start("all", "--trials", 2, "--jobs", 2, *of_paper, *of_suite, "-o", out, SAFESPN_SUITE=str(suite))
    _, error = process.communicate(timeout=900)
    assert process.returncode == 0, error
    assert "100 %" in error
    return out


def cells(path):
    with path.open() as file:
        header, *rows = csv.reader(file)
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.slow
@TWO_TRIALS
def test_the_tables_have_what_they_should(whole):
    first, second, third = (cells(whole / f"table{number}.csv") for number in (1, 2, 3))
    assert tuple(first) == NAMES
    assert (first["wine"]["paper N"], first["wine"]["N"]) == ("178", "178")
    assert list(second) == list(third) == [*NAMES, "mean"]
    assert set(TABLE2_METHODS) <= set(second["wine"])
    assert {*TABLE3_OURS, *TABLE3_OTHERS, "paper: SSL"} <= set(third["wine"])
    for row in second.values():
        assert all(-500 < float(row[method].split("±")[0]) < 50 for method in TABLE2_METHODS)
    for row in third.values():
        assert all(0 <= float(row[method].split("±")[0]) <= 1 for method in TABLE3_OURS)
    assert float(third["wine"]["certified, discriminative"].split("±")[0]) > 0.9
    assert {*SIDE_BY_SIDE, "paper: SSL"} == set(cells(whole / "table3_side_by_side.csv")["wine"])
    assert "extra trees" in SIDE_BY_SIDE
    ranked = [row[:2] for row in csv.reader((whole / "ranks.csv").read_text().splitlines()[1:])]
    assert {method for score, method in ranked if score == "F1"} == set(SEMI_SUPERVISED)


@pytest.mark.slow
@TWO_TRIALS
def test_all_includes_the_wide_comparison(whole):
    assert "logistic regression" in cells(whole / "suite" / "suite_20.csv")
    assert (whole / "suite" / "index.html").is_file()


def test_rows_that_a_copy_lacks_are_seen_beside_the_papers(data_dir, tmp_path):
    (tmp_path / "table1.csv").write_text(table1([datasets.load("ilpd", data_dir)]).csv())
    row = cells(tmp_path / "table1.csv")["ilpd"]
    assert (row["paper N"], row["N"]) == ("583", "579")


@pytest.mark.slow
@TWO_TRIALS
def test_every_certificate_holds(whole):
    for name in NAMES:
        raw = json.loads((whole / f"{name}.json").read_text())
        for method in ("certified", "certified univariate"):
            assert len(raw["table2"][method]["worst_case"]) == 2
            assert np.min(raw["table2"][method]["worst_case"]) >= -1e-6
    summary = (whole / "summary.md").read_text()
    for kind in ("committees", "univariate networks"):
        assert f"| {kind}: worst case not negative, recomputed | 4 of 4 certified fits |" in summary


@pytest.mark.slow
@TWO_TRIALS
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_opens_without_errors(whole, browser, width, scheme):  # noqa: F811
    show(browser, whole / "index.html", width, scheme)
    assert browser.get_log("browser") == []
    ids = [element.get_attribute("id") for element in browser.find_elements("css selector", "section")]
    assert {"summary", "table1", "table2", "table3", "ranks", "figure1", "ranks_f1"} <= set(ids)
    loaded = "return [...document.images].every(image => image.complete && image.naturalWidth > 100 && image.alt)"
    assert browser.execute_script(loaded)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width

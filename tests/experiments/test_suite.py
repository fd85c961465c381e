"""The wide comparison as users run it: three small tables through the command, interruptions, mistakes."""

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

pytest.importorskip("pandas", reason="needs the extra [cli]")
pytest.importorskip("typer", reason="needs the extra [cli]")

import pandas as pd
from tests.experiments.test_reproduce import start, tables_of
from tests.report.test_page import browser, show  # noqa: F401

from safespn.cli.app import run
from safespn.experiments import suite_methods
from safespn.experiments.suite_methods import COMPARATORS, OURS, run_suite_trial
from safespn.experiments.suite_protocol import draw_suite_trial, load_table
from safespn.experiments.suite_results import NAMES

TABLES = ("flowers", "mixed", "wines")


def write_tables(folder):
    """Write numbers, numbers in another unit, and a table of both kinds with gaps: small, so that fits are quick."""
    generator = np.random.default_rng(0)
    for name, load in {"flowers": load_iris, "wines": load_wine}.items():
        data, target = load(return_X_y=True)
        rows = generator.permutation(len(data))[:90]
        frame = pd.DataFrame(data[rows, :4], columns=list("abcd"))
        frame.assign(**{"class": target[rows]}).to_csv(folder / f"{name}.csv", index=False)
    classes = generator.integers(2, size=90)
    size = np.where(generator.random(90) < 0.1, np.nan, classes + generator.normal(size=90))
    colour = np.where(generator.random(90) < 0.3, "blue", np.where(classes == 1, "red", "green"))
    mixed = pd.DataFrame({"size": size, "colour": colour, "noise": generator.normal(size=90), "class": classes})
    mixed.to_csv(folder / "mixed.csv.gz", index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite")
    write_tables(path)
    return path


def arguments_for(folder, out, *more):
    return ["suite", "--data-dir", str(folder), "--trials", "1", "--budgets", "20", "-o", str(out), *more]


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """All methods on the three tables, in two processes."""
    out = tmp_path_factory.mktemp("whole")
    assert run(["reproduce", *arguments_for(folder, out, "--quiet", "--jobs", "2")]) == 0
    return out


# One process: each would run the comparison of its own.
GROUP = pytest.mark.xdist_group("suite")


def timeless(path):
    """Tables and pictures of a run without processor times, which differ."""
    return {name: content for name, content in tables_of(path).items() if not name.startswith("suite_seconds")}


@pytest.mark.slow
@GROUP
def test_an_interrupted_run_in_one_process_gives_the_same_tables(folder, tmp_path):
    few = ["--quiet", "--methods", "base,lr,safespn", "--tables", "flowers,mixed"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run(["reproduce", *arguments_for(folder, whole, *few, "--jobs", "2")]) == 0
    process = start(*arguments_for(folder, out, *few))
    deadline = time.monotonic() + 240
    while not list(out.glob("trials/*/0020-0000.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not list(out.glob("*.md"))
    assert run(["reproduce", *arguments_for(folder, out, *few)]) == 0
    assert timeless(out) == timeless(whole)


@pytest.mark.slow
@GROUP
def test_the_results_have_what_they_should(whole):
    trials = pd.read_csv(whole / "trials.csv.gz")
    assert set(trials["table"]) == set(TABLES)
    assert {*OURS, "supervised", *COMPARATORS} <= set(trials["method"])
    assert trials["error"].isna().all()
    scores = trials[["accuracy", "macro_f1", "log_loss", "brier", "calibration_error"]]
    assert scores.notna().all(axis=None)
    assert (trials.loc[trials["method"] == "safespn", "worst_case"] >= -1e-6).all()
    fitted = trials[trials["method"] != "supervised"]
    assert (fitted["seconds"] >= 0).all()
    assert {"suite_20.md", "suite_wins.csv", "suite_gains.csv", "suite_predictors.md", "suite_curves.svg"} <= set(
        tables_of(whole)
    )
    assert NAMES["plain_em"] in (whole / "suite_gains.md").read_text()
    assert "random forest" in (whole / "suite_20.md").read_text()


@pytest.mark.slow
@GROUP
def test_methods_and_trials_are_added_to_what_is_there(folder, tmp_path, capfd):
    few = ["--methods", "base,lr", "--tables", "flowers"]
    assert run(["reproduce", *arguments_for(folder, tmp_path, *few)]) == 0
    printed = capfd.readouterr().out
    assert "20 labels, 1 tables" in printed
    assert "logistic regression" in printed
    path = tmp_path / "trials" / "flowers" / "0020-0000.json"
    before = json.loads(path.read_text())["scores"]
    few[1] = "base,lr,spread"
    assert run(["reproduce", *arguments_for(folder, tmp_path, *few, "--quiet")]) == 0
    after = json.loads(path.read_text())["scores"]
    assert set(after) == {"base", "lr", "spread"}
    assert after["lr"] == before["lr"]  # with its processor time: it was not run again


@pytest.mark.slow
@GROUP
def test_recorded_trials_take_the_place_of_fits(folder, whole, tmp_path):
    recorded = ["--comparators", str(whole / "trials.csv.gz")]
    assert run(["reproduce", *arguments_for(folder, tmp_path, "--quiet", *recorded)]) == 0
    assert not list(tmp_path.glob("trials/*/0020-*.json"))
    assert (tmp_path / "suite_20.md").read_text() == (whole / "suite_20.md").read_text()
    some = ["--methods", "base,lr", *recorded]
    assert run(["reproduce", *arguments_for(folder, tmp_path, "--quiet", *some)]) == 0
    assert (tmp_path / "suite_20.md").read_text() == (whole / "suite_20.md").read_text()


def test_a_fit_that_fails_is_recorded_and_told(folder, tmp_path, monkeypatch, capfd):
    def broken(seed, counts):
        raise ArithmeticError("no such number")

    monkeypatch.setitem(COMPARATORS, "lr", broken)
    few = ["--methods", "base,lr,spread", "--tables", "flowers"]
    assert run(["reproduce", *arguments_for(folder, tmp_path, "--quiet", *few)]) == 1
    error = capfd.readouterr().err
    assert "logistic regression failed on flowers in 1 trials, first with ArithmeticError: no such number" in error
    assert "safespn: incomplete, without lr on flowers" in error
    assert "no such number" in (tmp_path / "index.html").read_text()


def test_mistakes_get_one_line(folder, tmp_path, monkeypatch, capfd):
    def error_of(*arguments):
        assert run(["reproduce", "suite", "-o", str(tmp_path / "out"), *map(str, arguments)]) == 2
        lines = capfd.readouterr().err.strip().splitlines()
        assert len(lines) == 1
        assert not (tmp_path / "out" / "index.html").exists()
        return lines[0]

    monkeypatch.delenv("SAFESPN_SUITE", raising=False)
    assert "suite needs a folder of tables: name it by --data-dir or SAFESPN_SUITE" in error_of()
    assert "does not exist" in error_of("--data-dir", tmp_path / "nowhere")
    assert "holds no table" in error_of("--data-dir", tmp_path)
    (tmp_path / "pets.csv").write_text("legs,kind\n4,dog\n")
    assert "pets.csv has no column 'class'; name the column of labels so" in error_of("--data-dir", tmp_path)
    (tmp_path / "pets.csv").write_text("legs,class\n4,dog\n")
    assert "fewer than two classes have 10 rows" in error_of("--data-dir", tmp_path)
    assert "has neither cars.csv.gz nor cars.csv" in error_of("--data-dir", folder, "--tables", "cars")
    assert "expected numbers of labels such as 20,100, got 'few'" in error_of("--data-dir", folder, "--budgets", "few")
    assert "no table of" in error_of("--data-dir", folder, "--budgets", "1000")
    assert "'svm' is none of safespn" in error_of("--data-dir", folder, "--methods", "svm")
    assert "suite has no such option" in error_of("--data-dir", folder, "--data-sets", "iris")
    (tmp_path / "recorded.csv").write_text("table,trial\n")
    recorded = ["--comparators", tmp_path / "recorded.csv"]
    assert "recorded.csv has no column 'budget'" in error_of("--data-dir", folder, *recorded)


def test_recorded_trials_are_not_overwritten(folder, tmp_path, monkeypatch, capfd):
    recorded = tmp_path / "trials.csv.gz"
    recorded.write_bytes(b"trials of many tables")
    (tmp_path / "suite").symlink_to(tmp_path)
    monkeypatch.setenv("SAFESPN_SUITE", str(folder))
    for what in ("suite", "all"):
        assert run(["reproduce", what, "-o", str(tmp_path), "--comparators", str(recorded)]) == 2
        error = capfd.readouterr().err
        assert "which would be overwritten; choose another output folder" in error
        assert len(error.splitlines()) == 1
    assert recorded.read_bytes() == b"trials of many tables"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["suite", "trials.csv.gz"]


def test_another_table_of_the_same_name_is_not_mixed_in(folder, tmp_path, capfd):
    few = ["--methods", "base,lr", "--tables", "flowers", "--quiet"]
    assert run(["reproduce", *arguments_for(folder, tmp_path / "out", *few)]) == 0
    (tmp_path / "flowers.csv").write_text("\n".join((folder / "flowers.csv").read_text().splitlines()[:-1]))
    assert run(["reproduce", *arguments_for(tmp_path, tmp_path / "out", *few)]) == 2
    assert "choose another output folder or delete it" in capfd.readouterr().err


@pytest.mark.slow
def test_the_worst_case_is_recomputed_and_the_supervised_members_cost_no_fit(folder, monkeypatch):
    trial = draw_suite_trial(load_table(folder, "flowers"), 20, 0)
    fitted = []

    class Counting(suite_methods.SafeSPNClassifier):
        def fit(self, *arguments, **options):
            fitted.append(super().fit(*arguments, **options))
            return self

    monkeypatch.setattr(suite_methods, "SafeSPNClassifier", Counting)
    scores = run_suite_trial(trial, 0, ("safespn",))["safespn"]
    assert len(fitted) == 1
    assert scores["safespn"]["worst_case"] == pytest.approx(fitted[0].safety_.worst_case, rel=1e-6, abs=1e-6)
    assert set(scores) == {"safespn", "supervised"}
    test = trial.table.features.iloc[trial.test]
    right = fitted[0].supervised_.predict(test) == trial.table.codes[trial.test]
    assert scores["supervised"]["accuracy"] == right.mean()


def test_comparators_of_other_libraries_are_run_where_they_are_installed(folder, monkeypatch):
    class Guess:
        def __init__(self, random_state, n_jobs):
            self.random_state = random_state

        def fit(self, rows, labels):
            self.classes_ = np.unique(labels)
            return self

        def predict_proba(self, rows):
            return np.full((len(rows), len(self.classes_)), 1 / len(self.classes_))

    found = {"xgboost": SimpleNamespace(XGBClassifier=Guess), "catboost": None}
    monkeypatch.setattr(suite_methods, "find_spec", found.get)
    monkeypatch.setattr(suite_methods, "import_module", found.get)
    assert suite_methods.available_fits() == (*OURS, *COMPARATORS, "xgboost")
    trial = draw_suite_trial(load_table(folder, "flowers"), 20, 0)
    scores = run_suite_trial(trial, 0, ("xgboost",))["xgboost"]["xgboost"]
    assert scores["log_loss"] == pytest.approx(np.log(3))


@pytest.fixture(scope="module")
def suite():
    """The folder of real tables, with the recorded trials of the comparators beside it."""
    folder = Path(os.environ.get("SAFESPN_SUITE", ""))
    if not (folder.parent / "reference" / "suite_comparators.csv").is_file():
        pytest.skip("needs the tables in the folder that SAFESPN_SUITE names")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "budget", "number"), [("glass", 20, 0), ("heart", 20, 2), ("vote", 100, 1)])
def test_comparators_agree_with_the_recorded_ones(suite, name, budget, number):
    recorded = pd.read_csv(suite.parent / "reference" / "suite_comparators.csv")
    recorded = recorded[
        (recorded["table"] == name) & (recorded["budget"] == budget) & (recorded["trial"] == number)
    ].set_index("method")
    trial = draw_suite_trial(load_table(suite, name), budget, number)
    found = run_suite_trial(trial, number, tuple(COMPARATORS))
    assert set(recorded.index) == set(COMPARATORS)
    for method in COMPARATORS:
        for score in ("accuracy", "macro_f1", "log_loss", "brier"):
            assert found[method][method][score] == pytest.approx(recorded.loc[method, score], abs=2e-5), (method, score)


@pytest.mark.slow
@GROUP
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_opens_without_errors(whole, browser, width, scheme):  # noqa: F811
    show(browser, whole / "index.html", width, scheme)
    assert browser.get_log("browser") == []
    ids = [element.get_attribute("id") for element in browser.find_elements("css selector", "section")]
    assert {"summary", "suite_20", "suite_wins", "suite_gains", "suite_data", "suite_curves"} <= set(ids)
    assert len(ids) == len(set(ids))
    loaded = "return [...document.images].every(image => image.complete && image.naturalWidth > 100 && image.alt)"
    assert browser.execute_script(loaded)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra [cli]")

import pandas as pd

from safespn import IgnoredColumnWarning, SafeSPNClassifier
from safespn.cli.training import expected_seconds
from tests.cli.conftest import ONE_FIT, ONE_NETWORK, patients


def test_types_are_shown_before_the_fit(command, table_file, tmp_path):
    status, out, err = command("fit", table_file, "--target", "outcome", "-o", tmp_path / "model.safespn")
    assert status == 0
    for line in (
        "id: ignored, unique per row",
        "age: continuous",
        "sex: categorical (2)",
        "region: categorical (3)",
        "smoker: categorical (2)",
        "120 rows: 40 labelled, 80 unlabelled",
    ):
        assert line in err.splitlines()
        assert err.index(line) < err.index("fitting")
    assert "warning: column id: ignored, unique per row" in err
    assert "certified            yes" in out
    assert str(tmp_path / "model.safespn") in out


def test_predictions_are_those_of_the_classifier_in_python(command, table_file, model_file, tmp_path):
    status, _, _ = command("predict", model_file, table_file, "-o", tmp_path / "out.csv")
    assert status == 0
    result = pd.read_csv(tmp_path / "out.csv")
    assert list(result.columns) == ["class", "probability_ill", "probability_well", "log_density"]
    classifier = SafeSPNClassifier.load(model_file)
    assert classifier.feature_names_in_.tolist() == ["id", "age", "sex", "bmi", "region", "smoker"]
    frame = patients()[["age", "sex", "bmi", "region", "smoker"]].astype({"smoker": str})
    np.testing.assert_allclose(result[["probability_ill", "probability_well"]], classifier.predict_proba(frame))
    np.testing.assert_allclose(result["log_density"], classifier.score_samples(frame))
    assert result["class"].tolist() == classifier.predict(frame).tolist()


@pytest.mark.slow
def test_python_and_the_command_line_make_the_same_model_of_the_same_table(command, tmp_path):
    generator = np.random.default_rng(1)
    frame = patients(100, 30, seed=1).assign(
        fixed=7,
        level=generator.choice([2, 10], 100),
        sure=generator.random(100) < 0.5,
        when=pd.date_range("2020-01-01", periods=100).strftime("%Y-%m-%d"),
    )
    path, model = tmp_path / "t.csv", tmp_path / "model"
    frame.to_csv(path, index=False)
    assert command("fit", path, "-t", "outcome", "-o", model, "-q")[0] == 0
    assert command("predict", model, path, "-o", tmp_path / "out.csv", "-q")[0] == 0
    read = pd.read_csv(path)
    X, y = read.drop(columns="outcome"), read["outcome"]
    with pytest.warns(IgnoredColumnWarning):
        in_python = SafeSPNClassifier(random_state=0).fit(X, y)
    loaded = SafeSPNClassifier.load(model)
    types = dict(zip(X.columns, in_python.column_types_, strict=True))
    assert loaded.column_types_ == in_python.column_types_
    assert {name for name, kind in types.items() if kind == "ignored"} == {"id", "fixed", "when"}
    assert {name for name, kind in types.items() if kind == "continuous"} == {"age", "bmi"}
    written = pd.read_csv(tmp_path / "out.csv")
    for classifier in (in_python, loaded):
        np.testing.assert_allclose(written.iloc[:, 1:3], classifier.predict_proba(X), rtol=1e-9)
        np.testing.assert_allclose(written["log_density"], classifier.score_samples(X), rtol=1e-9)


@pytest.mark.slow
def test_names_of_rows_are_carried_to_predictions_and_reports(command, refused, tmp_path):
    frame = patients(60, 5)
    frame["id"] = [f"{number:03d}" if number % 2 else f"=p{number}" for number in range(len(frame))]
    path, model, out = tmp_path / "t.csv", tmp_path / "model", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    fit = ("fit", path, "-t", "outcome", *ONE_FIT, "-o", model, "--id", "id", "--report", tmp_path / "report.html")
    status, _, err = command(*fit)
    assert status == 0
    assert "id: ignored, names of rows" in err.splitlines()
    assert ">057</th>" in (tmp_path / "report.html").read_text() or ">=p" in (tmp_path / "report.html").read_text()
    assert command("predict", model, path, "-o", out, "-q")[0] == 0
    result = pd.read_csv(out, dtype={"id": str})
    assert list(result.columns)[:2] == ["id", "class"]
    assert result["id"].tolist() == frame["id"].tolist()
    assert command("predict", model, path, "-o", out, "-q", "--id", "age", "--escape-formulas")[0] == 0
    assert pd.read_csv(out)["age"].tolist() == frame["age"].tolist()
    refused("predict", model, path, "--id", "nobody", words=("no column 'nobody'",))
    refused("fit", path, "-t", "outcome", "-o", model, "--id", "outcome", words=("both target and id",))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv", "bar.csv", "german.csv", "windows.csv", "utf16.csv"])
def test_the_same_table_in_any_format_gives_the_same_model_and_predictions(
    name, command, table_file, model_file, tmp_path
):
    frame = patients()
    path = tmp_path / name
    if name == "t.parquet":
        frame.to_parquet(path)
    else:
        styles = {
            "t.csv": {},
            "t.tsv": {"sep": "\t"},
            "bar.csv": {"sep": "|"},
            "german.csv": {"sep": ";", "decimal": ",", "encoding": "utf-8-sig"},
            "windows.csv": {"lineterminator": "\r\n"},
            "utf16.csv": {"encoding": "utf-16"},
        }
        frame.to_csv(path, index=False, **styles[name])
    assert command("fit", path, "-t", "outcome", *ONE_FIT, "-o", tmp_path / "model", "-q")[0] == 0
    assert (tmp_path / "model").read_bytes() == model_file.read_bytes()
    assert command("predict", model_file, path, "-o", tmp_path / "out.csv", "-q")[0] == 0
    assert command("predict", model_file, table_file, "-o", tmp_path / "expected.csv", "-q")[0] == 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_predictions_as_parquet_and_on_standard_output_are_the_same(command, table_file, model_file, tmp_path):
    status, out, err = command("predict", model_file, table_file, "--quiet")
    assert (status, err) == (0, "")
    (tmp_path / "out.csv").write_text(out)
    assert command("predict", model_file, table_file, "-o", tmp_path / "out.parquet", "-q") == (0, "", "")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "out.csv"), pd.read_parquet(tmp_path / "out.parquet"), check_dtype=False
    )


def test_json_for_scripts(command, table_file, tmp_path):
    arguments = ("fit", table_file, "-t", "outcome", "-o", tmp_path / "m", "--json")
    status, out, _ = command(*arguments, "--quiet")
    result = json.loads(out)
    assert status == 0
    assert (result["rows"], result["labelled"], result["safety"]["certified"]) == (120, 40, True)
    assert {"name": "sex", "type": "categorical", "reason": "2"} in result["columns"]
    assert any("id: ignored" in line for line in result["warnings"])
    status, out, _ = command("predict", tmp_path / "m", table_file, "-o", tmp_path / "out.csv", "--json")
    assert json.loads(out)["rows"] == 120


@pytest.mark.slow
def test_equal_seeds_give_equal_files(command, table_file, few_labels_file, tmp_path):
    for name in "ab":
        assert command("fit", table_file, "-t", "outcome", "-o", tmp_path / name, "-q")[0] == 0
        files = (few_labels_file, "-o", tmp_path / f"{name}.small", "--report", tmp_path / f"{name}.html")
        assert command("fit", *files, "-t", "outcome", *ONE_FIT, "-q")[0] == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_unknown_categories_are_missing_and_told_once(command, model_file, tmp_path):
    frame = patients(20_000, 40)
    frame.loc[::2, "region"] = "west"
    frame.to_csv(tmp_path / "new.csv", index=False)
    status, _, err = command("predict", model_file, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "-q")
    assert status == 0
    assert len(err.splitlines()) == 1
    assert "'region' holds 'west'" in err
    assert "10000 rows" in err
    frame.loc[::2, "region"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    assert command("predict", model_file, tmp_path / "gaps.csv", "-o", tmp_path / "expected.csv", "-q")[0] == 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_markers_of_missing_cells_are_remembered(command, tmp_path):
    frame = patients()
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    frame.fillna({"bmi": -999}).to_csv(tmp_path / "marked.csv", index=False)
    frame.fillna({"bmi": -999}).to_parquet(tmp_path / "marked.parquet")
    for name in ("gaps.csv", "marked.csv", "marked.parquet"):
        fit = ("fit", tmp_path / name, "-t", "outcome", "--missing", "-999", "-o", tmp_path / f"{name}.model", "-q")
        assert command(*fit, *ONE_FIT)[0] == 0
        predict = ("predict", tmp_path / f"{name}.model", tmp_path / name, "-o", tmp_path / f"{name}.out", "-q")
        assert command(*predict)[0] == 0
    expected = (tmp_path / "gaps.csv.out").read_bytes()
    assert (tmp_path / "marked.csv.out").read_bytes() == expected
    assert (tmp_path / "marked.parquet.out").read_bytes() == expected


def test_types_can_be_chosen(command, table_file, tmp_path):
    status, _, err = command(
        "fit", table_file, "-t", "outcome", "-o", tmp_path / "m", "--categorical", "smoker", "--continuous", "id",
        "--ignore", "sex,region", *ONE_FIT,
    )  # fmt: skip
    assert status == 0
    lines = err.splitlines()
    assert "id: continuous" in lines
    assert "sex: ignored, as asked" in lines
    assert "region: ignored, as asked" in lines
    clf = SafeSPNClassifier.load(tmp_path / "m")
    types = dict(zip(clf.feature_names_in_.tolist(), clf.column_types_, strict=True))
    assert (types["id"], types["smoker"]) == ("continuous", "categorical")
    assert {name for name, kind in types.items() if kind == "ignored"} == {"sex", "region"}
    without = pd.read_csv(table_file).drop(columns=["sex", "region"])
    without.to_csv(tmp_path / "without.csv", index=False)
    assert command("predict", tmp_path / "m", tmp_path / "without.csv", "-o", tmp_path / "o.csv")[0] == 0


def test_amounts_of_money_are_numbers_and_told(command, model_file, tmp_path):
    frame = patients()
    frame["age"] = frame["age"].map(lambda age: f"${1000 * age:,.0f}")
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, _, err = command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m")
    assert status == 0
    assert "age: continuous" in err.splitlines()
    first = frame["age"][0]
    assert f"column 'age': {first!r} is read as the number {first[1:].replace(',', '')}" in err
    assert command("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "-q") == (0, "", "")


def test_thousands_in_a_file_with_decimal_commas(command, tmp_path):
    frame = patients()
    grouped = (1000 * frame["age"]).map(lambda age: f"{age:,.0f}".replace(",", "."))
    frame.assign(age=1000 * frame["age"]).to_csv(tmp_path / "plain.csv", index=False)
    frame.assign(age=grouped).to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    for name in ("plain", "t"):
        table, model, predictions = (tmp_path / f"{name}{end}" for end in (".csv", ".safespn", ".out"))
        status, _, err = command("fit", table, "-t", "outcome", *ONE_FIT, "-o", model)
        assert status == 0
        assert command("predict", model, table, "-o", predictions, "-q")[0] == 0
    assert f"column 'age': {grouped[0]!r} is read as the number {grouped[0].replace('.', '')}" in err
    assert (tmp_path / "t.out").read_bytes() == (tmp_path / "plain.out").read_bytes()


def test_labels_that_are_numbers_with_gaps(command, tmp_path):
    frame = patients().assign(outcome=lambda table: table["outcome"].map({"ill": 2.0, "well": -1.0}))
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, _, err = command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m")
    assert status == 0
    assert SafeSPNClassifier.load(tmp_path / "m").classes_.tolist() == ["-1", "2"]
    assert "'-1' is taken as a class (17 of 120 rows); if it marks unlabelled rows, pass --unlabeled=-1" in err
    frame = patients().assign(outcome=lambda table: table["outcome"].map({"ill": 2, "well": 1}).fillna(-1).astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "-q")
    assert command(*fit, "--unlabelled", "-1")[0] == 0
    model = SafeSPNClassifier.load(tmp_path / "m")
    assert model.classes_.tolist() == ["1", "2"]
    assert model.safety_.n_unlabelled == 80


def test_models_saved_from_python_predict_too(command, tmp_path):
    frame = patients()
    features = frame[["age", "bmi"]].assign(site=pd.Categorical(np.arange(120) % 3), old=frame["age"] > 50)
    labels = frame["outcome"].fillna("?").to_numpy()
    classifier = SafeSPNClassifier(network="blocks", unlabeled="?", random_state=0).fit(features, labels)
    classifier.save(tmp_path / "named")
    features.to_csv(tmp_path / "t.csv", index=False)
    features.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert command("predict", tmp_path / "named", tmp_path / name, "-o", tmp_path / "o.csv", "-q") == (0, "", "")
        got = pd.read_csv(tmp_path / "o.csv")
        np.testing.assert_allclose(got["log_density"], classifier.score_samples(features))
    plain = SafeSPNClassifier(network="blocks", unlabeled="?", random_state=0).fit(
        features[["age", "bmi"]].to_numpy(), labels
    )
    plain.save(tmp_path / "nameless")
    features[["age", "bmi"]].to_csv(tmp_path / "two.csv", index=False)
    assert command("predict", tmp_path / "nameless", tmp_path / "two.csv", "-o", tmp_path / "o.csv", "-q")[0] == 0
    got = pd.read_csv(tmp_path / "o.csv")
    np.testing.assert_allclose(got["log_density"], plain.score_samples(features[["age", "bmi"]].to_numpy()))
    status, _, err = command("predict", tmp_path / "nameless", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "-q")
    assert status == 2
    assert "4 columns" in err


def test_a_table_without_unlabelled_rows(command, tmp_path):
    patients(5, 5).to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = command(
        *("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "--report", tmp_path / "r")
    )
    assert status == 0
    assert "There were no unlabelled rows" in out


def test_a_device_is_written_to_and_not_replaced(command, table_file, model_file):
    from pathlib import Path

    assert command("predict", model_file, table_file, "-o", "/dev/null", "-q") == (0, "", "")
    assert Path("/dev/null").is_char_device()


def test_help_has_examples(command):
    for name in ("fit", "predict", "demo"):
        status, out, _ = command(name, "--help")
        assert status == 0
        assert "Usage" in out
    assert "patients.csv" in command("fit", "--help")[1]
    assert command("--version")[1].startswith("safespn ")


def test_a_decision_rule_changes_classes_and_not_probabilities(command, table_file, tmp_path):
    predicted = {}
    for name, options in {"plain": [], "costs": ["--decision", "0,9;1,0"]}.items():
        model = tmp_path / name
        assert command("fit", table_file, "-t", "outcome", "-o", model, *ONE_FIT, *options)[0] == 0
        assert command("predict", model, table_file, "-o", tmp_path / f"{name}.csv")[0] == 0
        predicted[name] = pd.read_csv(tmp_path / f"{name}.csv")
    plain, costs = predicted["plain"], predicted["costs"]
    np.testing.assert_array_equal(plain["probability_ill"], costs["probability_ill"])
    assert ((costs["class"] == "well") == (costs["probability_well"] > 0.9)).all()
    assert (costs["class"] != plain["class"]).any()


def test_class_weights_change_probabilities(command, table_file, tmp_path):
    means = []
    for number, options in enumerate([(), ("--class-weight", "ill=9"), ("--class-weight", "balanced")]):
        model = tmp_path / str(number)
        assert command("fit", table_file, "-t", "outcome", "-o", model, *ONE_FIT, *options)[0] == 0
        means.append(SafeSPNClassifier.load(model).predict_proba(patients().drop(columns="outcome"))[:, 0].mean())
    assert means[1] > means[0] + 0.05
    assert means[2] != means[0]


@pytest.mark.parametrize("with_report", [True, False])
def test_the_summary_says_how_good_predictions_are_beside_other_models(command, table_file, tmp_path, with_report):
    files = ("-o", tmp_path / "m", *(("--report", tmp_path / "r.html") if with_report else ()))
    status, out, _ = command("fit", table_file, "-t", "outcome", *ONE_NETWORK, *files)
    assert status == 0
    assert f"40 held-out labelled rows, {5 if with_report else 3} folds" in out
    for model in (
        "always guessing",
        "logistic regression",
        "random forest",
        "safespn, labels only",
        "safespn, all rows",
    ):
        assert re.search(rf"│ {model}.*│ +[0-9.]+ ± [0-9.]+ % │ +[0-9.]+ ± [0-9.]+ │", out), model
    assert "always guessing 'ill' is right in" in out or "always guessing 'well' is right in" in out
    assert out.index("held-out labelled rows") < out.index("Safety report")
    status, out, _ = command("fit", table_file, "-t", "outcome", *ONE_NETWORK, *files, "--json", "-q")
    result = json.loads(out)
    assert "always guessing" in result["quality"]
    assert "unlabelled rows" in result["unlabelled_rows"]
    assert set(result["held_out"]["models"]) == {
        *("class_proportions", "logistic_regression", "random_forest", "labels_only", "all_rows")
    }
    assert result["held_out"]["rows"] == 40


def test_predictions_are_not_checked_where_nobody_asks(command, table_file, tmp_path):
    status, out, _ = command("fit", table_file, "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "--json", "-q")
    assert status == 0
    assert "held_out" not in json.loads(out)


def test_a_fit_no_better_than_guessing_is_called_so_in_red(command, tmp_path, monkeypatch):
    frame = patients(80, 60)
    generator = np.random.default_rng(1)
    frame.loc[:59, "outcome"] = np.where(generator.random(60) < 0.8, "well", "ill")
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    status, out, _ = command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_NETWORK, "-o", tmp_path / "m")
    assert status == 0
    assert re.search(r"\x1b\[31mNo(t clearly)? better than always guessing 'well'", out)


def test_codes_of_categories_and_of_missing_cells_are_shown(command, tmp_path):
    frame = patients(80, 40)
    frame["ward"] = np.arange(80) % 4 + 1
    frame["dose"] = np.where(np.arange(80) % 9 == 0, -99, frame["age"] / 7)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m")
    status, _, err = command(*fit)
    assert status == 0
    assert "a few different whole numbers, taken as amounts: ward; if they are codes, pass --categorical" in err
    advice = "warning: column dose: -99 in 9 rows, far outside the rest; if it marks missing cells, pass --missing=-99"
    assert err.count("far outside the rest") == err.count(advice) == 1
    status, _, err = command(*fit, "--missing=-99", "--categorical", "ward")
    assert status == 0
    assert "whole numbers" not in err
    assert "far outside" not in err


def test_a_word_before_a_long_fit(command, table_file, tmp_path, monkeypatch):
    assert expected_seconds(500, 30, 20_000) < 10 < 60 < expected_seconds(1_000_000, 20, 20_000)
    fit = ("fit", table_file, "-t", "outcome", "--no-check", "-o", tmp_path / "m")
    assert "this fit will take" not in command(*fit, "--network", "auto")[2]
    monkeypatch.setattr("safespn.cli.training.expected_seconds", lambda *sizes: 300.0)
    err = command(*fit)[2]
    assert err.index("this fit will take about 5 minutes") < err.index("fitting 120 rows")
    assert "this fit will take" not in command(*fit, *ONE_NETWORK)[2]

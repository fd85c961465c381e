"""``safespn suggest`` and ``safespn predict --next-measurement``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from safespn import SafeSPNClassifier
from safespn.cli.app import run
from tests.cli.conftest import ONE_NETWORK, patients


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suggest")
    patients().to_csv(folder / "patients.csv", index=False)
    fit = [
        "fit",
        str(folder / "patients.csv"),
        "-t",
        "outcome",
        *ONE_NETWORK,
        "-q",
        "-o",
        str(folder / "model.safespn"),
    ]
    assert run(fit) == 0
    return folder


def labelled():
    return patients()["outcome"].fillna("").astype(str).str.len().to_numpy() > 0


def test_unlabelled_rows_are_suggested_with_reasons(files, command, tmp_path):
    path = tmp_path / "to_label.csv"
    status, out, _ = command("suggest", files / "model.safespn", files / "patients.csv", "-n", 6, "-o", path)
    assert status == 0
    frame = pd.read_csv(path)
    assert frame.columns.tolist() == ["row", *patients().columns, "why", "label"]
    assert len(frame) == 6
    assert not labelled()[frame["row"] - 1].any()
    np.testing.assert_array_equal(frame["id"], 1000 + frame["row"] - 1)
    assert frame["why"].tolist() == [line.split(": ", 1)[1] for line in out.splitlines()[:6]]


def test_tasks_for_label_studio(files, command, tmp_path):
    path = tmp_path / "tasks.json"
    status, out, _ = command(
        "suggest", files / "model.safespn", files / "patients.csv", "-n", 3, "-o", path, "--json", "-q"
    )
    assert status == 0
    tasks, told = json.loads(path.read_text()), json.loads(out)
    assert [int(task["data"]["name"]) for task in tasks] == told["rows"]
    assert [task["data"]["why"] for task in tasks] == told["reasons"]
    assert "outcome" not in tasks[0]["data"]["row"]
    assert set(tasks[0]["data"]["row"]) == set(patients().columns) - {"outcome"}
    classes = SafeSPNClassifier.load(files / "model.safespn").classes_
    interface = (tmp_path / "tasks.xml").read_text()
    assert all(f'<Choice value="{name}"/>' in interface for name in classes)


def test_a_flat_curve_stops_the_labelling(files, command, tmp_path):
    curve, path = tmp_path / "curve.json", tmp_path / "to_label.csv"

    def suggest(second):
        points = [{"labelled": n, "all_rows": {"accuracy": a}} for n, a in ((10, 0.8), (20, second))]
        curve.write_text(json.dumps({"points": points}))
        return command("suggest", files / "model.safespn", files / "patients.csv", "-o", path, "--curve", curve)

    status, _, error = suggest(0.805)
    assert status == 0
    assert "less than one: none are suggested" in error
    assert len(pd.read_csv(path)) == 0
    assert suggest(0.9)[0] == 0
    assert len(pd.read_csv(path)) == 20


def test_mistakes_are_told_in_one_line(files, refused, tmp_path):
    out = tmp_path / "x.csv"
    model, data = files / "model.safespn", files / "patients.csv"
    refused("suggest", model, data, "-o", out, "--curve", tmp_path / "none.json", words=("safespn evaluate --json",))
    (tmp_path / "bad.json").write_text("[]")
    refused("suggest", model, data, "-o", out, "--curve", tmp_path / "bad.json", words=("not the output of",))
    all_labelled = patients(40, 40)
    all_labelled.to_csv(tmp_path / "labelled.csv", index=False)
    refused("suggest", model, tmp_path / "labelled.csv", "-o", out, "-q", words=("every row has a label",))


def test_predictions_tell_what_to_measure_next(files, command, tmp_path):
    frame = patients().drop(columns="outcome")
    frame.loc[:4, "age"] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    path = tmp_path / "out.csv"
    status, _, _ = command("predict", files / "model.safespn", tmp_path / "new.csv", "-o", path, "--next-measurement")
    assert status == 0
    found = pd.read_csv(path)
    has_gaps = frame.isna().any(axis=1)
    assert found.loc[~has_gaps, "next_measurement"].isna().all()
    assert (found.loc[~has_gaps, "expected_entropy_drop"] == 0).all()
    assert (found.loc[:4, "next_measurement"] == "age").mean() > 0.5
    assert (found.loc[:4, "expected_entropy_drop"] > 0).all()

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from safespn import SafeSPNClassifier
from safespn.cli.app import run
from tests.cli.conftest import patients


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, a model, and a weaker one to compare with."""
    folder = tmp_path_factory.mktemp("audit")
    patients().to_csv(folder / "patients.csv", index=False)
    patients(14, 14, seed=3).to_csv(folder / "few.csv", index=False)
    for table, model in (("patients", "model"), ("few", "few")):
        clf = SafeSPNClassifier(network="blocks", random_state=0, unlabeled="")
        frame = pd.read_csv(folder / f"{table}.csv").drop(columns=["id", "sex", "region"])
        clf.fit(frame.drop(columns="outcome"), frame["outcome"].astype(object))
        clf.save(folder / f"{model}.safespn")
    return folder


def arguments(files):
    return "audit", files / "model.safespn", files / "patients.csv", "--reference", files / "few.safespn"


def true_labels():
    return np.array(patients(n_labelled=120)["outcome"])


def test_rows_are_drawn_labelled_and_audited(files, command, tmp_path):
    path = tmp_path / "to_label.csv"
    status, out, _ = command(*arguments(files), "-n", 1000, "-o", path)
    assert status == 0
    assert "predicted differently" in out
    frame = pd.read_csv(path)
    assert frame.columns.tolist() == ["row", *patients().columns, "label"]
    assert frame["label"].isna().all()
    np.testing.assert_array_equal(frame["id"], 1000 + frame["row"] - 1)
    frame["label"] = true_labels()[frame["row"] - 1]
    frame.to_csv(path, index=False)
    status, out, _ = command(*arguments(files), "--answers", path)
    assert status == 0
    assert "points more accurate" in out
    status, out, _ = command(*arguments(files), "--answers", path, "--json", "-q")
    found = json.loads(out)
    models = [SafeSPNClassifier.load(files / f"{name}.safespn") for name in ("model", "few")]
    X = patients()[["age", "bmi", "smoker"]]
    expected = np.subtract(*[(model.predict(X) == true_labels()).mean() for model in models])
    assert found["interval"] == pytest.approx([expected, expected])
    assert found["n_disagreeing"] == len(frame)


def test_five_more_rows_are_added_and_looks_keep_the_confidence(files, command, tmp_path):
    widths, rows = {}, {}
    for n in (3, 6):
        path = tmp_path / f"{n}.csv"
        assert command(*arguments(files), "-n", n, "-o", path, "-q")[0] == 0
        frame = pd.read_csv(path)
        rows[n] = frame["row"].tolist()
        frame.assign(label=true_labels()[frame["row"] - 1]).to_csv(path, index=False)
        for options in ((), ("--look", n // 3)):
            found = json.loads(command(*arguments(files), "--answers", path, *options, "--json", "-q")[1])
            widths[n, bool(options)] = np.diff(found["interval"])[0]
    assert rows[6][:3] == rows[3]
    assert all(widths[n, True] > widths[n, False] for n in (3, 6))


def test_models_that_agree_need_no_audit(files, command, tmp_path):
    same = "audit", files / "model.safespn", files / "patients.csv", "--reference", files / "model.safespn"
    status, _, err = command(*same, "-o", tmp_path / "none.csv")
    assert status == 0
    assert "no audit is needed" in err
    status, out, _ = command(*same, "--answers", tmp_path / "none.csv")
    assert status == 0
    assert "no audit is needed" in out


def test_without_a_reference_the_supervised_model_is_meant(files, command, tmp_path):
    status, _, _ = command("audit", files / "model.safespn", files / "patients.csv", "-n", 5, "-o", tmp_path / "l.csv")
    assert status == 0
    assert (tmp_path / "l.csv").is_file()


def test_mistakes_get_one_line(files, refused, tmp_path):
    path = tmp_path / "to_label.csv"
    assert run([str(each) for each in (*arguments(files), "-n", 3, "-o", path, "-q")]) == 0
    frame = pd.read_csv(path, dtype=object)

    def answers(**columns):
        frame.assign(**columns).to_csv(path, index=False)
        return *arguments(files), "--answers", path

    first, second = frame["row"][0], frame["row"][1]
    refused(*answers(label="ill", row=[first, first, second]), "-q", words=("twice",))
    refused(*answers(label="ill", row=[first, second, "x"]), words=("'x' is not a row number",))
    refused(*answers(label=["ill", "", "ill"]), words=("has no label",))
    refused(*answers(label=["ill", "dead", "ill"]), words=("'dead'", "'ill', 'well'"))
    refused(*answers(label="ill", row=[first, second, 9999]), "-q", words=("row 9999", "1 to 120"))
    chosen = [row for row in range(1, 120) if str(row) not in set(frame["row"].astype(str))][:3]
    refused(*answers(label="ill", row=chosen), "-q", words=("was not drawn", "--seed"))
    refused(*arguments(files), words=("--output", "--answers"))
    refused(*arguments(files), "--answers", files / "patients.csv", words=("no column 'row'",))
    refused(*arguments(files), "-o", path, "--confidence", 2, words=("--confidence",))

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import ONE_NETWORK, patients


@pytest.fixture
def labelled_file(tmp_path):
    path = tmp_path / "t.csv"
    patients(150, 100).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_table_a_picture_and_a_sentence(command, labelled_file, tmp_path):
    report = tmp_path / "curve.html"
    status, out, _ = command(
        *("evaluate", labelled_file, "-t", "outcome", *ONE_NETWORK, "--labelled", "10,20", "--trials", 2),
        *("--report", report),
    )
    assert status == 0
    assert "2 trials, scored on at least 20 labelled rows each" in out
    assert out.count("●") == 4
    assert any(words in out for words in ("points", "always guessing"))
    assert "Without the guard (plain EM)" in " ".join(out.split())
    assert "Learning curve" in report.read_text()


@pytest.mark.slow
def test_json_is_repeatable_and_consistent(command, labelled_file):
    arguments = (
        "evaluate",
        labelled_file,
        "-t",
        "outcome",
        *ONE_NETWORK,
        "--labelled",
        "8,20",
        "--trials",
        2,
        "--json",
        "-q",
    )
    status, out, _ = command(*arguments, "--seed", 5)
    assert status == 0
    assert command(*arguments, "--seed", 5)[1] == out
    assert command(*arguments, "--seed", 6)[1] != out
    result = json.loads(out)
    assert [point["labelled"] for point in result["points"]] == [8, 20]
    for point in result["points"]:
        gain = point["all_rows"]["accuracy"] - point["labels_only"]["accuracy"]
        assert point["accuracy_gain"] == pytest.approx(gain)
        assert point["harm_rate"] * 2 == pytest.approx(round(point["harm_rate"] * 2))
        low, high = point["all_rows"]["accuracy_band"]
        assert 0 <= low <= point["all_rows"]["accuracy"] <= high <= 1
    assert result["recommendation"]
    assert result["verdict"]


@pytest.mark.slow
def test_numbers_of_labels_are_chosen_where_none_are_given(command, tmp_path):
    patients(60, 30).to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = command(
        "evaluate", tmp_path / "t.csv", "-t", "outcome", *ONE_NETWORK, "--trials", 1, "--json", "-q"
    )
    assert status == 0
    assert [point["labelled"] for point in json.loads(out)["points"]] == [6, 12, 24]


def test_impossible_numbers_of_labels(refused, labelled_file):
    for text, word in (("1", "from 2 to 80"), ("10,1000", "cannot keep 1000 labels"), ("ten", "expected numbers")):
        refused("evaluate", labelled_file, "-t", "outcome", "--labelled", text, words=(word,))
    refused("evaluate", labelled_file, "-t", "outcome", "--trials", 0, words=("--trials",))


def test_a_class_with_one_label(refused, tmp_path):
    frame = patients(60, 30)
    frame.loc[0, "outcome"] = "odd"
    frame.to_csv(tmp_path / "t.csv", index=False)
    refused("evaluate", tmp_path / "t.csv", "-t", "outcome", words=("class 'odd' has a single labelled row",))

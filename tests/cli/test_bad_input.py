"""Each mistake gets one line on standard error that says what, where and what to do, status 2, and no file."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess

import pandas as pd
import pytest

from safespn.network.files import FORMAT, read_model, write_model
from tests.cli.conftest import ONE_FIT, ONE_NETWORK, patients


@pytest.fixture
def fit_refused(refused, tmp_path):
    """Write a file and try to fit it."""

    def call(content: str | bytes, *options: str, words: tuple[str, ...], target: str = "y", name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return refused("fit", path, "-t", target, "-o", tmp_path / "m", *options, words=(*words,))

    return call


def rows_of(first: str, n: int = 30) -> str:
    """A small table with one feature; ``first`` is its first row."""
    return "x,y\n" + first + "".join(f"{number * 0.7:.1f},{'ab'[number % 2]}\n" for number in range(n))


def test_missing_file(refused, tmp_path):
    refused("fit", tmp_path / "none.csv", "-t", "y", "-o", tmp_path / "m", words=("none.csv: no such file", "check"))


def test_folder_instead_of_a_file(refused, tmp_path):
    refused("fit", tmp_path, "-t", "y", "-o", tmp_path / "m", words=("folder",))


@pytest.mark.parametrize("content", ["", "\n\n", "﻿", "  \n"])
def test_empty_file(fit_refused, content):
    fit_refused(content, words=("t.csv: the file is empty", "expected"))


@pytest.mark.parametrize("content", ["x,y\n", "x,y"])
def test_only_a_header(fit_refused, content):
    fit_refused(content, words=("column names but no rows", "add rows"))


def test_no_such_target(fit_refused):
    fit_refused(rows_of(""), target="Y", words=("no column 'Y'", "did you mean 'y'"))
    fit_refused(rows_of(""), target="outcome", words=("no column 'outcome'", "its columns are: x, y"))


def test_no_such_column_in_an_option(fit_refused):
    fit_refused(rows_of(""), "--categorical", "z", words=("no column 'z'",))
    fit_refused(rows_of(""), "--ignore", "y", words=("'y' cannot be both target and ignore",))
    fit_refused(rows_of(""), "--ignore", "x", "--categorical", "x", words=("'x' cannot be both",))


def test_target_without_labels(fit_refused):
    fit_refused("x,y\n1,\n2,NA\n3,\n", words=("target 'y' has no label in any of 3 rows", "label some rows"))


def test_target_with_a_single_class(fit_refused):
    fit_refused("x,y\n1,a\n2,a\n3,\n", words=("single class 'a' (2 rows)", "label rows of another class"))


def test_labels_of_minus_one_and_one(fit_refused, command, tmp_path):
    content = "x,y\n" + "".join(f"{number * 0.7:.1f},{(-1) ** number}\n" for number in range(30))
    words = ("single class '1' (15 rows)", "if '-1' is a class, do not pass it as --unlabeled")
    fit_refused(content, "--unlabeled=-1", words=words)
    assert command("fit", tmp_path / "t.csv", "-t", "y", *ONE_FIT, "-o", tmp_path / "m", "-q")[0] == 0


def test_target_that_is_a_measurement(fit_refused):
    rows = "".join(f"{number % 7},{number * 1.1:.1f}\n" for number in range(50))
    fit_refused("x,y\n" + rows, words=("50 different labels in 50 labelled rows", "choose another target"))


def test_only_dates_and_free_text(fit_refused):
    rows = "".join(f"2020-01-{day:02},words and {day} more,{'ab'[day % 2]}\n" for day in range(1, 29))
    fit_refused("when,what,y\n" + rows, words=("no column left", "when: ignored, dates", "what: ignored, unique"))


def test_dates_and_free_text_are_left_out_with_a_warning(command, tmp_path):
    frame = patients().assign(
        visited=pd.date_range("2021-03-01", periods=120).strftime("%d.%m.%Y"),
        remark=[f"seen {number % 70} times" for number in range(120)],
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.assign(visited=pd.date_range("2021-03-01", periods=120)).to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        status, _, err = command("fit", tmp_path / name, "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m")
        assert status == 0
        assert "warning: column visited: ignored, dates; turn them into numbers" in err
        assert "warning: column remark: ignored, free text (70 different values)" in err


def test_mixed_types_in_a_column(fit_refused, command, tmp_path):
    content = rows_of("1.5,a\nabout 3,b\n")
    fit_refused(
        content, words=("column 'x' mixes numbers and text", "'about 3' in row 2", "--missing", "--categorical")
    )
    fit = ("fit", tmp_path / "t.csv", "-t", "y", *ONE_FIT, "-o", tmp_path / "m", "-q")
    assert command(*fit, "--missing", "about 3")[0] == 0
    fit_refused(content, "--continuous", "x", words=("was to be continuous, but row 2 holds 'about 3'",))


def test_infinite_cells(fit_refused):
    fit_refused(rows_of("inf,a\n"), words=("column 'x', row 1: inf is infinite", "empty cell"))


def test_rows_that_are_too_close_together_once_others_are_left_out(command, refused, tmp_path):
    """The fit takes all rows; those of which some are held out would have a variance that is no number."""
    path = tmp_path / "t.csv"
    path.write_text(
        "x,z,y\n" + "".join(f"{x},{x % 3:.0f},{y}\n" for x, y in [(0, "a")] * 6 + [(1, "b"), (-1e-300, "b")])
    )
    fit = ("fit", path, "-t", "y", *ONE_NETWORK, "-o", tmp_path / "m", "--report", tmp_path / "r.html")
    status, out, _ = command(*fit)
    assert status == 0
    assert "could not be measured: in the rows of one of the fits, column 0 ('x')" in " ".join(out.split())
    words = ("of its rows, column 0 ('x')", "too close to compute a variance")
    refused("evaluate", path, "-t", "y", *ONE_NETWORK, "--labelled", "4", "--trials", 10, "-q", words=words)


def test_duplicate_column_names(fit_refused):
    fit_refused("x,y,x\n1,a,2\n3,b,4\n", words=("'x' is the name of columns 1 and 3", "rename"))


def test_lines_of_different_lengths(fit_refused):
    fit_refused(rows_of("1,a,2\n"), words=("line 2: 3 cells where the first line has 2 names", "quote"))
    fit_refused(rows_of("") + "7\n", words=("line 32: 1 cells",))


def test_a_quote_without_its_partner(fit_refused):
    fit_refused(rows_of('"3,a\n'), words=("t.csv",))


def test_binary_files(fit_refused):
    fit_refused(bytes(range(256)) * 4, words=("neither a CSV nor a Parquet file",))


def test_letters_that_are_not_utf8(command, tmp_path):
    content = rows_of("").replace("a\n", "Käse\n").encode("cp1252")
    (tmp_path / "t.csv").write_bytes(content)
    status, _, err = command("fit", tmp_path / "t.csv", "-t", "y", *ONE_FIT, "-o", tmp_path / "m")
    assert status == 0
    assert "read as Windows-1252" in err
    assert "Käse" in err


def test_quirks_are_understood_and_told(command, tmp_path):
    patients().to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
    status, _, err = command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m")
    assert status == 0
    assert "cells are separated by semicolons" in err
    assert "commas are decimal marks" in err
    assert "id: ignored, unique per row" in err


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_truncated_parquet(fit_refused, tmp_path, share):
    patients().to_parquet(tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    cut = content[: int(share * len(content))]
    fit_refused(cut, target="outcome", name="t.parquet", words=("t.parquet: the Parquet file is damaged or truncated",))


def test_parquet_damaged_in_the_middle(fit_refused, tmp_path):
    patients(5_000).to_parquet(tmp_path / "whole.parquet")
    content = bytearray((tmp_path / "whole.parquet").read_bytes())
    content[200:4_000] = b"\xff" * 3_800
    fit_refused(bytes(content), target="outcome", name="t.parquet", words=("t.parquet", "damaged"))


def test_csv_called_parquet(fit_refused):
    fit_refused(rows_of(""), name="t.parquet", words=("not a Parquet file",))


def test_model_that_is_missing_or_no_model(refused, table_file, tmp_path):
    out = tmp_path / "out.csv"
    refused("predict", tmp_path / "none", table_file, "-o", out, words=("none: no such model", "safespn fit"))
    refused("predict", table_file, table_file, "-o", out, words=("not a model saved by safespn",))


def test_truncated_model(refused, model_file, table_file, tmp_path):
    content = model_file.read_bytes()
    for length in (0, 5, 100, len(content) // 2, len(content) - 1):
        (tmp_path / "cut").write_bytes(content[:length])
        refused("predict", tmp_path / "cut", table_file, "-o", tmp_path / "out.csv", words=("cut: ", "damaged"))


def test_model_of_a_newer_version(refused, model_file, table_file, tmp_path):
    content = model_file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"][FORMAT] = header["__metadata__"][FORMAT].replace('"version": 1', '"version": 99')
    changed = json.dumps(header).encode()
    (tmp_path / "new").write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + length :])
    refused("predict", tmp_path / "new", table_file, "-o", tmp_path / "o", words=("version 99", "upgrade safespn"))


class _Bomb:
    def __reduce__(self):
        return (print, ("code from a model file ran",))


def test_malicious_model(refused, model_file, table_file, tmp_path):
    (tmp_path / "bad").write_bytes(pickle.dumps(_Bomb()))
    refused("predict", tmp_path / "bad", table_file, "-o", tmp_path / "out.csv", words=("not a model",))
    tensors, header = read_model(model_file, "classifier")
    changes = [
        {"categories": 5},
        {"categories": [3] * 5},
        {"categories": [[["nested"]]] * 5},
        {"feature_names": [1, 2, 3, 4, 5]},
        {"feature_names": ["a"]},
        {"n_features": 10**12},
        {"parameters": {"objective": "evil"}},
        {"parameters": {"__class__": "evil"}},
        {"classes": {}},
        {"classes_dtype": "evil"},
        {"report": {}},
        {"notes": 5},
        {"notes": {"missing": [5, None]}},
        {"notes": {"missing": 5}},
    ]
    for change in changes:
        kept = {name: value for name, value in header.items() if name not in ("sha256", "kind", "version")}
        write_model(tmp_path / "bad", "classifier", tensors, {**kept, **change})
        refused("predict", tmp_path / "bad", table_file, "-o", tmp_path / "out.csv", words=("bad: ",))
    shortened = {**tensors, "supervised.0.weights": tensors["supervised.0.weights"][:1]}
    kept = {name: value for name, value in header.items() if name not in ("sha256", "kind", "version")}
    write_model(tmp_path / "bad", "classifier", shortened, kept)
    refused("predict", tmp_path / "bad", table_file, "-o", tmp_path / "out.csv", words=("bad: ",))


def test_columns_that_the_model_needs(refused, model_file, tmp_path):
    patients().drop(columns=["age", "bmi"]).to_csv(tmp_path / "t.csv", index=False)
    refused(
        "predict", model_file, tmp_path / "t.csv", "-o", tmp_path / "out.csv", words=("no column 'age' and 1 more",)
    )


@pytest.mark.slow
def test_text_where_the_model_has_numbers(refused, model_file, tmp_path):
    frame = patients(40_000).astype({"age": object})
    frame.loc[33_333, "age"] = "old"
    frame.to_csv(tmp_path / "t.csv", index=False)
    # The first chunks were written before the cell was met.
    words = ("column 'age', row 33334: 'old' is not a finite number", "--missing 'old'")
    refused("predict", model_file, tmp_path / "t.csv", "-o", tmp_path / "out.csv", "-q", words=words)


def test_dates_where_the_model_has_numbers(refused, model_file, tmp_path):
    patients().assign(age=pd.date_range("2020-01-01", periods=120)).to_parquet(tmp_path / "t.parquet")
    refused("predict", model_file, tmp_path / "t.parquet", "-o", tmp_path / "o", words=("column 'age' holds dates",))


def test_predicting_no_rows_gives_no_rows(command, model_file, tmp_path):
    patients()[:0].to_csv(tmp_path / "t.csv", index=False)
    status, _, _ = command("predict", model_file, tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert status == 0
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        '"class","probability_ill","probability_well","log_density"'
    ]


def test_unwritable_output(refused, model_file, table_file, tmp_path):
    nowhere = tmp_path / "no" / "such"
    for path, word in ((nowhere / "m", "there is no folder"), (tmp_path, "folder"), (table_file / "m", "no folder")):
        refused("fit", table_file, "-t", "outcome", "-o", path, words=(word,))
        refused("fit", table_file, "-t", "outcome", "-o", tmp_path / "m", "--report", path, words=(word,))
        refused("predict", model_file, table_file, "-o", path, words=(word,))
    refused("fit", table_file, "-t", "outcome", "-o", "/proc/m", words=("/proc", "check the path"))
    same = tmp_path / "m"
    refused("fit", table_file, "-t", "outcome", "-o", same, "--report", same, words=("different names",))


@pytest.mark.slow
def test_device_that_is_full(command, model_file, table_file, few_labels_file, tmp_path):
    for arguments in (
        ("predict", model_file, table_file, "-o", "/dev/full"),
        ("fit", few_labels_file, "-t", "outcome", *ONE_FIT, "-o", "/dev/full"),
        ("fit", few_labels_file, "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "--report", "/dev/full"),
    ):
        status, _, err = command(*arguments, "--quiet")
        assert status == 2
        last = err.splitlines()[-1]
        assert last.startswith("safespn: ")
        assert "No space left" in last
        assert "Traceback" not in err
        assert not (tmp_path / "m").exists()


@pytest.fixture
def tiny_disk(tmp_path):
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_full_disk_leaves_nothing(command, model_file, tiny_disk, tmp_path):
    patients(3_000).to_csv(tmp_path / "t.csv", index=False)
    for arguments in (
        ("predict", model_file, tmp_path / "t.csv", "-o", tiny_disk / "out.csv"),
        ("predict", model_file, tmp_path / "t.csv", "-o", tiny_disk / "out.parquet"),
        ("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tiny_disk / "m"),
    ):
        status, _, err = command(*arguments, "--quiet")
        assert status == 2
        assert "No space left" in err.splitlines()[-1]
        assert list(tiny_disk.iterdir()) == []


def test_wrong_usage(refused):
    refused("fit", words=("Missing argument", "--help"))
    refused("fit", "t.csv", words=("Missing option '--target'",))
    refused("fit", "t.csv", "-t", "y", "--safety", "maybe", words=("maybe", "certified"))
    refused("forecast", words=("forecast",))
    refused("predict", "m", "t.csv", "--json", words=("--output",))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--decision", "fair"), ("--decision", "'fair'", "0,1;5,0")),
        (("--decision", "0,1;5"), ("costs",)),
        (("--decision", "0,1,2;1,0,2;1,1,0"), ("costs", "2 true classes", "(3, 3)")),
        (("--class-weight", "ill"), ("--class-weight", "'ill'", "yes=5")),
        (("--class-weight", "dead=5"), ("'dead'", "expected some of 'ill', 'well'")),
        (("--class-weight", "ill=-1"), ("'ill'", "positive number")),
    ],
)
def test_rules_and_weights_that_make_no_sense(refused, table_file, tmp_path, options, words):
    refused("fit", table_file, "-t", "outcome", "-o", tmp_path / "m", "-q", "--ignore", "id", *options, words=words)

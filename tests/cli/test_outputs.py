"""Results never overwrite what they were made from, and places they cannot go to are found before the work."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest

from tests.cli.conftest import ONE_FIT, patients
from tests.cli.test_process import COMMAND


@pytest.fixture
def model_copy(model_file, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(model_file.read_bytes())
    return path


@pytest.fixture(params=["same", "other spelling", "symbolic link", "hard link"])
def another_name(request, tmp_path):
    """Another name of a file, or the same."""

    def name(path):
        link = tmp_path / f"link-{path.name}"
        if request.param == "symbolic link":
            link.symlink_to(path)
        elif request.param == "hard link":
            link.hardlink_to(path)
        else:
            return path if request.param == "same" else path.parent / ".." / path.parent.name / path.name
        return link

    return name


def test_an_output_that_is_an_input(refused, table_file, model_copy, tmp_path, another_name):
    words = ("the output", "input", "give it another name")
    before = table_file.read_bytes(), model_copy.read_bytes()
    data, model = another_name(table_file), another_name(model_copy)
    refused("fit", table_file, "-t", "outcome", "-o", data, words=words)
    refused("fit", data, "-t", "outcome", "-o", tmp_path / "m", "--report", table_file, words=words)
    refused("predict", model_copy, table_file, "-o", data, words=words)
    refused("predict", model, table_file, "-o", model_copy, words=words)
    refused("evaluate", table_file, "-t", "outcome", "--report", data, words=words)
    assert (table_file.read_bytes(), model_copy.read_bytes()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model", "patients.csv"),
        ("predict", "model", "patients.csv", "-o", "new"),
        ("fit", "patients.csv", "-t", "outcome", *ONE_FIT, "-o", "new", "--json"),
        ("suggest", "model", "patients.csv", "-n", "2", "-o", "new"),
        ("audit", "model", "patients.csv", "-n", "2", "-o", "new"),
        ("evaluate", "patients.csv", "-t", "outcome", "--trials", "1", "--labelled", "10"),
    ],
)
def test_standard_output_that_is_an_input(table_file, model_copy, tmp_path, arguments):
    before = table_file.read_bytes()
    with table_file.open("ab") as stream:
        done = subprocess.run([COMMAND, *arguments], cwd=tmp_path, stdout=stream, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "patients.csv: standard output goes to this input" in done.stderr
    assert table_file.read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_the_longest_names_of_outputs(command, refused, table_file, model_copy, tmp_path):
    longest = tmp_path / ("a" * 251 + ".csv")
    assert command("predict", model_copy, table_file, "-o", longest, "-q")[0] == 0
    assert len(pd.read_csv(longest)) == len(patients())
    too_long = tmp_path / ("a" * 260)
    error = refused("predict", model_copy, tmp_path / "none.csv", "-o", too_long, words=("File name too long",))
    assert "none.csv" not in error  # found before the work


def test_links_that_lead_nowhere(refused, command, table_file, model_copy, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(
        "fit", table_file, "-t", "outcome", "-o", tmp_path / "loop", words=("loop: a symbolic link", "another name")
    )
    refused("predict", model_copy, table_file, "-o", tmp_path / "loop", words=("loop: a symbolic link",))
    refused("predict", model_copy, tmp_path / "loop", words=("loop", "check the path"))
    (tmp_path / "new").symlink_to(tmp_path / "results.csv")
    assert command("predict", model_copy, table_file, "-o", tmp_path / "new", "-q")[0] == 0
    assert len(pd.read_csv(tmp_path / "results.csv")) == len(patients())


@pytest.mark.slow
def test_an_output_whose_name_is_no_text(table_file, tmp_path):
    name = os.fsdecode(b"m\xff")
    for options in ((), ("--json",)):
        done = subprocess.run(
            [COMMAND, "fit", table_file, "-t", "outcome", *ONE_FIT, "-o", tmp_path / name, *options],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert "m\\udcff" in done.stdout
        (tmp_path / name).unlink()


@pytest.mark.slow
def test_a_prediction_that_fails_writes_nothing_to_standard_output(command, model_file, tmp_path):
    frame = patients(40_000).astype({"age": object})
    frame.loc[33_333, "age"] = "old"
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, err = command("predict", model_file, tmp_path / "t.csv", "-q")
    assert (status, out) == (2, "")
    assert "row 33334: 'old'" in err


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [120, 100_000])
def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path, model_file, n_rows):
    patients(n_rows).to_csv(tmp_path / "t.csv", index=False)
    with subprocess.Popen(
        [COMMAND, "predict", model_file, tmp_path / "t.csv", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_a_fit_goes_on_when_nobody_reads_how_it_goes(table_file, tmp_path):
    with subprocess.Popen(
        [COMMAND, "fit", table_file, "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        process.stderr.close()
    assert process.returncode == 0
    assert (tmp_path / "m").exists()


def test_names_cannot_steer_the_terminal(command, tmp_path):
    escape = "\x1b]0;owned\x07\x1b[31m\u202e"
    frame = patients().rename(columns={"age": f"age{escape}"}).assign(region="north")
    frame["outcome"] = frame["outcome"].replace("ill", f"ill{escape}")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for arguments in (
        ("-o", tmp_path / "m"),
        ("-o", tmp_path / "m", "--json"),
        ("-o", tmp_path / "m", "--ignore", f"bmi{escape}"),
    ):
        _, out, err = command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, *arguments)
        assert "owned" in err
        assert not {"\x1b", "\x07", "\u202e"} & set(out + err)


def test_formulas_are_escaped_on_request(command, tmp_path):
    frame = patients().assign(outcome=lambda table: table["outcome"].map({"ill": '=HYPERLINK("evil")', "well": "-1"}))
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert command("fit", tmp_path / "t.csv", "-t", "outcome", *ONE_FIT, "-o", tmp_path / "m", "-q")[0] == 0
    predict = ("predict", tmp_path / "m", tmp_path / "t.csv", "-q", "-o")
    assert command(*predict, tmp_path / "raw.csv")[0] == 0
    assert command(*predict, tmp_path / "safe.csv", "--escape-formulas")[0] == 0
    assert set(pd.read_csv(tmp_path / "raw.csv", dtype=str)["class"]) == {'=HYPERLINK("evil")', "-1"}
    assert set(pd.read_csv(tmp_path / "safe.csv", dtype=str)["class"]) == {'\'=HYPERLINK("evil")', "'-1"}
    assert "spreadsheet" in command("predict", "--help")[1]


def test_no_cell_and_no_name_of_a_column_is_a_formula(command, model_file, tmp_path):
    frame = patients().rename(columns={"id": "=1+1"}).assign(note="=cmd|x", dose="-2")
    frame.to_csv(tmp_path / "t.csv", index=False)
    predict = ("predict", model_file, tmp_path / "t.csv", "--id", "=1+1", "--next-measurement", "-q", "-o")
    assert command(*predict, tmp_path / "p.csv", "--escape-formulas")[0] == 0
    written = pd.read_csv(tmp_path / "p.csv")
    assert written.columns[0] == "'=1+1"
    assert written["next_measurement"].isna().any()
    assert "bmi" in set(written["next_measurement"])
    reference = tmp_path / "few.safespn"
    patients(60, 10, seed=3).to_csv(tmp_path / "few.csv", index=False)
    assert command("fit", tmp_path / "few.csv", "-t", "outcome", *ONE_FIT, "-o", reference, "-q")[0] == 0
    for name, options in (("suggest", ()), ("audit", ("--reference", reference))):
        write = (name, model_file, tmp_path / "t.csv", *options, "-n", 5, "-q", "-o")
        for path in (tmp_path / f"{name}.csv", tmp_path / f"{name}.parquet"):
            assert command(*write, path, "--escape-formulas")[0] == 0
            written = (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path)
            assert "'=1+1" in written.columns
            assert set(written["note"]) == {"'=cmd|x"}
        assert command(*write, tmp_path / "raw.csv")[0] == 0
        assert set(pd.read_csv(tmp_path / "raw.csv")["note"]) == {"=cmd|x"}


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from safespn.cli import main
main()
"""


@pytest.mark.parametrize("module", ["numpy", "scipy.special", "pandas", "typer", "safespn.cli.app"])
def test_an_interrupt_while_modules_are_imported(module):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, module], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "safespn: interrupted; nothing was written\n")

"""Fits of tables whose rows stay on disk: the same models, the same complaints, and word of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from safespn import SafeSPNClassifier
from safespn.cli import out_of_core
from safespn.tables import ColumnChoices, large, open_table, read_training_table
from safespn.tables.large import read_large_table
from tests.cli.conftest import ONE_FIT, patients

COMMAND = Path(sys.executable).parent / "safespn"
FEATURES = ["age", "sex", "bmi", "region", "smoker", "dose"]


def table(n: int = 400) -> pd.DataFrame:
    """Patients with a marker for missing cells, and a category and a class that occur late only."""
    frame = patients(n, n // 4)
    frame["dose"] = np.where(np.arange(n) % 9 == 0, -999, np.random.default_rng(1).gamma(2.0, size=n).round(3))
    frame.loc[n - 10 :, "region"] = "island"
    frame.loc[n - 20 : n - 12, "outcome"] = "dead"
    return frame


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(large, "ROWS_PER_BLOCK", 150)
    monkeypatch.setattr("safespn.tables.reading.CHUNK_ROWS", 70)


@pytest.fixture
def fit(command, tmp_path):
    """Fit a file; returns what was said and the model."""

    def call(path: Path, *options: object) -> tuple[str, SafeSPNClassifier]:
        model = ("-o", tmp_path / "m", *ONE_FIT)
        status, _, err = command("fit", path, "-t", "outcome", *model, "--missing=-999", *options)
        assert status == 0, err
        return err, SafeSPNClassifier.load(tmp_path / "m")

    return call


def features(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[FEATURES].astype({"smoker": float}).replace({"dose": {-999: np.nan}})


@pytest.mark.usefixtures("small_blocks")
def test_models_are_those_of_fits_in_memory(fit, tmp_path):
    frame, path = table(), tmp_path / "t.parquet"
    frame.to_parquet(path, row_group_size=140)
    said, expected = fit(path)
    assert "on disk" not in said
    said, fitted = fit(path, "--out-of-core")
    assert not expected.safety_.fallback
    assert fitted.classes_.tolist() == expected.classes_.tolist() == ["dead", "ill", "well"]
    assert fitted._encoder.categories == expected._encoder.categories
    assert "island" in fitted._encoder.categories[list(fitted.feature_names_in_).index("region")]
    for ours, theirs in ((fitted, expected), (fitted.supervised_, expected.supervised_)):
        joint = theirs.joint_log_likelihood(features(frame))
        np.testing.assert_allclose(ours.joint_log_likelihood(features(frame)), joint, rtol=1e-9, atol=1e-9)
    assert fitted.safety_.worst_case == pytest.approx(expected.safety_.worst_case, rel=1e-9)
    assert fitted.notes_ == expected.notes_
    line = next(line for line in said.splitlines() if "Dask" in line)
    assert line.startswith(f"{path}: about ")
    assert "available (as asked): rows stay on disk and are fitted in blocks with Dask, 3 in all; types of" in line
    assert line.endswith("types of columns were decided on a sample of 400 rows")
    assert "features copied to a temporary Parquet file of" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m", "t.parquet"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("row_group", "columns", "n_blocks", "is_copied"),
    [
        (30, ["age", "bmi", "dose"], 3, False),
        (400, ["age", "bmi", "dose"], 3, False),
        (700, ["age", "bmi", "dose"], 5, True),
        (40, FEATURES, 4, True),
        (None, FEATURES, 3, True),
    ],
    ids=["groups together", "slices of a group", "a huge group", "categories", "text"],
)
def test_blocks_hold_the_rows_of_the_file(row_group, columns, n_blocks, is_copied, tmp_path):
    frame, path = table(row_group if row_group == 700 else 400)[[*columns, "outcome"]], tmp_path / "t"
    if row_group:
        frame.to_parquet(path, row_group_size=row_group)
    else:
        frame.to_csv(path, index=False, sep=";", decimal=",")
    choices = ColumnChoices(missing=("-999",))
    whole = read_large_table(open_table(path), "outcome", choices, tmp_path, seed=0)
    assert (whole.copy is not None) == is_copied
    expected = read_training_table(open_table(path), "outcome", choices)
    read = whole.features.compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(read.astype(expected.features.dtypes), expected.features)
    assert whole.targets.compute().tolist() == expected.labels.tolist()
    assert whole.columns == expected.columns
    assert whole.targets.chunks == (tuple(len(part) for part in dask.compute(*whole.features.to_delayed())),)
    assert max(map(len, whole.blocks)) <= 150
    assert len(whole.blocks) == n_blocks


def test_tables_larger_than_a_share_of_memory_stay_on_disk_by_themselves(fit, tmp_path, monkeypatch):
    table(100).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(out_of_core, "SHARE_OF_MEMORY", 1e-7)
    assert "(more than 1e-05 %): rows stay on disk" in fit(tmp_path / "t.parquet")[0]
    assert "on disk" not in fit(tmp_path / "t.parquet", "--in-memory")[0]


@pytest.mark.parametrize("where", ["--out-of-core", "--in-memory"])
def test_json_tells_where_the_rows_were(command, tmp_path, where):
    table(100).to_parquet(tmp_path / "t.parquet")
    status, out, _ = command(
        *("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--safety", "none", "--json", where),
        *ONE_FIT,
    )
    assert status == 0
    assert json.loads(out)["out_of_core"] is (where == "--out-of-core")


def test_limits_of_containers_count(monkeypatch):
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", 12345)
    assert out_of_core._memory(1 << 30) == 12345


def test_without_dask_rows_are_read_into_memory(fit, refused, tmp_path, monkeypatch):
    table().to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setattr(out_of_core, "SHARE_OF_MEMORY", 0.0)
    refused(
        *("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--out-of-core"),
        words=("--out-of-core is not possible", "pip install 'safespn[dask]'"),
    )
    said, _ = fit(tmp_path / "t.parquet")
    line = next(line for line in said.splitlines() if "dask" in line)
    assert "all rows are read into it" in line
    assert "pip install 'safespn[dask]'" in line


def test_the_discriminative_objective_needs_memory(refused, tmp_path):
    table().to_parquet(tmp_path / "t.parquet")
    refused(
        *("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--out-of-core"),
        *("--objective", "discriminative"),
        words=("--objective discriminative ties all rows together", "--objective generative"),
    )


@pytest.fixture
def sampled(monkeypatch, small_blocks):
    """A sample that does not see the last rows, which nobody can rely on in earnest."""
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(large, "_draw", lambda labels, size, seed: np.arange(size))


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("inf", ("column 'bmi', row 391: inf is infinite", "expected a finite number")),
        ("high", ("column 'bmi', row 391: 'high' is not a number", "sample", "pass --missing 'high'")),
    ],
)
def test_cells_that_the_sample_did_not_show_are_named(name, cell, words, refused, tmp_path):
    frame = table()
    frame["bmi"] = [*(f"{value:.2f}" for value in frame["bmi"].fillna(20.0)[:390]), *([cell] * 10)]
    path = tmp_path / name
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, row_group_size=100)
    refused(
        *("fit", path, "-t", "outcome", "-o", tmp_path / "m", "--report", tmp_path / "r", "--out-of-core", "-q"),
        *("--ignore", "id"),
        words=(f"{name}: {words[0]}", *words[1:]),
    )


@pytest.mark.usefixtures("sampled")
def test_errors_in_blocks_that_are_read_directly_name_the_block(refused, tmp_path):
    frame = table()[["age", "bmi", "outcome"]]
    frame.loc[390, "bmi"] = np.inf
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    refused(
        *("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--out-of-core", "-q"),
        words=("t.parquet: block 3: column 'bmi', row 391: inf is infinite",),
    )


@pytest.mark.usefixtures("sampled")
def test_categories_that_are_none(refused, tmp_path):
    frame = table(800)
    frame["smoker"] = frame["smoker"].astype(float)
    frame.loc[540:, "smoker"] = np.arange(260) / 7
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=400)
    refused(
        *("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--out-of-core", "-q"),
        words=("t.parquet: column 'smoker' has more than 200 different values, but 2 in the sample", "--continuous"),
    )


def test_rows_of_the_sample_are_named_by_their_place_in_the_file(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "_draw", lambda labels, size, seed: np.arange(200, 400))
    frame = table()
    frame["bmi"] = [*(f"{value:.2f}" for value in frame["bmi"].fillna(20.0)[:-1]), "high"]
    frame.to_parquet(tmp_path / "t.parquet")
    arguments = ("fit", tmp_path / "t.parquet", "-t", "outcome", "-o", tmp_path / "m", "--out-of-core", "-q")
    refused(*arguments, words=("column 'bmi' mixes numbers and text: 'high' in row 400 (1 rows of the sample)",))
    refused(*arguments, "--continuous", "bmi", words=("'bmi' was to be continuous, but row 400 holds 'high'",))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x,y\n", "column names but no rows"),
        ("x,y\n1,\n2,\n", "no label in any of 2 rows"),
        ("x,y\n1,a\n2,a\n", "single class 'a'"),
        ("x,y\n1,a\n1,b\n", "no column left"),
        ("x,z\n1,a\n1,b\n", "no column 'y'"),
        ("x,y\n1,a\n2,3,b\n", "line 3: 3 cells"),
    ],
)
def test_other_mistakes_are_those_of_fits_in_memory(content, words, refused, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "-q")
    said = refused(*arguments, "--out-of-core", words=(words,))
    assert said == refused(*arguments, "--in-memory", words=(words,))


@pytest.mark.slow
def test_the_report_is_made_from_a_sample_and_says_so(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "REPORT_ROWS", 60)
    table(100).to_parquet(tmp_path / "t.parquet", row_group_size=40)
    fit(tmp_path / "t.parquet", "--out-of-core", "--safety", "none", "--report", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    size = re.search(r"t.parquet, a sample of (\d+ of 100 rows), \d\d labelled and \d\d unlabelled rows", page)
    assert size is not None
    assert f"report is made from a sample of {size[1]}, stratified by class; the fit saw all" in page


@pytest.mark.usefixtures("small_blocks")
def test_rows_of_the_report_are_rows_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(large, "REPORT_ROWS", 100)
    frame = table()
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=90)
    choices = ColumnChoices(missing=("-999",))
    whole = read_large_table(open_table(tmp_path / "t.parquet"), "outcome", choices, tmp_path, seed=3)
    assert 297 <= len(whole.sampled_rows) <= 300
    drawn, places = whole.for_report(seed=0)
    rows = drawn.features.index.to_numpy()
    assert 97 <= len(np.unique(rows)) == len(rows) <= 100
    expected = features(frame)
    pd.testing.assert_frame_equal(drawn.features[FEATURES].astype(expected.dtypes), expected.iloc[rows])
    unlabelled = np.nonzero(frame["outcome"].isna())[0]
    np.testing.assert_array_equal(unlabelled[places], rows[drawn.labels == ""])
    assert set(drawn.labels) == {"", "dead", "ill", "well"}


@pytest.mark.slow
@pytest.mark.skipif(not COMMAND.exists(), reason="the command safespn is not installed")
def test_interrupted_fits_leave_no_copy(tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(20_000, 20)).round(3), columns=[f"x{column}" for column in range(20)])
    frame["y"] = [*("ab" * 100), *([""] * 19_800)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    with subprocess.Popen(
        [COMMAND, "fit", "t.csv", "-t", "y", "-o", "m", "--out-of-core"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as process:
        assert any("fitting" in line for line in process.stderr)
        assert len(list(tmp_path.glob(".safespn-*/rows.parquet"))) == 1
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_blocks_are_row_groups_together_or_slices():
    assert large.divide([10, 10, 10, 35, 4], 20) == [
        range(20),
        range(20, 30),
        range(30, 47),
        range(47, 65),
        range(65, 69),
    ]
    assert large.divide([0, 5, 0], 20) == [range(5)]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_rows_are_read_by_their_numbers(name, tmp_path):
    numbers = np.arange(50_000)
    path = tmp_path / name
    content = pa.table({"number": numbers, "text": numbers.astype(str)})
    if name == "t.csv":
        pa.csv.write_csv(content, path)
    else:
        pa.parquet.write_table(content, path, row_group_size=7_000)
    file = open_table(path)
    for rows in (
        np.array([0]),
        np.array([49_999]),
        np.arange(6_999, 21_001),
        np.array([3, 6_999, 7_000, 16_384, 40_000]),
        np.random.default_rng(0).choice(50_000, 5_000, replace=False),
    ):
        chosen = np.sort(rows)
        read = file.read(["text"], chosen)
        assert list(read) == ["text"]
        assert read["text"].tolist() == chosen.astype(str).tolist()
    assert file.read()["text"].tolist() == numbers.astype(str).tolist()


def numbers(path: Path, n: int = 600, target: str = "outcome") -> Path:
    """Numbers only, in row groups that are blocks: no copy is needed, and rows are read from the file itself."""
    frame = patients(n, n // 4)[["age", "bmi", target]]
    frame.to_parquet(path, row_group_size=150)
    return path


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_changes_during_the_fit_is_refused(refused, tmp_path, monkeypatch):
    path = numbers(tmp_path / "t.parquet")
    original = large.divide

    def divided(*arguments):
        path.write_bytes(numbers(tmp_path / "other.parquet", 450).read_bytes())
        (tmp_path / "other.parquet").unlink()
        return original(*arguments)

    monkeypatch.setattr(large, "divide", divided)
    arguments = ("fit", path, "-t", "outcome", "-o", tmp_path / "m", "--out-of-core", "--quiet", *ONE_FIT)
    refused(*arguments, words=("t.parquet", "the file changed during the fit; fit again when it is complete"))


@pytest.mark.usefixtures("small_blocks")
def test_a_full_disk_is_told_in_one_line_and_nothing_is_left(refused, tmp_path, monkeypatch):
    path = numbers(tmp_path / "t.parquet")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    arguments = ("fit", path, "-t", "outcome", "-o", tmp_path / "m", "--out-of-core", "--quiet", *ONE_FIT)
    refused(*arguments, words=("scratch", "No space left on device; make room, or choose a folder on a larger disk"))


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_encoded_once_however_many_passes_there_are(fit, tmp_path, monkeypatch):
    path = numbers(tmp_path / "t.parquet")
    read = []
    original = large._Reader.__call__

    def counted(self, number, block):
        read.append(number)
        return original(self, number, block)

    monkeypatch.setattr(large._Reader, "__call__", counted)
    _, fitted = fit(path, "--out-of-core")
    # For the types of the columns, to look at what they hold, and to encode them; blocks are few and passes many.
    assert len(fitted.history_) > 3
    assert sorted(read) == sorted([0] + [0, 1, 2, 3] * 2)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_passes_are_told_on_standard_error(fit, tmp_path, monkeypatch):
    monkeypatch.setattr("safespn.cli.console.SECONDS_BETWEEN_LINES", 0.0)
    path = numbers(tmp_path / "t.parquet")
    said, fitted = fit(path)
    lines = [line for line in said.splitlines() if line.startswith("pass ")]
    assert len(lines) == len(fitted.history_)
    assert re.fullmatch(r"pass 1 of at most 25, W \S+ nats, \S+( thousand)? rows/s, at most \d+ s left", lines[0])

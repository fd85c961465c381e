from __future__ import annotations

import codecs
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safespn.exceptions import TableError
from safespn.tables import open_table
from safespn.tables.cells import cells_of
from safespn.tables.reading import CHUNK_ROWS

LETTERS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="﻿"), min_size=1)
NAMES = st.lists(LETTERS.filter(lambda name: not set(name) & set(",;|")), min_size=2, max_size=4, unique=True)
"""No separators in names: a file may then be read in two ways."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES, data=st.data(), style=st.sampled_from([(",", "."), (";", ","), ("\t", ","), ("|", ".")]))
def test_what_is_written_is_read(tmp_path, names, data, style):
    separator, decimal = style
    rows = st.tuples(st.floats(-1e6, 1e6).map(lambda value: round(value, 3) + 0.0005), *[LETTERS] * (len(names) - 1))
    frame = pd.DataFrame(data.draw(st.lists(rows, min_size=3, max_size=6)), columns=names)
    frame.to_csv(tmp_path / "t.csv", sep=separator, decimal=decimal, index=False)
    file = open_table(tmp_path / "t.csv")
    assert file.names == names
    assert (file.dialect.separator, file.decimal) == style
    read = file.read()
    np.testing.assert_allclose(cells_of(read[names[0]], "text", decimal=file.decimal).numbers, frame[names[0]])
    for name in names[1:]:
        assert read[name].tolist() == frame[name].tolist()


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        ("﻿a,b\n1,2\n", ["a", "b"], [("1", "2")]),
        ("\n\na,b\n1,2\n\n3,4", ["a", "b"], [("1", "2"), ("3", "4")]),
        ('a,b\n"x\ny",2\n', ["a", "b"], [("x\ny", "2")]),
        ('a,b\n"say ""hi""",2\n', ["a", "b"], [('say "hi"', "2")]),
        ("a\r\n1\r\n2\r\n", ["a"], [("1",), ("2",)]),
        ("a\n1\n\n2\n", ["a"], [("1",), ("",), ("2",)]),
        (",b\n1,2\n", ["column 1", "b"], [("1", "2")]),
        ("a;b\n1,5;2,5\n2,5;3,5\n", ["a", "b"], [("1,5", "2,5"), ("2,5", "3,5")]),
        ("a, b \n1, 2\n", ["a", "b"], [("1", " 2")]),
        ('a,"t\n(1)"\n1,2\n', ["a", "t (1)"], [("1", "2")]),
        ('\n"a\r\n\r\nb","c\n"\r\n1,2\r\n', ["a b", "c"], [("1", "2")]),
        ("  \na,b\u2028c\n1,2\u20283\n", ["a", "b\u2028c"], [("1", "2\u20283")]),
    ],
)
def test_quirks(tmp_path, content, names, rows):
    (tmp_path / "t.csv").write_bytes(content.encode())
    file = open_table(tmp_path / "t.csv")
    assert file.names == names
    read = file.read()
    assert list(zip(*(read[name].tolist() for name in names), strict=True)) == rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-32-le", "utf-32-be", "cp1252"])
def test_encodings(tmp_path, encoding):
    mark = {"utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}.get(encoding, b"")
    (tmp_path / "t.csv").write_bytes(mark + "a,b\nKäse,2\n".encode(encoding))
    assert open_table(tmp_path / "t.csv").read()["a"].tolist() == ["Käse"]


def test_letters_that_no_encoding_explains(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\x81,2\n")
    with pytest.raises(TableError, match=r"t\.csv: letters that are not CP1252"):
        open_table(tmp_path / "t.csv")


@pytest.mark.parametrize("size", [200_000, 10_000_000])
def test_long_cells(tmp_path, size):
    rows = [f"{number},x" for number in range(100_000)]
    rows[60_000] = f"0,{'y' * size}"
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]))
    read = open_table(tmp_path / "t.csv").read()
    assert len(read["a"]) == 100_000
    assert read["a"][-1] == "99999"
    assert len(read["b"][60_000]) == size


def test_names_that_are_no_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        (tmp_path / name).rename(folder / name)
        assert len(open_table(folder / name).read()["a"]) == 1


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_pipe_is_read_once_and_its_copy_is_deleted(tmp_path, monkeypatch, name):
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    frame = pd.DataFrame({"a": np.arange(50_000.0), "b": "x"})
    frame.to_csv(tmp_path / name, index=False) if name == "t.csv" else frame.to_parquet(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as executor:
        executor.submit((tmp_path / "pipe").write_bytes, (tmp_path / name).read_bytes())
        file = open_table(tmp_path / "pipe")
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(file.read()["a"], dtype=float), frame["a"])
    del file
    assert list((tmp_path / "copies").iterdir()) == []


STOP_IN_THE_MIDDLE = """
import pathlib, sys, time
from safespn.tables import open_table

class SlowFile:
    def __init__(self, file):
        self.file = file

    def read(self, size=-1):
        time.sleep(0.05)
        return self.file.read(size)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

class SlowExit:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)

sys.slow = SlowExit()
chunks = open_table(pathlib.Path(sys.argv[1])).chunks()
opened = pathlib.Path.open
pathlib.Path.open = lambda path, *arguments, **options: SlowFile(opened(path, *arguments, **options))
next(chunks)
chunks.close()
sys.exit(2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_no_thread_of_arrow_needs_python_when_the_process_ends(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 1_000_000, encoding=encoding)
    done = subprocess.run(
        [sys.executable, "-c", STOP_IN_THE_MIDDLE, str(tmp_path / "t.csv")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, "")


def test_kinds_of_parquet_columns(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, None]),
            "real": pa.array([0.5, None]),
            "exact": pa.array([1, 2], pa.decimal128(5, 2)),
            "flag": pa.array([True, None]),
            "text": pa.array(["a", None]),
            "kind": pa.array(["a", None]).dictionary_encode(),
            "grade": pa.array([3, None]).dictionary_encode(),
            "day": pa.array([0, None], pa.date32()),
            "time": pa.array([0, None], pa.timestamp("us")),
            "list": pa.array([[1], None]),
            "nothing": pa.array([None, None]),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    file = open_table(tmp_path / "t.parquet")
    expected = ["number"] * 3 + ["text"] * 3 + ["number", "date", "date", "nested", "text"]
    assert list(file.kinds.values()) == expected
    read = file.read()
    np.testing.assert_array_equal(read["whole"], [1.0, np.nan])
    np.testing.assert_array_equal(read["grade"], [3.0, np.nan])
    assert read["flag"].tolist() == ["True", None]
    assert read["kind"].tolist() == ["a", None]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_long_files_come_in_bounded_chunks(tmp_path, name):
    frame = pd.DataFrame({"a": np.arange(3.0 * CHUNK_ROWS + 5), "b": "x"})
    frame.to_csv(tmp_path / name, index=False) if name == "t.csv" else frame.to_parquet(tmp_path / name)
    shares: list[float] = []
    chunks = list(open_table(tmp_path / name).chunks(["b", "a"], shares.append))
    assert max(len(chunk["a"]) for chunk in chunks) <= CHUNK_ROWS
    assert len(chunks) >= 4
    assert [list(chunk) for chunk in chunks] == [["b", "a"]] * len(chunks)
    joined = np.concatenate([np.asarray(chunk["a"], dtype=float) for chunk in chunks])
    np.testing.assert_array_equal(joined, frame["a"])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_cell_that_is_not_utf8_far_down(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 400_000 + b"1,\xff\n")
    with pytest.raises(TableError, match="line 400002: letters that are not UTF-8"):
        open_table(tmp_path / "t.csv").read()


@pytest.mark.parametrize(
    ("content", "decimal", "grouping"),
    [
        ("a;b\n1.234;0,5\n2.345,5;1,5\n1.234.567;2,5\n", ",", {"a": True, "b": True}),
        ("a;b\n1.234;x\n2.345;y\n2.345,5;z\n", ",", {"a": True}),
        ("a;b\n1.234;0,5\n0.5;1,5\n12.3456;2,5\n1.5;2,25\n;3,5\n", ",", {"a": False, "b": True}),
        ("a;b\n1.234;1,5\n12.345;\n2.345;2\n", ",", {"a": True}),
        ("a;b\n1.234;1,5\n12.345;x\n2.345;2\n", ".", {"a": False}),
        ("a;b\n1.234;1,234\n12.345;\n2.345;2\n", ".", {"a": False}),
        ("a;b\n1.234;0.5\n12.345;1.5\n", ".", {"a": False, "b": False}),
        ('a,b\n1.234,0.5\n"2.345,5",1.5\n', ".", {"a": True, "b": False}),
    ],
)
def test_where_points_group_thousands(tmp_path, content, decimal, grouping):
    (tmp_path / "t.csv").write_text(content)
    file = open_table(tmp_path / "t.csv")
    assert file.decimal == decimal
    assert {name: file.grouping(name) for name in grouping} == grouping

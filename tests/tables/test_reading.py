from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safespn.tables import TableError, open_table
from safespn.tables.cells import cells_of
from safespn.tables.reading import CHUNK_ROWS

LETTERS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="﻿"), min_size=1)
NAMES = st.lists(LETTERS.filter(lambda name: not set(name) & set(",;|")), min_size=2, max_size=4, unique=True)
"""No separators in names: a file may then be read in two ways."""


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    ],
)
def test_quirks(tmp_path, content, names, rows):
    (tmp_path / "t.csv").write_bytes(content.encode())
    file = open_table(tmp_path / "t.csv")
    assert file.names == names
    read = file.read()
    assert list(zip(*(read[name].tolist() for name in names), strict=True)) == rows


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

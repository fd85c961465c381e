from __future__ import annotations

import numpy as np
import pytest

from safespn.foundation.label_doubts import label_doubts
from safespn.foundation.labels import as_labels, encode_labels, is_unlabelled
from safespn.model_selection import SemiSupervisedSplit

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def polars_series(values: list[object]) -> object:
    return pytest.importorskip("polars").Series(values)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([1.0, np.nan, 2.0, -1.0]), [1, 2]),
        ([1, None, 2, -1], [1, 2]),
        (["a", None, "b", ""], ["a", "b"]),
        (["a", " ", "b", "\t"], ["a", "b"]),
        (np.array(["a", "  ", "b", "-1"]), ["a", "b"]),
        (["a", np.nan, "b", -1], ["a", "b"]),
        (np.array(["a", "", "b", "-1"]), ["a", "b"]),
        (pd.Series([1, None, 2, -1], dtype="Int64"), [1, 2]),
        (pd.Series([1.5, None, 1.5, -1], dtype="Float64").round(), [2]),
        (pd.Series(["a", pd.NA, "b", ""], dtype="string"), ["a", "b"]),
        (pd.Series(["a", None, "b", np.nan], dtype=object), ["a", "b"]),
        (pd.Series(["a", None, "b", ""], dtype="category"), ["a", "b"]),
        (pd.Series([1, None, 2, -1], dtype="category"), [1, 2]),
        (pd.Series([True, None, False, pd.NA], dtype="boolean"), [False, True]),
        (pd.Series([True, None, False, None], dtype="boolean[pyarrow]"), [False, True]),
        (pd.Series(["a", None, "b", ""], dtype="string[pyarrow]"), ["a", "b"]),
        (pa.array([1, None, 2, -1]), [1, 2]),
        (pa.chunked_array([["a", None], ["b", ""]]), ["a", "b"]),
        (pa.array([True, None, False, None]), [False, True]),
        (pa.array(["a", None, "b", ""]).dictionary_encode(), ["a", "b"]),
        (np.ma.masked_array([1, 5, 2, -1], [False, True, False, False]), [1, 2]),
        (np.ma.masked_array(["a", "z", "b", "z"], [0, 1, 0, 1]), ["a", "b"]),
    ],
)
def test_gaps_of_every_kind_of_column_are_unlabelled(labels, classes):
    array = as_labels(labels)
    assert is_unlabelled(array, -1).tolist() == [False, True, False, True]
    if len(classes) == 2:
        found, codes = encode_labels(array, -1)
        assert found.tolist() == classes
        assert sorted(codes.tolist()) == [-1, -1, 0, 1]
        assert len(list(SemiSupervisedSplit([([0], [1])]).split(np.zeros((4, 1)), labels))) == 1


def test_polars_columns():
    for values, classes in (([1, None, 2, -1], [1, 2]), (["a", None, "b", ""], ["a", "b"])):
        assert encode_labels(as_labels(polars_series(values)), -1)[0].tolist() == classes


@pytest.mark.parametrize(
    ("classes", "counts", "n_rows", "words"),
    [
        (["-1", "a", "b"], [60, 20, 20], 100, "'-1' is taken as a class (60 of 100 rows)"),
        (["Unknown", "a", "b"], [60, 20, 20], 100, "pass unlabeled='Unknown'"),
        (["?", "a"], [51, 49], 100, "'?' is taken as a class"),
        (["NA", "SA"], [40, 60], 100, None),
        (["NA", "SA"], [60, 40], 200, None),
        ([-1, 1], [50, 50], 100, None),
        (np.arange(26), [40] * 26, 1040, None),
        (np.arange(1, 27).astype(str), [40] * 26, 1040, None),
        (np.arange(26), [2] * 26, 52, "26 different numbers"),
        (np.arange(18, 66), [40] * 48, 1920, "48 different numbers, which look like a quantity"),
        (np.arange(18, 66).astype(str), [40] * 48, 1920, "regression"),
        (np.arange(0, 200, 10), [40] * 20, 800, None),
        ([f"breed {number}" for number in range(60)], [2] * 60, 120, None),
    ],
)
def test_doubts(classes, counts, n_rows, words):
    doubts = label_doubts(np.array(classes), np.array(counts), n_rows)
    assert (words in doubts[0] and len(doubts) == 1) if words else not doubts


def test_without_a_marker_every_row_needs_a_label():
    with pytest.raises(ValueError, match=r"contains NaN or None, first in row 1, but unlabeled=None says"):
        encode_labels(np.array([0.0, np.nan, 1.0]), None)


@pytest.mark.parametrize("marker", [-1, np.int64(-1), -1.0])
def test_labels_of_minus_one_and_one_are_told_apart_from_the_marker(marker):
    message = r"only one class, 1; .*2 rows are the marker \S+ or missing.*set unlabeled=None or give the class"
    with pytest.raises(ValueError, match=message):
        encode_labels(np.array([-1, 1, 1, -1]), marker)
    assert encode_labels(np.array([-1, 1, 1, -1]), None)[0].tolist() == [-1, 1]
    with pytest.raises(ValueError, match="only one class, 'a'; a classifier needs at least one labelled row of each"):
        encode_labels(np.array(["a", "a"]), None)

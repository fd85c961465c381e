from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from safespn.exceptions import TableError
from safespn.tables.cells import cells_of
from safespn.tables.column_types import categorical, continuous, decide_type

GENERATOR = np.random.default_rng(0)
ROWS = 300


def column(values: object) -> np.ndarray:
    return np.array([None if value is None else str(value) for value in values], dtype=object)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("price", [f"${value:,.2f}" for value in GENERATOR.gamma(2, 900, ROWS)], "price: continuous"),
        ("people", [f"{value:,}" for value in GENERATOR.integers(0, 5_000, ROWS)], "people: continuous"),
        ("plan", ["$1", "$2"] * 150, "plan: categorical (2)"),
        ("age", GENERATOR.normal(size=ROWS).round(2), "age: continuous"),
        ("count", GENERATOR.integers(0, 9, ROWS), "count: continuous"),
        ("smoker", GENERATOR.integers(0, 2, ROWS), "smoker: categorical (2)"),
        ("flag", ["1", "0", "1.0", None] * 75, "flag: categorical (2)"),
        ("sex", ["f", "m", None] * 100, "sex: categorical (2)"),
        ("code", ["1", "2", "a"] * 100, "code: categorical (3)"),
        ("city", [f"city {number % 90}" for number in range(ROWS)], "city: categorical (90)"),
        ("note", [f"note {number % 280}" for number in range(ROWS)], "note: ignored, free text (280 different values)"),
        ("name", [f"person {number}" for number in range(ROWS)], "name: ignored, unique per row"),
        ("patient", GENERATOR.permutation(10_000)[:ROWS], "patient: ignored, unique per row"),
        ("when", pd.date_range("2001-02-03", periods=ROWS).strftime("%Y-%m-%d"), "when: ignored, dates"),
        ("when", pd.date_range("2001-02-03", periods=ROWS).strftime("%d.%m.%Y"), "when: ignored, dates"),
        ("when", pd.date_range("2001-02-03", periods=ROWS).strftime("%m/%d/%Y %H:%M"), "when: ignored, dates"),
        ("site", ["north"] * ROWS, "site: ignored, always north"),
        ("site", ["7", "7.0"] * 150, "site: ignored, always 7"),
        ("gap", [None, "NA", "?", " "] * 75, "gap: ignored, empty"),
    ],
)
def test_decisions(name, values, expected):
    assert str(decide_type(name, cells_of(column(values), "text"), "t.csv")) == expected


@pytest.mark.parametrize(
    ("name", "is_identifier"),
    [("id", True), ("patient_id", True), ("PatientID", True), ("row", True), ("weight", False), ("humid", False)],
)
def test_names_tell_identifiers_in_short_tables(name, is_identifier):
    values = np.random.default_rng(1).permutation(500)[:40]
    decided = decide_type(name, cells_of(values.astype(float), "number"), "t")
    assert (decided.kind == "ignored") == is_identifier


def test_counted_rows_are_identifiers_whatever_their_name():
    assert decide_type("x", cells_of(np.arange(40.0), "number"), "t").kind == "ignored"
    assert decide_type("x", cells_of(np.arange(10.0), "number"), "t").kind == "continuous"


def test_measurements_without_repeats_are_no_identifiers():
    assert decide_type("x", cells_of(GENERATOR.normal(size=ROWS), "number"), "t").kind == "continuous"


def test_a_few_words_among_numbers_are_a_mistake_and_are_named():
    values = column(GENERATOR.normal(size=ROWS).round(2))
    values[[7, 9]] = "unknown"
    with pytest.raises(TableError, match=r"column 'x' mixes numbers and text: 'unknown' in row 8 \(2 rows in all\)"):
        decide_type("x", cells_of(values, "text"), "t.csv")
    assert str(decide_type("x", cells_of(values, "text", ["unknown"]), "t.csv")) == "x: continuous"
    with pytest.raises(TableError, match="row 8 holds 'unknown'"):
        continuous("x", cells_of(values, "text"), "t.csv")
    assert categorical("x", cells_of(values, "text")).kind == "categorical"


def test_cells():
    cells = cells_of(column(["1.0", " 2 ", "x", None, "NA", "-999", "1,5"]), "text", ["-999.0"])
    assert cells.texts.tolist() == ["1.0", "2", "x", "", "", "", "1,5"]
    np.testing.assert_array_equal(cells.numbers, [1, 2, *[np.nan] * 5])
    assert cells.categories().tolist() == ["1", "2", "x", None, None, None, "1,5"]
    assert cells.is_text.tolist() == [False, False, True, False, False, False, True]
    np.testing.assert_array_equal(cells_of(column(["1,5", "2", None]), "text", decimal=",").numbers, [1.5, 2, np.nan])


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("$12", ".", 12),
        ("-$1,234.5", ".", -1234.5),
        ("$-3", ".", -3),
        ("-$-3", ".", np.nan),
        ("$-12", ".", -12),
        ("($12)", ".", -12),
        ("$(1,234.5)", ".", -1234.5),
        ("(1.234,5) €", ",", -1234.5),
        ("($-12)", ".", np.nan),
        ("(12)", ".", np.nan),
        ("-12 €", ".", -12),
        ("1,234,567", ".", 1_234_567),
        ("£ 1,234.50", ".", 1234.5),
        ("1.234,50 €", ",", 1234.5),
        ("1.234.567", ",", 1_234_567),
        ("12,34", ".", np.nan),
        ("1,2345", ".", np.nan),
        ("1,234", ",", 1.234),
        ("12$34", ".", np.nan),
    ],
)
def test_amounts(text, decimal, number):
    cells = cells_of(column([text]), "text", decimal=decimal)
    np.testing.assert_array_equal(cells.numbers, [number])
    assert cells.texts.tolist() == [text]


@pytest.mark.parametrize(
    ("texts", "decimal", "numbers"),
    [
        (["1.234", "2.345,5", "1.234.567"], ",", [1234, 2345.5, 1_234_567]),
        (["1.234", "-12.345", None, "7,5"], ",", [1234, -12345, np.nan, 7.5]),
        (["1.234", "1.234.567", "12"], ".", [1234, 1_234_567, 12]),
        (["1.234", "2.345,5"], ".", [1234, 2345.5]),
        (["1.234 €", "2.345,5 €", "(1.234 €)"], ".", [1234, 2345.5, -1234]),
        (["1.234", "0.5"], ",", [1.234, 0.5]),
        (["1.234", "12.3456"], ",", [1.234, 12.3456]),
        (["1.234 €", "1.23 €"], ",", [1.234, 1.23]),
        (["1.234", "0.123"], ",", [1.234, 0.123]),
        (["1.234", "12.345"], ".", [1.234, 12.345]),
        (["1.23", "0.5", "12.3456", "1.234"], ".", [1.23, 0.5, 12.3456, 1.234]),
        (["1,234.5", "1.234"], ".", [1234.5, 1.234]),
        (["100.200.300", "100.200.301"], ".", [np.nan, np.nan]),
        (["192.168.100.123", "10.0.0.1"], ".", [np.nan, np.nan]),
    ],
)
def test_points_group_thousands_in_a_whole_column_or_not_at_all(texts, decimal, numbers):
    cells = cells_of(column(texts), "text", decimal=decimal)
    np.testing.assert_array_equal(cells.numbers, numbers)


def test_numbers_of_parquet_files_are_the_same_categories_as_their_texts():
    numbers = np.array([1.0, 2.0, np.nan, 0.1, -3.0, 1e20])
    cells = cells_of(numbers, "number", ["2"])
    assert cells.categories().tolist() == ["1", None, None, "0.1", "-3", "100000000000000000000"]
    assert cells.is_missing.tolist() == [False, True, True, False, False, False]

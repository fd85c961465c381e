from __future__ import annotations

import warnings

import numpy as np
import pytest

from safespn import IgnoredColumnWarning, SafeSPNClassifier, SentinelWarning, UnseenCategoryWarning
from safespn.foundation.column_types import LONGEST_DATE, are_dates, decide_type, merge_summaries, summarise_columns
from safespn.foundation.sentinels import find_sentinels
from safespn.foundation.table_encoder import TableEncoder

pd = pytest.importorskip("pandas")
N_ROWS = 90
TYPES = ["continuous", "categorical", "continuous", *["categorical"] * 3, *["ignored"] * 5]


def mixed_table():
    """A column of each kind, and the class of each row."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N_ROWS)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=N_ROWS) + 2 * y,
            "two": rng.choice([2, 10], N_ROWS),
            "count": rng.poisson(3, N_ROWS),
            "text": rng.choice(["a", "b", "c"], N_ROWS),
            "flag": rng.random(N_ROWS) < 0.3 + 0.4 * y,
            "category": pd.Categorical([f"level {number}" for number in range(N_ROWS)]),
            "constant": 7.5,
            "patient_id": rng.permutation(5000)[:N_ROWS],
            "date": pd.date_range("2020", periods=N_ROWS),
            "note": [f"note {number}" for number in range(N_ROWS)],
            "empty": np.nan,
        }
    )
    return frame, np.where(np.arange(N_ROWS) < 30, y, -1)


@pytest.fixture(scope="module")
def frame_and_classifier():
    frame, partly = mixed_table()
    with pytest.warns(IgnoredColumnWarning) as caught:
        classifier = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(frame, partly)
    assert {warning.message.column for warning in caught} == {"patient_id", "date", "note"}
    return frame, classifier


def test_types_of_a_frame_are_kept_with_the_model(frame_and_classifier, tmp_path):
    frame, classifier = frame_and_classifier
    assert classifier.column_types_ == TYPES
    assert classifier.supervised_.column_types_ == TYPES
    classifier.save(tmp_path / "model")
    loaded = SafeSPNClassifier.load(tmp_path / "model")
    assert loaded.column_types_ == TYPES
    np.testing.assert_array_equal(loaded.joint_log_likelihood(frame), classifier.joint_log_likelihood(frame))


def test_ignored_columns_may_hold_anything_or_be_absent(frame_and_classifier):
    frame, classifier = frame_and_classifier
    expected = classifier.joint_log_likelihood(frame)
    other = frame.assign(constant="x", patient_id=np.nan, note=1)
    np.testing.assert_array_equal(classifier.joint_log_likelihood(other), expected)
    np.testing.assert_array_equal(classifier.joint_log_likelihood(frame.drop(columns=["date", "note"])), expected)


def test_other_values_of_a_column_with_two_are_missing(frame_and_classifier):
    frame, classifier = frame_and_classifier
    with pytest.warns(UnseenCategoryWarning, match=r"column 'two' holds 3\.0"):
        density = classifier.score_samples(frame.assign(two=3))
    np.testing.assert_array_equal(density, classifier.score_samples(frame.assign(two=np.nan)))
    with pytest.raises(ValueError, match="row 0 of column 'two' is infinite"):
        classifier.score_samples(frame.assign(two=np.inf))


def test_arrays_hold_values_and_samples_do_so_too():
    frame, partly = mixed_table()
    X = frame[["number", "two", "constant"]].to_numpy()
    classifier = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(X, partly)
    assert classifier.column_types_ == ["continuous", "categorical", "ignored"]
    drawn, _ = classifier.sample(50)
    assert set(drawn[:, 1]) == {2, 10}
    assert (drawn[:, 2] == 7.5).all()
    with pytest.warns(UnseenCategoryWarning, match=r"column 1 holds 0\.0"):
        classifier.predict([[0.0, 0.0, 0.0]])


def test_declared_types_come_before_decisions():
    frame, _ = mixed_table()
    declared = {"two": "continuous", "count": "count", "constant": "continuous", 7: "categorical", 0: "ignored"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)
        types = TableEncoder.fit(frame, declared).types
    assert types[:3] == ("ignored", "continuous", "count")
    assert types[6:8] == ("continuous", "categorical")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"age": "count"}, "there is no column 'age'"),
        ({11: "count"}, "there is no column 11"),
        ({"two": "integer"}, "column 'two' is declared 'integer'; expected one of"),
        ({"text": "continuous"}, "column 'text' was to be continuous, but holds 'a'"),
        ({"number": "count"}, "column 'number' was to be count, but holds"),
        ({"date": "categorical"}, "column 'date' holds dates or times"),
    ],
)
def test_impossible_declarations_are_refused(declared, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder.fit(mixed_table()[0], {**dict.fromkeys(["patient_id", "note"], "ignored"), **declared})


def test_words_among_numbers_are_refused():
    frame = pd.DataFrame({"x": ["unknown", *map(str, range(30)), "unknown"]})
    with pytest.raises(ValueError, match="column 'x' mixes numbers and text such as 'unknown'"):
        TableEncoder.fit(frame)
    assert TableEncoder.fit(frame, {"x": "categorical"}).types == ("categorical",)


@pytest.mark.parametrize("n_parts", [1, 2, 7, 45])
def test_parts_of_a_table_decide_like_the_whole(n_parts):
    frame = mixed_table()[0].drop(columns="category").sample(frac=1, random_state=0)
    frame["late"] = np.where(np.arange(N_ROWS) < 80, 1.0, np.arange(N_ROWS))
    nothing = [None] * frame.shape[1]
    whole = summarise_columns(frame, nothing)
    parts = [summarise_columns(frame.iloc[rows], nothing) for rows in np.array_split(np.arange(N_ROWS), n_parts)]
    for name, column, of_parts in zip(frame.columns, whole, zip(*parts, strict=True), strict=True):
        assert decide_type(name, merge_summaries(of_parts)) == decide_type(name, column)


def test_rows_without_weight_decide_nothing():
    frame, partly = mixed_table()
    weights = np.ones(N_ROWS)
    weights[-10:] = 0
    X = frame[["number", "two"]].to_numpy().copy()
    X[-10:, 1] = np.arange(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        classifier = SafeSPNClassifier(network="blocks", max_iter=3).fit(X, partly, sample_weight=weights)
    assert classifier.column_types_ == ["continuous", "categorical"]


@pytest.mark.parametrize(
    ("others", "code", "is_found"),
    [
        (np.linspace(20, 30, 50), -999, True),
        (np.linspace(20, 30, 50), 999, True),
        (np.linspace(500, 1500, 50), 999, False),
        (np.linspace(500, 998, 50), 999, False),
        (np.arange(80), -9, True),
        (np.arange(80), -1, False),  # one step below the rest, as in a scale that goes on
        (np.linspace(0, 1, 50), -1, True),
        (np.linspace(-3, 3, 50), -1, False),
        (np.linspace(20, 30, 8), -999, False),  # too few others to tell
    ],
)
def test_codes_of_missing_cells_stand_far_outside(others, code, is_found):
    values = np.concatenate([others, [code, code, np.nan]]).astype(float)
    assert find_sentinels(values) == ([(code, 2)] if is_found else [])
    assert find_sentinels(np.append(others, code).astype(float)) == []  # once is an outlier


def test_several_codes_of_missing_cells():
    values = np.concatenate([np.linspace(20, 30, 50), [-9, -9, -99, -99, -99]])
    assert find_sentinels(values) == [(-99, 3), (-9, 2)]


@pytest.mark.parametrize("as_frame", [True, False])
def test_codes_of_missing_cells_are_told_in_python(as_frame):
    frame = pd.DataFrame({"age": np.linspace(20, 60, 40), "dose": np.tile([1.0, 2.0, 3.0, 4.0], 10)})
    frame.loc[[3, 4, 5], "age"] = -999
    labels = np.where(np.arange(40) < 20, np.arange(40) % 2, -1)
    name = r"column 0 \('age'\)" if as_frame else "column 0"
    with pytest.warns(SentinelWarning, match=f"{name} holds -999 in 3 rows, far outside the rest"):
        SafeSPNClassifier(network="blocks", max_iter=1).fit(frame if as_frame else frame.to_numpy(), labels)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1.0, np.inf] * 10, "row 1 of column 'x' is infinite"),
        ([[1], [2]] * 10, r"column 'x' holds nested values \(list\)"),
    ],
)
@pytest.mark.parametrize("other", [np.arange(20) / 4, ["a", "b"] * 10])
def test_errors_name_the_column(cells, message, other):
    frame = pd.DataFrame({"other": other, "x": cells})
    with pytest.raises(ValueError, match=message):
        SafeSPNClassifier(network="blocks").fit(frame, np.arange(20) % 2)


def test_texts_longer_than_any_date_are_not_parsed(monkeypatch):
    from pandas.tseries import api

    given = []
    monkeypatch.setattr(api, "guess_datetime_format", given.append)
    dates = ["2020-01-02", "x" * (LONGEST_DATE + 1)]
    assert not are_dates(dates)
    assert given == dates[:1]

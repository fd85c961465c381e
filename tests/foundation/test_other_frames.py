"""Tables and labels of other libraries give the model that pandas gives."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from safespn import SafeSPNClassifier  # noqa: E402


def example():
    rng = np.random.default_rng(0)
    kinds = np.arange(90) % 2
    frame = pd.DataFrame(
        {
            "size": rng.normal(3 * kinds),
            "colour": np.where(rng.random(90) < 0.3 + 0.4 * kinds, "red", "blue"),
            "count": pd.array(rng.integers(0, 9, 90), dtype="Int64"),
        }
    )
    frame.loc[3, "size"] = np.nan
    frame.loc[4, "colour"] = None
    frame.loc[5, "count"] = pd.NA
    labels = pd.Series(np.where(kinds == 1, "yes", "no")).where(np.arange(90) < 40)
    return frame, labels


def fit(X, y):
    return SafeSPNClassifier(network="blocks", random_state=0).fit(X, y)


class Streamed:
    """A frame that offers nothing but Arrow's interface."""

    def __init__(self, frame):
        self.table = in_arrow(frame)

    def __len__(self):
        return len(self.table)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def in_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def in_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


@pytest.mark.parametrize("convert", [in_arrow, in_polars, Streamed])
def test_frames_of_other_libraries(convert):
    frame, labels = example()
    expected = fit(frame, labels)
    X = convert(frame)
    clf = fit(X, labels)
    assert clf.column_types_ == ["continuous", "categorical", "continuous"]
    assert clf.feature_names_in_.tolist() == ["size", "colour", "count"]
    np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(frame))
    np.testing.assert_array_equal(clf.predict(frame), expected.predict(frame))


@pytest.mark.parametrize(
    "convert",
    [
        lambda labels: labels.astype("category"),
        lambda labels: labels.astype("string"),
        lambda labels: labels.fillna(""),
        lambda labels: labels.map({"yes": True, "no": False}).astype("boolean"),
        lambda labels: labels.map({"yes": 1, "no": 0}).astype("Int64"),
        lambda labels: labels.map({"yes": 1.0, "no": 0.0}),
        lambda labels: in_arrow(pd.DataFrame({"y": labels})).column("y"),
        lambda labels: in_arrow(pd.DataFrame({"y": labels.map({"yes": 1, "no": 0}).astype("Int64")})).column("y"),
        lambda labels: in_polars(pd.DataFrame({"y": labels}))["y"],
    ],
)
def test_labels_with_gaps_of_every_kind(convert):
    frame, labels = example()
    clf = fit(frame, convert(labels))
    assert (clf.safety_.n_labelled, clf.safety_.n_unlabelled) == (40, 50)
    np.testing.assert_allclose(clf.predict_proba(frame), fit(frame, labels).predict_proba(frame))

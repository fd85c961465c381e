"""Random small tables through fit and predict: a valid model or a clear line, never a traceback."""

from __future__ import annotations

import csv
import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from safespn import SafeSPNClassifier
from safespn.cli.app import run
from tests.cli.conftest import ONE_NETWORK

NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n"), max_size=6)
NUMBERS = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats(-1e3, 1e3).map(lambda number: f"{number:.2f}"),
    st.sampled_from(["0", "1", "1.0", "1e300", "-1e-300", "1e308", "inf", "-0.0"]),
)
CELLS = {
    "number": NUMBERS,
    "few numbers": st.sampled_from(["0", "1", "2"]),
    "category": st.sampled_from(["red", "green", "blue", "Grün"]),
    "text": st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8),
    "date": st.dates().map(str),
    "anything": st.one_of(NUMBERS, NAMES),
    "constant": st.just("7"),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Column names and rows; the last column is the target, as often as not a sensible one."""
    n_rows, n_columns = draw(st.sampled_from([0, 1, 2, 3, *range(4, 15)])), draw(st.integers(0, 4))
    kinds = [draw(st.sampled_from(sorted(CELLS))) for _ in range(n_columns)]
    plain = [f"x{column}" for column in range(n_columns)]
    names = draw(st.one_of(st.just(plain), st.lists(NAMES, min_size=n_columns, max_size=n_columns)))
    sensible = [st.sampled_from(["a", "b", ""]), st.sampled_from(["1", "2", "-1", ""])]
    labels = draw(st.sampled_from([*sensible, *sensible, NUMBERS]))
    rows = [
        [draw(st.one_of(st.just(""), CELLS[kind])) if draw(st.booleans()) else draw(CELLS[kind]) for kind in kinds]
        + [draw(labels)]
        for _ in range(n_rows)
    ]
    return [*names, "y"], rows


def call(*arguments: str) -> tuple[int, str]:
    error = io.StringIO()
    with redirect_stderr(error), redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        status = run(arguments)
    return status, error.getvalue()


def check_refusal(status: int, error: str) -> None:
    assert status == 2
    assert error.splitlines()[-1].startswith("safespn: "), error
    assert "Traceback" not in error


# Without the row of the 1 the rest of the last column is too narrow for a fit of its own, as reports make them.
_CELLS = ["0", "0", "0", "0", "1", "-1e-300"]
NARROW_PART = (["x", "y"], [[cell, "a" if row < 4 else "b"] for row, cell in enumerate(_CELLS)])
# Half a second each: a few in every run, as many as the profile says where that is "many".
EXAMPLES = settings().max_examples if settings().max_examples > 100 else 50


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@example(NARROW_PART, (["y"], []), ",", (), True, False)
@given(
    tables(),
    tables(),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([(), *[ONE_NETWORK] * 3]),
    st.sampled_from([True, *[False] * 4]),
    st.booleans(),
)
def test_any_table(table, other, separator, network, with_report, as_parquet):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model, out = folder / "t.csv", folder / "m", folder / "out.csv"
        for path, (names, rows) in ((data, table), (folder / "new.csv", other)):
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter=separator).writerows([names, *rows])
        if as_parquet and len(set(table[0])) == len(table[0]):
            data = folder / "t.parquet"
            pd.DataFrame(table[1], columns=table[0], dtype=str).to_parquet(data)
        extra = ["--report", str(folder / "r.html")] if with_report else []
        status, error = call("fit", str(data), "-t", "y", "-o", str(model), "-q", *network, *extra)
        if status:
            check_refusal(status, error)
            assert not model.exists()
            return
        event("fitted")
        SafeSPNClassifier.load(model)
        status, error = call("predict", str(model), str(data), "-o", str(out), "-q")
        assert status == 0, error
        result = pd.read_csv(out)
        assert len(result) == len(table[1])
        probabilities = result.filter(like="probability_").to_numpy()
        assert abs(probabilities.sum(axis=1) - 1).max() < 1e-9
        assert not result["log_density"].isna().any()
        status, error = call("predict", str(model), str(folder / "new.csv"), "-o", str(folder / "new.out"), "-q")
        if status:
            check_refusal(status, error)
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    import pandas as pd

# They need the extra [cli]. A skip raised here would end the whole run where this folder is named on the command line.
collect_ignore_glob = [] if find_spec("typer") else ["*"]

# For tests whose subject is the command and not the committee, which takes three times as long to fit.
ONE_NETWORK = ("--network", "blocks")
# The same for fits, which then are not checked on held-out labels either.
ONE_FIT = (*ONE_NETWORK, "--no-check")


def patients(n: int = 120, n_labelled: int = 40, seed: int = 0) -> pd.DataFrame:
    """A table with an identifier, numbers, categories, gaps and a target that is mostly empty."""
    import pandas as pd

    generator = np.random.default_rng(seed)
    ill = generator.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "id": np.arange(1000, 1000 + n),
            "age": generator.normal(40 + 15 * ill, 8).round(1),
            "sex": np.where(generator.random(n) < 0.5, "f", "m"),
            "bmi": generator.normal(25 + 3 * ill, 4).round(2),
            "region": generator.choice(["north", "south", "east"], n),
            "smoker": (generator.random(n) < 0.2 + 0.5 * ill).astype(int),
            "outcome": np.where(ill == 1, "ill", "well"),
        }
    )
    frame.loc[generator.random(n) < 0.1, "bmi"] = np.nan
    frame.loc[generator.random(n) < 0.05, "sex"] = None
    frame.loc[n_labelled:, "outcome"] = None
    return frame


@pytest.fixture
def command(capfd):
    """Run a command in this process; returns its status, standard output and standard error."""
    from safespn.cli.app import run

    def call(*arguments: object) -> tuple[int, str, str]:
        status = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def refused(command, tmp_path):
    """Run a command that must fail with one line that holds the given words, and leave no new file."""

    def call(*arguments: object, words: tuple[str, ...]) -> str:
        before = sorted(tmp_path.rglob("*"))
        status, out, err = command(*arguments)
        assert status == 2, (status, err)
        assert out == ""
        lines = err.strip().splitlines()
        assert len(lines) == 1, err
        assert lines[0].startswith("safespn: ")
        for word in words:
            assert word in lines[0], (word, lines[0])
        assert sorted(tmp_path.rglob("*")) == before
        return lines[0]

    return call


@pytest.fixture
def few_labels_file(tmp_path):
    """A table whose report is quick: two labels of a class can be held out twice only."""
    path = tmp_path / "few.csv"
    patients(60, 5).to_csv(path, index=False)
    return path


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "patients.csv"
    patients().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    from safespn.cli.app import run

    folder = tmp_path_factory.mktemp("model")
    patients().to_csv(folder / "patients.csv", index=False)
    files = [str(folder / "patients.csv"), "-o", str(folder / "model.safespn")]
    assert run(["fit", *files, "-t", "outcome", *ONE_FIT, "-q"]) == 0
    return folder / "model.safespn"

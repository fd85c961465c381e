from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="needs the extra [plot]")

import matplotlib as mpl
from matplotlib import pyplot as plt

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")

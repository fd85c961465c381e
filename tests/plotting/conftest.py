from __future__ import annotations

from importlib.util import find_spec

import pytest

# They need the extra [plot]. A skip raised here would end the whole run where this folder is named on the command line.
collect_ignore_glob = [] if find_spec("matplotlib") else ["*"]
if find_spec("matplotlib"):
    import matplotlib as mpl

    mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    from matplotlib import pyplot as plt

    plt.close("all")

from __future__ import annotations

import subprocess
import sys

import pytest

import safespn

NETWORKS_ALONE = """
import sys
import numpy as np
import safespn
table = np.random.default_rng(0).normal(size=(60, 3))
safespn.learn_spn(table).fit_em(table, max_iter=3, tol=-1).log_likelihood(table)
print(*(name for name in ("sklearn", "scipy.stats", "scipy.optimize", "joblib", "numba") if name in sys.modules))
"""


def test_learning_a_network_imports_nothing_slow():
    done = subprocess.run([sys.executable, "-c", NETWORKS_ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


SUBMODULES = """
import safespn
found = safespn.datasets.load, safespn.model_selection.SemiSupervisedSplit, safespn.baselines.TSVM
print(*(each.__name__ for each in found))
"""


def test_public_modules_need_no_import_of_their_own():
    done = subprocess.run([sys.executable, "-c", SUBMODULES], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["load", "SemiSupervisedSplit", "TSVM"]


def test_every_public_name_is_there():
    for name in safespn.__all__:
        assert getattr(safespn, name) is not None
    assert "SafeSPNClassifier" in dir(safespn)
    with pytest.raises(AttributeError, match="no attribute 'Classifier'"):
        _ = safespn.Classifier

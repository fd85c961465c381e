"""Fixed splits and what the R package RSSL 0.9.7 computed on them, next to the folder that SAFESPN_DATA names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest


def reference_folder():
    data = os.environ.get("SAFESPN_DATA")
    folder = Path(data or ".").resolve().parent / "reference" / "rssl"
    if data is None or not folder.is_dir():
        pytest.skip("no RSSL reference figures: SAFESPN_DATA must name a folder with 'reference/rssl' beside it")
    return folder


def expected(name, method):
    return json.loads((reference_folder() / "expected.json").read_text())[name][method]


def split(name):
    """Training rows, their classes 1..K with -1 for unlabelled rows, test rows and their classes."""
    labelled, unlabelled, test = (
        np.loadtxt(reference_folder() / f"{name}_{part}.csv", delimiter=",") for part in ("l", "u", "t")
    )
    X = np.concatenate([labelled, unlabelled])[:, :-1]
    y = np.concatenate([labelled[:, -1].astype(int), np.full(len(unlabelled), -1)])
    return X, y, test[:, :-1], test[:, -1].astype(int)

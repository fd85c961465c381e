"""The data sets of the paper, from a folder of CSV files, scikit-learn's own copies, or OpenML."""

from __future__ import annotations

import csv
import os
import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from safespn.exceptions import DatasetNotFoundError
from safespn.typing import AnyArray, FloatArray

ENVIRONMENT_VARIABLE = "SAFESPN_DATA"


@dataclass(frozen=True)
class _Source:
    """What is known of a data set: its size, and where it is available besides a folder.

    Parameters
    ----------
    n_rows, n_features : int
        Without an identifier column; a copy from OpenML of another size is refused.
    scikit_learn : str, optional
        Name of scikit-learn's loader.
    openml_id : int, optional
    openml_target : str, optional
        Column of the class, where OpenML's default is another one.
    has_identifier : bool
        Whether the first column of the CSV file numbers the rows' patients.
    """

    n_rows: int
    n_features: int
    scikit_learn: str | None = None
    openml_id: int | None = None
    openml_target: str | None = None
    has_identifier: bool = False


_SOURCES = {
    "bupa": _Source(345, 6, openml_id=8, openml_target="selector"),
    "fertility": _Source(100, 9, openml_id=1473),
    "haberman": _Source(306, 3, openml_id=43),
    "ilpd": _Source(583, 10, openml_id=1480),
    "ionosphere": _Source(351, 34, openml_id=59),
    "iris": _Source(150, 4, scikit_learn="load_iris"),
    "parkinsons": _Source(195, 22, openml_id=1488),
    "pid": _Source(768, 8, openml_id=37),
    "wdbc": _Source(569, 30, scikit_learn="load_breast_cancer", has_identifier=True),
    "wine": _Source(178, 13, scikit_learn="load_wine"),
    "jain": _Source(373, 2),
}

NAMES = tuple(name for name in _SOURCES if name != "jain")
"""The ten data sets of the paper's tables."""


def load(name: str, data_dir: str | PathLike[str] | None = None, *, keep_identifier: bool = False) -> Bunch:
    """Load a data set of the paper.

    Looked for, in this order: ``<name>.csv`` in ``data_dir``, or, if that is None, in the folder that the environment
    variable ``SAFESPN_DATA`` names; scikit-learn's own copies (iris, wine, wdbc); OpenML, through scikit-learn and
    cached by it. In a CSV file with a header the column ``class`` holds the labels, the others are features.

    Parameters
    ----------
    name : str
        bupa, fertility, haberman, ilpd, ionosphere, iris, parkinsons, pid, wdbc, wine or jain.
    data_dir : path, optional
    keep_identifier : bool
        Keep the patient number, the first column of the CSV file of wdbc, as a feature. The paper did.

    Returns
    -------
    Bunch
        ``data`` (n_rows, n_features) float64, ``target`` (n_rows,) of labels as they stand in the source,
        ``feature_names``, ``name``, ``source``.

    Raises
    ------
    ValueError
        No such name, or a file that does not hold a table with a column ``class``.
    DatasetNotFoundError
        It was found nowhere; the message says how to get it.
    """
    if name not in _SOURCES:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(_SOURCES))}")
    source = _SOURCES[name]
    folder = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    if folder is not None and (Path(folder) / f"{name}.csv").is_file():
        return _from_file(name, Path(folder) / f"{name}.csv", source.has_identifier and not keep_identifier)
    if source.scikit_learn is not None:
        return _from_scikit_learn(name, source.scikit_learn)
    tried = f"{name}.csv is not in {folder}" if folder is not None else f"{ENVIRONMENT_VARIABLE} names no folder"
    if source.openml_id is None:
        raise DatasetNotFoundError(
            f"data set {name!r}: {tried}, and no source offers it; put {name}.csv (columns of features and one named "
            f"class) into a folder and name it by data_dir= or {ENVIRONMENT_VARIABLE}"
        )
    return _from_openml(name, source, tried)


def _from_file(name: str, path: Path, drop_first: bool) -> Bunch:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows or "class" not in rows[0]:
        raise ValueError(f"{path}: expected a header with a column named class")
    header, cells = rows[0], rows[1:]
    label = header.index("class")
    features = [column for column in range(len(header)) if column != label][1 if drop_first else 0 :]
    for number, row in enumerate(cells, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: expected {len(header)} cells, found {len(row)}")
    try:
        data = np.array([[float(row[column]) for column in features] for row in cells])
    except ValueError as error:
        raise ValueError(f"{path}: a feature is not a number ({error})") from None
    return _bunch(name, data, _plain([row[label] for row in cells]), [header[column] for column in features], str(path))


def _from_scikit_learn(name: str, loader: str) -> Bunch:
    from sklearn import datasets

    copy = getattr(datasets, loader)()
    return _bunch(name, copy.data, copy.target, list(copy.feature_names), f"sklearn.datasets.{loader}")


def _from_openml(name: str, source: _Source, tried: str) -> Bunch:
    from sklearn.datasets import fetch_openml

    advice = f"put {name}.csv into a folder and name it by data_dir= or {ENVIRONMENT_VARIABLE}"
    try:
        target = source.openml_target or "default-target"
        with warnings.catch_warnings():
            # It warns before every new attempt; the error below says what came of them.
            warnings.filterwarnings("ignore", "A network error occurred while downloading")
            copy = fetch_openml(data_id=source.openml_id, target_column=target, as_frame=False, parser="liac-arff")
    except Exception as error:  # whatever the network or the server comes up with
        problem = f"OpenML (data set {source.openml_id}) did not answer: {type(error).__name__}: {error}"
        raise DatasetNotFoundError(f"data set {name!r}: {tried}; {problem}; {advice}") from error
    data = np.asarray(copy.data)
    if data.shape != (source.n_rows, source.n_features):
        problem = f"OpenML's data set {source.openml_id} has {data.shape} cells"
        wanted = f"expected {(source.n_rows, source.n_features)}"
        raise DatasetNotFoundError(f"data set {name!r}: {tried}; {problem}, {wanted}; {advice}")
    return _bunch(name, data, copy.target, list(copy.feature_names), f"OpenML {source.openml_id}")


def _bunch(name: str, data: Any, target: Any, feature_names: list[str], source: str) -> Bunch:
    table: FloatArray = np.ascontiguousarray(data, dtype=np.float64)
    return Bunch(data=table, target=np.asarray(target), feature_names=feature_names, name=name, source=source)


def _plain(labels: list[str]) -> AnyArray:
    """Labels as integers where all of them are, else as strings."""
    try:
        return np.array([int(label) for label in labels])
    except ValueError:
        return np.array(labels)

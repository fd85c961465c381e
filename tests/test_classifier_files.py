"""Crafted files of classifiers are refused with a ModelFileError, before they cost memory."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest

from safespn import ModelFileError, SafeSPNClassifier
from safespn.network.files import read_model, write_model


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The arrays and the header of a classifier of a real column and a column of categories."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    frame = pandas.DataFrame({"x": rng.normal(y), "c": pandas.Categorical(np.where(rng.random(60) < 0.5, "a", "b"))})
    path = tmp_path_factory.mktemp("model") / "model.safespn"
    SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(
        frame, np.where(np.arange(60) < 30, y, -1)
    ).save(path)
    tensors, header = read_model(path, "classifier")
    return tensors, {name: value for name, value in header.items() if name not in ("sha256", "kind", "version")}


def set_to(*path_and_value):
    *path, name, value = path_and_value

    def change(tensors, header):
        for key in path:
            header = header[key]
        header[name] = value

    return change


def tensor(name, function):
    def change(tensors, header):
        tensors[name] = function(tensors[name])

    return change


def entry(name, value):
    """Set an entry, and the other of its row so that they add up to one where they can."""

    def change(tensors, header):
        tensors[name] = tensors[name].copy()
        tensors[name][0] = value, 1 - value

    return change


CRAFTED = {
    "a type of 2 GB": set_to("classes_dtype", "<U500000000"),
    "an unknown type": set_to("classes_dtype", "nonsense"),
    "a type of records": set_to("classes_dtype", "V1000"),
    "a class twice": set_to("classes", [0, 0]),
    "nested classes": set_to("classes", [[0, 1], [2, 3]]),
    "other classes": set_to("classes", [0, 1, 2]),
    "infinite features": set_to("n_features", float("inf")),
    "many features": set_to("n_features", 10**12),
    "an infinite sample": set_to("n_sampled", float("inf")),
    "duplicate categories": set_to("categories", [None, ["a", "a"]]),
    "missing categories": set_to("categories", [None, ["a"]]),
    "no categories": set_to("categories", [None]),
    "categories that are none": set_to("categories", [None, "ab"]),
    "categories of a real column": set_to("categories", [["a", "b"], ["a", "b"]]),
    "nested categories": set_to("categories", [None, [["a"], ["b"]]]),
    "one name": set_to("feature_names", ["x"]),
    "names that are none": set_to("feature_names", [1, 2]),
    "a report in words": set_to("report", "certified"),
    "a worst case in words": set_to("report", "worst_case", "good"),
    "promises of numbers": set_to("report", "promises", [1]),
    "a certificate in words": set_to("report", "certified", "yes"),
    "a history of numbers": set_to("history", [1, 2]),
    "unknown settings": set_to("parameters", {"surprise": 1}),
    "settings out of range": set_to("parameters", "max_iter", -3),
    "settings that are none": set_to("parameters", 5),
    "gains of another number of classes": set_to("decision_gains", [[1.0]]),
    "gains in words": set_to("decision_gains", "all"),
    "costs of another number of classes": set_to("parameters", "decision", [[1.0]]),
    "a target in a list": set_to("notes", {"target": ["y"]}),
    "votes in words": set_to("committee", "members", 0, "votes", "x"),
    "votes in a table": set_to("committee", "members", 0, "votes", [[1]]),
    "negative votes": set_to("committee", "members", 0, "votes", -5),
    "a temperature in words": set_to("committee", "members", 0, "temperature", "1"),
    "a size that is no text": set_to("committee", "members", 0, "size", 3),
    "part of a feature": set_to("n_features", 3.7),
    "whether there are features": set_to("n_features", True),
    "part of a sampled row": set_to("n_sampled", 0.5),
    "negative rows": set_to("report", "n_labelled", -1),
    "a truth value as a number": set_to("report", "contrast", True),
    "a share that is none": set_to("report", "disagreement", float("nan")),
    "a share above one": set_to("report", "disagreement", 1.5),
    "names twice": set_to("feature_names", ["x", "x"]),
    "soft labels that are no numbers": entry("soft_labels", float("nan")),
    "infinite soft labels": entry("soft_labels", float("inf")),
    "negative soft labels": entry("soft_labels", -1.0),
    "soft labels that are no shares": tensor("soft_labels", lambda values: 0.9 * values),
    "whole soft labels": tensor("soft_labels", lambda values: values.round().astype(np.int64)),
    "weights that are no pairs": set_to("class_weight", [1, 2]),
    "wide soft labels": tensor("soft_labels", lambda values: np.ones((len(values), 5))),
    "flat soft labels": tensor("soft_labels", lambda values: values[:, 0].copy()),
    "a distant column": tensor("supervised.0.columns", lambda values: np.where(values == 1, 2_000_000_000, values)),
}


@pytest.mark.parametrize("crafted", CRAFTED)
def test_crafted_files_are_refused(content, tmp_path, crafted):
    tensors, header = copy.deepcopy(content)
    CRAFTED[crafted](tensors, header)
    write_model(tmp_path / "crafted.safespn", "classifier", tensors, header)
    with pytest.raises(ModelFileError, match=r"crafted\.safespn"):
        SafeSPNClassifier.load(tmp_path / "crafted.safespn")


@pytest.mark.parametrize(
    ("number", "value"),
    [("worst_case", np.nan), ("worst_case", -np.inf), ("contrast", np.nan), ("density_gain", np.nan)],
)
def test_gains_that_are_no_numbers_are_not_certified(content, tmp_path, number, value):
    tensors, header = copy.deepcopy(content)
    header["report"] |= {"certified": True, number: value}
    write_model(tmp_path / "crafted.safespn", "classifier", tensors, header)
    with pytest.raises(ModelFileError, match=f"certified, but has {value} for {number}"):
        SafeSPNClassifier.load(tmp_path / "crafted.safespn")
    header["report"]["certified"] = False
    write_model(tmp_path / "crafted.safespn", "classifier", tensors, header)
    assert not SafeSPNClassifier.load(tmp_path / "crafted.safespn").safety_.certified


@pytest.mark.parametrize("votes", [True, False])
def test_votes_need_classes_that_are_sums_over_trees(tmp_path, votes):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(y[:, None], size=(40, 2))
    for network in ("blocks", "forest"):
        path = tmp_path / f"{network}.safespn"
        SafeSPNClassifier(network=network, random_state=0, max_iter=2).fit(X, y).save(path)
        tensors, header = read_model(path, "classifier")
        for member in header["committee"]["members"]:
            member["votes"] = votes
        header = {name: value for name, value in header.items() if name not in ("sha256", "kind", "version")}
        write_model(path, "classifier", tensors, header)
        if votes and network == "blocks":
            with pytest.raises(ModelFileError, match="its classes are not sums over trees"):
                SafeSPNClassifier.load(path)
        else:
            assert SafeSPNClassifier.load(path).predict(X).shape == y.shape


def test_any_number_of_threads_is_a_setting(content, tmp_path):
    tensors, header = copy.deepcopy(content)
    header["parameters"]["n_jobs"] = 10**9
    write_model(tmp_path / "many.safespn", "classifier", tensors, header)
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=20_000), "c": rng.choice(["a", "b"], 20_000)})
    loaded = SafeSPNClassifier.load(tmp_path / "many.safespn")
    many = loaded.predict_proba(frame)
    np.testing.assert_array_equal(many, loaded.set_params(n_jobs=1).predict_proba(frame))


LOAD = """
import resource
import sys
from safespn import ModelFileError, SafeSPNClassifier
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        SafeSPNClassifier.load(path)
    except ModelFileError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used)
"""


@pytest.mark.slow
def test_small_files_do_not_exhaust_memory(content, tmp_path):
    pytest.importorskip("resource")
    paths = []
    for crafted in ("a type of 2 GB", "a distant column", "many features"):
        tensors, header = copy.deepcopy(content)
        CRAFTED[crafted](tensors, header)
        paths.append(str(tmp_path / f"{len(paths)}.safespn"))
        write_model(paths[-1], "classifier", tensors, header)
    done = subprocess.run([sys.executable, "-c", LOAD, *paths], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000, "kilobytes beyond those of the imports"

"""Fits that are interrupted go on where they were, with the same result."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from safespn import CheckpointError, CheckpointWarning, SafeSPNClassifier, use_engine
from safespn.network.files import read_model, write_model
from safespn.safety import checkpoint
from safespn.safety.certified_em import CertifiedEM
from tests.rows.tables import blobs


class StoppedError(Exception):
    pass


@pytest.fixture
def steps(monkeypatch):
    """Count the steps that fits make themselves, and interrupt them when there are none left."""
    counter = {"left": 10**9, "made": 0}
    original = CertifiedEM.step

    def step(self, *arguments):
        if self.journal is None or not self.journal.knows(len(self.history) + 1):
            if counter["left"] == 0:
                raise StoppedError
            counter["left"] -= 1
            counter["made"] += 1
        return original(self, *arguments)

    monkeypatch.setattr(CertifiedEM, "step", step)
    return counter


@pytest.mark.parametrize("n_steps", [1, 7, 12])
@pytest.mark.parametrize("options", [{}, {"batch_size": 60, "max_iter": 40}], ids=str)
def test_an_interrupted_fit_goes_on_to_the_same_result(tmp_path, steps, monkeypatch, n_steps, options):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(250)
    whole = SafeSPNClassifier(network="blocks", random_state=0, **options).fit(X, partly)
    folder = tmp_path / "steps"
    classifier = SafeSPNClassifier(network="blocks", random_state=0, checkpoint=folder, **options)
    steps["left"] = n_steps
    with pytest.raises(StoppedError):
        classifier.fit(X, partly)
    assert not hasattr(classifier, "spn_")
    assert list(folder.glob("step-*"))
    steps.update(left=10**9, made=0)
    classifier.fit(X, partly)
    assert steps["made"] == whole.n_iter_ - n_steps
    np.testing.assert_array_equal(classifier.joint_log_likelihood(X), whole.joint_log_likelihood(X))
    np.testing.assert_array_equal(classifier.soft_labels_, whole.soft_labels_)
    assert classifier.history_ == whole.history_
    assert not folder.exists()


def test_another_fits_checkpoint_is_refused(tmp_path, steps):
    X, _, partly = blobs(150)
    steps["left"] = 3
    with pytest.raises(StoppedError):
        SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path).fit(X, partly)
    for other, options in ((X + 1, {}), (X, {"tol": 1e-3})):
        with pytest.raises(
            ValueError, match=r"belongs to a fit of other rows or settings; delete it or choose another"
        ):
            SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path, **options).fit(other, partly)


def test_a_damaged_checkpoint_is_refused(tmp_path, steps):
    X, _, partly = blobs(150)
    steps["left"] = 3
    with pytest.raises(StoppedError):
        SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path).fit(X, partly)
    steps["left"] = 10**9
    (file,) = tmp_path.glob("step-*/steps.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"steps\.safetensors cannot be read .*; delete it"):
        SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path).fit(X, partly)


def interrupted(folder, steps, X, partly, n_steps=3, **options):
    """Leave the steps of an interrupted fit in a folder."""
    steps["left"] = n_steps
    with pytest.raises(StoppedError):
        SafeSPNClassifier(**{"network": "blocks", "random_state": 0, "checkpoint": folder, **options}).fit(X, partly)
    steps["left"] = 10**9
    return sorted([*folder.glob("step-00000[0-9]"), *folder.glob("member-*/step-00000[0-9]")])[0]


def everything_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


NETWORKS = {"one network": "blocks", "committee": ["blocks", "components"]}
"""What is fitted: steps are in the folder itself, or in one for each member."""


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_only_what_a_fit_made_is_removed(tmp_path, steps, monkeypatch, network):
    """Other folders and files, also those with names and places like our own, survive fits and interrupted fits."""
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)
    others = ("my-thesis-data/chapter-1.txt", "a-b", "step-one/x.npy", "unfinished-business/1/1.npy", "0.npy", "lock")
    for name in others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    (tmp_path / "step-000001-copy").symlink_to(tmp_path / "my-thesis-data")
    before = everything_in(tmp_path)
    told = r"holds other things \(0\.npy, a-b, lock and 4 more\), which are left alone"
    with pytest.warns(CheckpointWarning, match=told):
        newest = interrupted(tmp_path, steps, X, partly, n_steps=9, network=network)
    (newest / "note.txt").write_text("mine")
    with pytest.warns(CheckpointWarning, match=told):
        SafeSPNClassifier(network=network, random_state=0, checkpoint=tmp_path).fit(X, partly)
    place = newest.relative_to(tmp_path)
    above = {str(folder): None for folder in place.parents if folder.name}
    assert everything_in(tmp_path) == {**before, **above, str(place): None, f"{place}/note.txt": b"mine"}


def make_link_to_folder(folder, name):
    elsewhere = folder.parent / "elsewhere"
    (elsewhere / "1").mkdir(parents=True)
    (elsewhere / "1" / "0.npy").write_text("mine")
    (elsewhere / "steps.safetensors").write_text("mine")
    (folder / name).symlink_to(elsewhere)


def make_file(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")


def make_folder(folder, name):
    (folder / name).mkdir()


FOREIGN = {
    "unfinished link": (make_link_to_folder, "unfinished-000001"),
    "link of a step": (make_link_to_folder, "step-000002"),
    "soft labels": (make_file, "unfinished-000001/0/0.npy"),
    "a step of another tool": (make_file, "step-001000/model.pt"),
    "soft labels of another tool": (make_file, "step-001000/0/0.npy"),
    "steps of another tool": (make_file, "step-000001/steps.safetensors"),
    "a mark of another tool": (make_file, "step-000001/.safespn-made"),
    "empty unfinished": (make_folder, "unfinished-000002"),
    "empty step": (make_folder, "step-000001"),
    "empty late step": (make_folder, "step-001000"),
    "file": (make_file, "step-000001"),
    "unfinished file": (make_file, "unfinished-000001"),
    "link of a member": (make_link_to_folder, "member-1"),
    "empty member": (make_folder, "member-1"),
    "member of another tool": (make_file, "member-1/step-000001/0/0.npy"),
    "member that is a file": (make_file, "member-1"),
}
"""Things of somebody else, with names that a fit gives."""


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_things_with_our_names_that_no_fit_made_are_left_alone(tmp_path, steps, monkeypatch, foreign, network):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)
    folder = tmp_path / "steps"
    folder.mkdir()
    make, name = FOREIGN[foreign]
    make(folder, name)
    before = everything_in(tmp_path)
    told = rf"holds other things \({name.split('/')[0]}\), which are left alone"
    steps["left"] = 9
    with pytest.warns(CheckpointWarning, match=told) as caught, pytest.raises(StoppedError):
        SafeSPNClassifier(network=network, random_state=0, checkpoint=folder).fit(X, partly)
    assert len([each for each in caught if each.category is CheckpointWarning]) == 1
    assert before.items() <= everything_in(tmp_path).items()
    if network != "blocks":
        assert list(folder.glob("member-1-2/step-*" if name.startswith("member-1") else "member-1/step-*"))
    steps.update(left=10**9, made=0)
    with pytest.warns(CheckpointWarning, match=told):
        resumed = SafeSPNClassifier(network=network, random_state=0, checkpoint=folder).fit(X, partly)
    n_resumed = steps["made"]
    assert everything_in(tmp_path) == before
    steps["made"] = 0
    whole = SafeSPNClassifier(network=network, random_state=0).fit(X, partly)
    assert n_resumed < steps["made"]
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    "kind", ["link", "link to nowhere", "link to a lock", "folder", "pipe", "text", "number", "hard"]
)
def test_something_else_with_the_name_of_the_lock_is_refused(tmp_path, kind):
    X, _, partly = blobs(100)
    folder, mine = tmp_path / "steps", tmp_path / "mine.txt"
    folder.mkdir()
    lock = folder / ".safespn-lock"
    if kind.startswith("link"):
        if kind != "link to nowhere":
            mine.write_text("safespn lock 0" if kind == "link to a lock" else "mine")
        lock.symlink_to(mine)
    elif kind == "folder":
        lock.mkdir()
    elif kind == "pipe":
        os.mkfifo(lock)
    elif kind == "hard":
        mine.touch()
        lock.hardlink_to(mine)
    else:
        lock.write_text("mine" if kind == "text" else "12")
    before = everything_in(tmp_path)
    with pytest.raises(CheckpointError, match=r"\.safespn-lock (is|was) .* left as it is\); choose another one"):
        SafeSPNClassifier(network="blocks", checkpoint=folder).fit(X, partly)
    assert everything_in(tmp_path) == before
    assert lock.is_symlink() == kind.startswith("link")


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_what_is_left_of_a_step_that_was_being_written_is_removed(tmp_path, steps, monkeypatch, network):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)

    def interrupt(*arguments, **options):
        raise StoppedError

    classifier = SafeSPNClassifier(network=network, random_state=0, checkpoint=tmp_path / "a" / "steps")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", interrupt)
        with pytest.raises(StoppedError):
            classifier.fit(X, partly)
    assert not list(tmp_path.iterdir())
    # A process that is killed removes nothing.
    newest = interrupted(tmp_path / "a" / "steps", steps, X, partly, network=network, n_steps=9)
    shutil.copytree(newest, newest.with_name("unfinished-000099"))
    shutil.copytree(newest, newest.with_name("step-000099"))
    (newest.with_name("step-000099") / "steps.safetensors").unlink()
    classifier.fit(X, partly)
    assert not list(tmp_path.iterdir())


def test_a_path_with_dots_makes_no_other_folders(tmp_path, monkeypatch):
    X, _, partly = blobs(100)
    monkeypatch.chdir(tmp_path)
    SafeSPNClassifier(network="blocks", checkpoint="rel/../rel2").fit(X, partly)
    assert not list(tmp_path.iterdir())


PATHS = {
    "long name": lambda folder: folder / "a" / ("b" * 300) / "c",
    "long path": lambda folder: folder.joinpath(*["b" * 200] * 30),
    "NUL": lambda folder: f"{folder}/a\0b",
    "link to nowhere": lambda folder: folder / "nowhere",
    "below a link to nowhere": lambda folder: folder / "nowhere" / "steps",
    "links in a circle": lambda folder: folder / "circle" / "steps",
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_name_no_folder_are_refused(tmp_path, path):
    X, _, partly = blobs(100)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(CheckpointError, match=r"the folder cannot be written \(.+\); choose another one"):
        SafeSPNClassifier(network="blocks", checkpoint=PATHS[path](tmp_path)).fit(X, partly)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["circle", "nowhere"]


def test_a_folder_is_free_again_after_a_warning_that_is_an_error(tmp_path):
    X, _, partly = blobs(100)
    (tmp_path / "mine").mkdir()
    classifier = SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path)
    with pytest.raises(CheckpointWarning):  # the tests' own setting makes errors of warnings
        classifier.fit(X, partly)
    assert everything_in(tmp_path) == {"mine": None}
    with pytest.warns(CheckpointWarning, match="other things"):
        classifier.fit(X, partly)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_folders_are_removed_by_the_fit_that_made_them_and_by_no_other(
    tmp_path, steps, monkeypatch, network, is_interrupted
):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)
    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "mine", tmp_path / "a" / "b" / "steps"):
        if is_interrupted:
            interrupted(folder, steps, X, partly, n_steps=9, network=network)
        SafeSPNClassifier(network=network, random_state=0, checkpoint=folder).fit(X, partly)
    assert everything_in(tmp_path) == {"mine": None}


def test_a_folder_that_another_fit_uses_is_left_alone(tmp_path, monkeypatch):
    X, _, partly = blobs(100)
    original = CertifiedEM.step
    found = []

    def step(self, *arguments):
        if not found:
            found.append(None)
            before = everything_in(tmp_path)
            with pytest.raises(CheckpointError, match="another fit that still runs uses this folder; choose another"):
                SafeSPNClassifier(network="blocks", random_state=1, checkpoint=tmp_path).fit(X, partly)
            assert everything_in(tmp_path) == before
        return original(self, *arguments)

    monkeypatch.setattr(CertifiedEM, "step", step)
    SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path).fit(X, partly)
    assert found
    SafeSPNClassifier(network="blocks", random_state=0, checkpoint=tmp_path).fit(X, partly)


@pytest.mark.parametrize("kind", ["file", "below a file"])
def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path, kind):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" if kind == "file" else tmp_path / "file" / "steps"
    X, _, partly = blobs(100)
    with pytest.raises(CheckpointError, match=r"the folder cannot be written .*; choose another one"):
        SafeSPNClassifier(network="blocks", checkpoint=folder).fit(X, partly)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("fails", ["save_file", "np.save"])
def test_on_a_full_disk_the_fit_goes_on_with_one_warning(tmp_path, monkeypatch, network, fails):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)
    whole = SafeSPNClassifier(network=network, random_state=0).fit(X, partly)
    n_calls = []

    def full(*arguments, **options):
        n_calls.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    target = "safespn.safety.checkpoint.save_file" if fails == "save_file" else "numpy.save"
    monkeypatch.setattr(target, full)
    with pytest.warns(CheckpointWarning, match="step 1 cannot be written .*No space left on device") as caught:
        fitted = SafeSPNClassifier(network=network, random_state=0, checkpoint=tmp_path / "steps").fit(X, partly)
    assert len([each for each in caught if each.category is CheckpointWarning]) == len(n_calls) == 1
    np.testing.assert_array_equal(fitted.predict_proba(X), whole.predict_proba(X))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_fit_that_fails_before_its_first_step_leaves_nothing_behind(tmp_path, steps, network):
    steps["left"] = 0
    X, _, partly = blobs(100)
    with pytest.raises(StoppedError):
        SafeSPNClassifier(network=network, checkpoint=tmp_path / "a" / "steps").fit(X, partly)
    assert not list(tmp_path.iterdir())


def permuted(X, partly):
    """The unlabelled rows in another order: the same supervised model."""
    free = np.nonzero(partly == -1)[0]
    order = np.arange(len(X))
    order[free] = free[::-1]
    return {"X": X[order], "y": partly}


OTHER_FITS = {
    "permuted rows": permuted,
    "tiny rows": lambda X, y: {"X": X * 1e-9, "y": y},
    "one cell": lambda X, y: {
        "X": np.where(np.arange(X.size).reshape(X.shape) == X.size - 1, X * (1 + 1e-12), X),
        "y": y,
    },
    "weights": lambda X, y: {"X": X, "y": y, "sample_weight": np.where(np.arange(len(X)) == len(X) - 1, 1 + 1e-9, 1.0)},
    "prior": lambda X, y: {"X": X, "y": y, "variance_floor": 1.1e-4},
    "pessimism": lambda X, y: {"X": X, "y": y, "pessimism": 0.9},
}


@pytest.mark.parametrize("other", OTHER_FITS)
def test_steps_of_other_rows_weights_or_settings_are_refused(tmp_path, steps, other):
    X, _, partly = blobs(150)
    interrupted(tmp_path, steps, X, partly)
    before = everything_in(tmp_path)
    arguments = OTHER_FITS[other](X, partly)
    data = {name: arguments.pop(name) for name in ("X", "y", "sample_weight") if name in arguments}
    with pytest.raises(CheckpointError, match="belongs to a fit of other rows or settings"):
        SafeSPNClassifier(**{"network": "blocks", "random_state": 0, "checkpoint": tmp_path, **arguments}).fit(**data)
    assert everything_in(tmp_path) == before


def test_another_seed_of_mini_batches_is_another_fit(tmp_path, steps):
    X, _, partly = blobs(150)
    interrupted(tmp_path, steps, X, partly, batch_size=50)
    with pytest.raises(CheckpointError, match="belongs to a fit of other rows or settings"):
        SafeSPNClassifier(network="blocks", random_state=1, checkpoint=tmp_path, batch_size=50).fit(X, partly)


def edited(change):
    """Change the arrays and the record of the steps."""

    def damage(newest):
        file = newest / "steps.safetensors"
        tensors, record = dict(load_file(file)), json.loads(checkpoint._metadata(file)["record"])
        change(tensors, record)
        save_file(tensors, file, metadata={"record": json.dumps(record)})

    return damage


def entry(name, function):
    def change(tensors, record):
        tensors[name] = function(tensors[name].copy())

    return edited(change)


def filled(value, *where):
    def fill(values):
        values[where or ...] = value
        return values

    return fill


def labels(function):
    def damage(newest):
        for file in newest.glob("3/*.npy"):
            np.save(file, function(np.load(file)))

    return damage


def broken_header(newest):
    """An opening bracket in the header, which is parsed as Python."""
    for file in newest.glob("3/*.npy"):
        content = bytearray(file.read_bytes())
        content[content.index(b"}")] = ord("(")
        file.write_bytes(content)


def archive(newest):
    for file in newest.glob("3/*.npy"):
        values = np.load(file)
        with file.open("wb") as opened:
            np.savez(opened, values)


def negative_first_variances(tensors, record):
    assert 1 not in record["numbers"]
    record["entries"][0]["worst_case"] = 1e9  # its soft labels are not here, but the fit would go on from it
    tensors["0.leaves.0"] = -np.abs(tensors["0.leaves.0"])


def unknown_type(newest):
    """A tensor of a type that numpy does not have."""
    header = b'{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    (newest / "steps.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"00")


DAMAGES = {
    "short weights": entry("2.log_weights", lambda values: values[:1]),
    "long weights": entry("2.log_weights", lambda values: np.append(values, 0.0)),
    "weights of whole numbers": entry("2.log_weights", lambda values: values.astype(np.int64)),
    "weights that are NaN": entry("2.log_weights", filled(np.nan)),
    "weights above one": entry("2.log_weights", filled(3.0)),
    "parameters that are NaN": entry("2.leaves.0", filled(np.nan)),
    "one parameter that is NaN": entry("1.leaves.0", filled(np.nan, 0, 0)),
    "infinite parameters": entry("2.leaves.0", filled(np.inf)),
    "a negative variance": entry("2.leaves.0", filled(-1.0, 0, -1)),
    "negative variances of a step without soft labels": edited(negative_first_variances),
    "infinite weights": entry("2.log_weights", filled(1e9)),
    "fewer leaves": entry("2.leaves.0", lambda values: values[:1]),
    "no parameters": edited(lambda tensors, record: tensors.pop("2.leaves.0")),
    "a worst case that is NaN": edited(lambda tensors, record: record["entries"][2].update(worst_case=float("nan"))),
    "a worst case in words": edited(lambda tensors, record: record["entries"][2].update(worst_case="good")),
    "a worst case beyond floating point": edited(
        lambda tensors, record: record["entries"][2].update(worst_case=10**400)
    ),
    "no worst case": edited(lambda tensors, record: record["entries"][2].pop("worst_case")),
    "numbers of an unknown type": unknown_type,
    "no steps": edited(lambda tensors, record: record.update(entries=[])),
    "steps that are none": edited(lambda tensors, record: record.update(entries=3)),
    "other steps": edited(lambda tensors, record: record.update(numbers=[7])),
    "steps by name": edited(lambda tensors, record: record.update(numbers=["../../other", 3])),
    "soft labels that are NaN": labels(lambda values: values * np.nan),
    "soft labels beyond one": labels(lambda values: values * 2),
    "negative soft labels": labels(lambda values: values - 1),
    "soft labels of other rows": labels(lambda values: values[1:]),
    "soft labels of whole numbers": labels(lambda values: np.round(values).astype(np.int64)),
    "known classes changed": labels(lambda values: values[:, ::-1]),
    "empty soft labels": lambda newest: [file.write_bytes(b"") for file in newest.glob("3/*.npy")],
    "soft labels with a broken header": broken_header,
    "soft labels in an archive": archive,
    "no soft labels": lambda newest: [file.unlink() for file in newest.glob("3/*.npy")],
}


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_steps_are_refused(tmp_path, steps, monkeypatch, damage, engine):
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e9)
    X, _, partly = blobs(100)
    newest = interrupted(tmp_path, steps, X, partly, network="deep", univariate=True)
    DAMAGES[damage](newest)
    with use_engine(engine), pytest.raises(CheckpointError, match="delete"):
        SafeSPNClassifier(network="deep", univariate=True, random_state=0, checkpoint=tmp_path).fit(X, partly)
    assert newest.is_dir()


def test_a_model_file_carries_no_checkpoint_into_a_later_fit(tmp_path):
    X, _, partly = blobs(100)
    fitted = SafeSPNClassifier(network="blocks", random_state=0, checkpoint=str(tmp_path / "steps")).fit(X, partly)
    fitted.save(tmp_path / "model.safespn")
    assert b"checkpoint" not in (tmp_path / "model.safespn").read_bytes()
    assert SafeSPNClassifier.load(tmp_path / "model.safespn").checkpoint is None
    # A file of an earlier version, or a crafted one, may name one.
    tensors, header = read_model(tmp_path / "model.safespn", "classifier")
    header["parameters"]["checkpoint"] = str(tmp_path / "elsewhere")
    del header["sha256"], header["kind"], header["version"]
    write_model(tmp_path / "model.safespn", "classifier", tensors, header)
    assert SafeSPNClassifier.load(tmp_path / "model.safespn").checkpoint is None


SCRIPT = """
import sys
import numpy as np
from safespn import SafeSPNClassifier
from tests.rows.tables import blobs
X, _, partly = blobs(20_000, n_columns=6)
lazily = sys.argv[3] == "dask"
if lazily:
    import dask.array as da
    X = da.from_array(X, chunks=(4_000, 6))
options = {} if sys.argv[1] == "-" else {"checkpoint": sys.argv[1]}
fitted = SafeSPNClassifier(network="blocks", random_state=0, tol=0, **options).fit(X, partly)
np.save(sys.argv[2], np.asarray(fitted.joint_log_likelihood(X)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "dask"])
def test_a_killed_process_goes_on_to_the_same_result(tmp_path, where):
    if where == "dask":
        pytest.importorskip("dask", reason="needs the extra [dask]")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}

    def start(checkpoint, output):
        arguments = [sys.executable, "-c", SCRIPT, str(checkpoint), str(tmp_path / output), where]
        return subprocess.Popen(arguments, env=environment)

    folder = tmp_path / "steps"
    killed = start(folder, "killed.npy")
    deadline = time.monotonic() + 120
    while not list(folder.glob("step-*")):
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed.npy").exists()
    assert list(folder.glob("step-*"))
    assert start(folder, "resumed.npy").wait() == 0
    assert start("-", "whole.npy").wait() == 0
    resumed, whole = np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy")
    np.testing.assert_allclose(resumed, whole, rtol=1e-9)
    assert not folder.exists()

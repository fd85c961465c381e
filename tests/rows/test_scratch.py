"""Rows and states in files of a scratch folder: the same answer, and nothing left behind."""

from __future__ import annotations

import errno
import gc
import pickle
import shutil

import numpy as np
import pytest

from safespn import SafeSPNClassifier, ScratchError
from safespn.rows import scratch as scratch_module
from safespn.rows.blocks import RowBlock
from safespn.rows.memory import MemoryRows
from safespn.rows.scratch import Scratch, StoredBlock, StoredState, StoredStates
from safespn.safety import checkpoint
from safespn.safety.certified_em import CertifiedEM
from safespn.safety.tasks import CertifiedEStep, InitStatesAndEStep
from tests.rows.tables import blobs

da = pytest.importorskip("dask.array", reason="needs the extra [dask]")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra [dask]")
pd = pytest.importorskip("pandas", reason="needs pandas")
dask_rows = pytest.importorskip("safespn.rows.dask_rows", reason="needs the extra [dask]")
scratch_rows = pytest.importorskip("safespn.rows.scratch_rows", reason="needs the extra [dask]")

TYPES = {
    "single precision": (np.float32([[0.1, 2], [np.nan, -0.0], [3e38, 4]]).astype(float), [0, 0], ["<f4"]),
    "double precision": (np.array([[0.1, 2], [1e300, 3]]), [0, 0], ["<f4", "<f8"]),
    "codes": (np.array([[0.0, 126, 0.1], [np.nan, 1, 0.2]]), [2, 127, 0], ["<f8", "|i1"]),
    "many codes": (np.array([[0.0, 200], [1, np.nan]]), [0, 201], ["<f4"]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_a_block_comes_back_as_it_was_in_as_few_bytes(tmp_path, name, weighted):
    table, n_states, kinds = TYPES[name]
    weights = np.linspace(0.1, 0.3, len(table)) if weighted else None
    block = RowBlock(table, np.arange(len(table)) * 150 - 1, weights, 7)
    folder = Scratch(tmp_path).folder()
    stored = StoredBlock.write(folder, block, n_states)
    again = pickle.loads(pickle.dumps(stored)).read()
    np.testing.assert_array_equal(again.table, table)
    np.testing.assert_array_equal(again.codes, block.codes)
    assert again.table.dtype == np.float64
    assert again.codes.dtype == np.intp
    assert again.number == 7
    assert (again.weights is None) == (not weighted)
    if weighted:
        np.testing.assert_array_equal(again.weights, weights)
    assert [kind for kind, _ in stored.groups] == kinds


@pytest.mark.parametrize(("largest", "kind"), [(0, "|i1"), (127, "|i1"), (128, "<i2"), (32767, "<i2"), (32768, "<i4")])
def test_classes_come_back_whatever_their_number(tmp_path, largest, kind):
    codes = np.array([-1, 0, largest])
    stored = StoredBlock.write(Scratch(tmp_path).folder(), RowBlock(np.zeros((3, 1)), codes), [0])
    np.testing.assert_array_equal(stored.read().codes, codes)
    assert stored.codes == kind


def test_arrays_that_stay_the_same_are_one_file_and_outlive_the_first_state(tmp_path):
    scratch = Scratch(tmp_path)
    first, second = (StoredStates(scratch.folder(), 1) for _ in range(2))
    first[0].write({"same": np.arange(3.0), "other": np.ones(2)}, {})
    state, origins = first[0].read()
    second[0].write((state["same"], np.zeros(2), None), origins)
    (path,) = (path for _, path in origins.values() if np.load(path).shape == (3,))
    assert path.stat().st_nlink == 2
    del first, state, origins
    gc.collect()
    assert not path.exists()
    same, other, nothing = second[0].read()[0]
    np.testing.assert_array_equal(same, np.arange(3.0))
    np.testing.assert_array_equal(other, np.zeros(2))
    assert nothing is None
    folder = second.folder.path
    del second
    gc.collect()
    assert not folder.exists()
    assert scratch.path.exists()
    del scratch
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_state_can_be_written_again_after_the_loss_of_a_worker(tmp_path):
    state = StoredState(Scratch(tmp_path).folder(), 0)
    state.write(np.arange(3.0), {})
    value, origins = state.read()
    other = StoredState(Scratch(tmp_path).folder(), 0)
    for _ in range(2):
        other.write((value, np.ones(1)), origins)
    np.testing.assert_array_equal(other.read()[0][0], np.arange(3.0))


OPTIONS = {
    "one network": {"network": "blocks"},
    "committee": {"network": ["blocks", "components"]},
    "mini-batches": {"network": "blocks", "batch_size": 100},
    "soft labels at random": {"network": "blocks", "safety": "mcp", "max_iter": 5},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_fits_with_a_scratch_folder_have_the_answer_of_memory(tmp_path, name):
    X, _, partly = blobs(400)
    X[::7, 0] = np.nan
    blocks, labels = da.from_array(X, chunks=(100, -1)), da.from_array(partly, chunks=100)
    fitted = SafeSPNClassifier(random_state=0, scratch=tmp_path, **OPTIONS[name]).fit(blocks, labels)
    if name == "mini-batches":
        other = SafeSPNClassifier(random_state=0, **OPTIONS[name]).fit(blocks, labels)  # whole partitions are drawn
    else:
        other = SafeSPNClassifier(random_state=0, **OPTIONS[name]).fit(X, partly)
    np.testing.assert_allclose(fitted.joint_log_likelihood(X), other.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(fitted.safety_.worst_case, other.safety_.worst_case, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(fitted.soft_labels_), np.asarray(other.soft_labels_), atol=1e-8)
    # Only the files behind the soft labels are left, and they go with them.
    kept = [path for path in tmp_path.glob("*/*") if path.is_dir()]
    assert len(kept) == 1
    assert not list(tmp_path.rglob("*.rows"))
    del fitted
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_too_small_a_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    X, _, partly = blobs(200)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(scratch_module.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(ScratchError, match=r"the fit needs about .* GB of disk, 1e-06 GB are free; choose a folder"):
        SafeSPNClassifier(network="blocks", scratch=tmp_path).fit(da.from_array(X, chunks=(100, -1)), partly)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fails", ["rows", "states"])
def test_a_disk_that_fills_up_ends_the_fit_and_leaves_nothing(tmp_path, monkeypatch, fails):
    X, _, partly = blobs(200)

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    target = {"rows": (StoredBlock, "write"), "states": (np, "save")}[fails]
    monkeypatch.setattr(*target, full)
    classifier = SafeSPNClassifier(network="blocks", scratch=tmp_path)
    with pytest.raises(ScratchError, match="No space left on device; make room, or choose a folder on a larger disk"):
        classifier.fit(da.from_array(X, chunks=(100, -1)), partly)
    assert not list(tmp_path.iterdir())
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize("kind", ["file", "missing"])
def test_a_folder_that_cannot_be_written_is_refused(tmp_path, kind):
    X, _, partly = blobs(200)
    folder = tmp_path / "folder"
    if kind == "file":
        folder.touch()
    with pytest.raises(ScratchError, match=r"folder: the folder cannot be written \(.*\); choose another one"):
        SafeSPNClassifier(network="blocks", scratch=folder).fit(da.from_array(X, chunks=(100, -1)), partly)


def parquet(tmp_path, X, partly):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": partly}).to_parquet(path, row_group_size=100)
    return path


@pytest.mark.parametrize("scratch", [False, True])
def test_a_file_that_changes_during_the_fit_is_noticed(tmp_path, monkeypatch, scratch):
    X, _, partly = blobs(300)
    table = dd.read_parquet(parquet(tmp_path, X, partly), split_row_groups=1)
    (tmp_path / "scratch").mkdir()
    from safespn.rows import dask_input

    original = dask_input._classes

    def changed(*arguments):
        # All partitions have been looked at once, and none is encoded yet.
        parquet(tmp_path, X, np.where(np.arange(300) < 50, partly, -1))
        return original(*arguments)

    monkeypatch.setattr(dask_input, "_classes", changed)
    options = {"scratch": tmp_path / "scratch"} if scratch else {"persist": "labels"}
    with pytest.raises(ValueError, match=r"block \d has .* labelled and .*: the table changed during the fit"):
        SafeSPNClassifier(network="blocks", **options).fit(table[["a", "b"]], table["y"])
    assert not list((tmp_path / "scratch").iterdir())


def test_a_column_that_is_constant_in_one_block_and_text_in_another_is_named(tmp_path):
    X, _, partly = blobs(200)
    parts = [
        pd.DataFrame({"a": X[:100, 0], "b": 1.0}),
        pd.DataFrame({"a": X[100:, 0], "b": np.where(X[100:, 1] > 0, "high", "low")}),
    ]
    meta = pd.DataFrame({"a": [0.0], "b": [0.0]}).iloc[:0]
    table = dd.from_map(lambda part: part, parts, meta=meta, enforce_metadata=False)
    with pytest.raises(ValueError, match="column 'b' holds numbers in block 0 and categories in block 1"):
        SafeSPNClassifier(network="blocks", scratch=tmp_path).fit(table, partly)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["memory of workers", "scratch", "memory"])
def test_members_of_a_committee_share_every_pass(tmp_path, monkeypatch, where):
    X, _, partly = blobs(600, n_columns=3)
    n_requests = []
    classes = {"memory of workers": dask_rows.DaskRows, "scratch": scratch_rows.ScratchRows, "memory": MemoryRows}
    original = classes[where].run_together

    def counted(self, requests):
        n_requests.append([type(request.task) for request in requests])
        return original(self, requests)

    monkeypatch.setattr(classes[where], "run_together", counted)
    table = X if where == "memory" else da.from_array(X, chunks=(200, -1))
    options = {"scratch": tmp_path} if where == "scratch" else {}
    # Unguarded, every member is fitted, whatever its share in the density.
    fitted = SafeSPNClassifier(
        network=["blocks", "components"], safety="none", random_state=0, max_iter=10, **options
    ).fit(table, partly)
    assert len(fitted.members_) > 1
    steps = [kinds for kinds in n_requests if CertifiedEStep in kinds]
    lengths = [sum(entry["member"] == which for entry in fitted.history_) for which in range(len(fitted.members_))]
    assert steps[0] == [CertifiedEStep] * len(fitted.members_)
    # One pass per step for all of them; that of the start leads to the first step.
    assert len(steps) == max(lengths)
    assert n_requests.count([InitStatesAndEStep] * len(fitted.members_)) == 1
    assert sum(map(len, steps)) == sum(lengths)


def test_a_checkpoint_of_a_committee_loses_at_most_two_passes(tmp_path, monkeypatch):
    """Members that are done keep their steps until the last one is, and steps are written whatever that costs."""
    X, _, partly = blobs(300)
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", 1e-9)
    options = {"network": ["blocks", "components"], "safety": "none", "random_state": 0, "max_iter": 15}
    made, stop = [], -1
    original = CertifiedEM._assess_and_prefetch

    def counted(self, parameters, states, rule):
        made.append(id(self))
        if len(made) == stop:
            raise KeyboardInterrupt
        return original(self, parameters, states, rule)

    monkeypatch.setattr(CertifiedEM, "_assess_and_prefetch", counted)
    whole = SafeSPNClassifier(**options).fit(X, partly)
    n_passes, n_members = len(made), len(whole.members_)
    made.clear()
    stop = 8 * n_members
    with pytest.raises(KeyboardInterrupt):
        SafeSPNClassifier(checkpoint=tmp_path / "steps", **options).fit(X, partly)
    made.clear()
    stop = -1
    again = SafeSPNClassifier(checkpoint=tmp_path / "steps", **options).fit(X, partly)
    assert again.history_ == whole.history_
    # Of the seven steps of each, five at least are known.
    assert len(made) <= n_passes - 5 * n_members
    assert not (tmp_path / "steps").exists()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("where", ["rows", "labels", "scratch"])
def test_rows_set_aside_are_those_of_memory(tmp_path, where, weighted):
    X, _, partly = blobs(400)
    weights = np.random.default_rng(3).integers(3, size=400).astype(float) if weighted else None
    options = {"network": "blocks", "random_state": 0, "validation_fraction": 0.3, "max_iter": 6}
    expected = SafeSPNClassifier(**options).fit(X, partly, weights)
    blocks, labels = da.from_array(X, chunks=(100, -1)), da.from_array(partly, chunks=100)
    place = {"scratch": tmp_path} if where == "scratch" else {"persist": where}
    fitted = SafeSPNClassifier(**options, **place).fit(blocks, labels, weights)
    for ours, theirs in zip(fitted.history_, expected.history_, strict=True):
        np.testing.assert_allclose(ours["validation_score"], theirs["validation_score"], rtol=1e-9)
        np.testing.assert_allclose(ours["worst_case"], theirs["worst_case"], rtol=1e-7)
    assert fitted.safety_.n_labelled == expected.safety_.n_labelled < (partly >= 0).sum()


def test_a_block_that_would_lose_all_its_rows_is_refused():
    X, _, partly = blobs(400)
    known = np.argsort(partly < 0, kind="stable")
    blocks = da.from_array(X[known], chunks=((1, 399), -1))
    with pytest.raises(ValueError, match="takes all 1 rows of a block away; use larger partitions"):
        SafeSPNClassifier(network="blocks", random_state=0, validation_fraction=0.99).fit(blocks, partly[known])

from __future__ import annotations

import json
import os
import pickle
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from safespn import SPN, Gaussian, ModelFileError, Sum
from safespn.network.files import FORMAT, _checksum
from tests.networks import random_problem


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "network.safespn"
    SPN(Sum([Gaussian(0, 0, 1), Gaussian(0, 1, 1)], [0.5, 0.5])).save(path)
    return path


def rewrite(path, *, metadata=None, **tensors):
    """Change a file and give it a checksum that fits."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
    changed = {**load(content), **tensors}
    header = {**header, **(metadata or {})}
    del header["sha256"]
    header["sha256"] = _checksum(changed, header)
    path.write_bytes(save(changed, metadata={FORMAT: json.dumps(header)}))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_loaded_is_what_was_saved(seed, tmp_path):
    spn, table, _ = random_problem(seed)
    spn.save(tmp_path / "a.safespn")
    loaded = SPN.load(tmp_path / "a.safespn")
    np.testing.assert_array_equal(loaded.log_likelihood(table), spn.log_likelihood(table))
    assert (loaded.n_nodes, loaded.n_edges, str(loaded)) == (spn.n_nodes, spn.n_edges, str(spn))
    loaded.save(tmp_path / "b.safespn")
    assert (tmp_path / "a.safespn").read_bytes() == (tmp_path / "b.safespn").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.safespn", "b.safespn"]


def test_every_truncation_is_refused(saved):
    content = saved.read_bytes()
    for length in range(len(content)):
        saved.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            SPN.load(saved)


def test_every_changed_byte_is_refused_or_harmless(saved):
    content = bytearray(saved.read_bytes())
    original = str(SPN.load(saved))
    for position in range(len(content)):
        content[position] ^= 0x21
        saved.write_bytes(content)
        content[position] ^= 0x21
        with suppress(ModelFileError):
            assert str(SPN.load(saved)) == original


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"children": np.array([0, 2])}, "node 2 has child 2, which does not come before it"),
        ({"children": np.array([0, -1])}, "node 2 has child -1"),
        ({"children": np.array([0])}, "does not describe a network"),
        ({"weights": np.array([0.9, 0.9])}, "Sum at root: the weights add up to 1.8"),
        ({"weights": np.array([np.nan, 0.5])}, "weight 0 is nan"),
        ({"parameters": np.array([0.0, -1.0, 0.0, 1.0])}, "variance must be finite and positive"),
        ({"kind": np.array([2, 99, 0])}, "does not describe a network"),
        ({"kind": np.array([2, -7, 0])}, "does not describe a network"),
        ({"size": np.array([2, 2, 2**60])}, "does not describe a network"),
        ({"columns": np.array([-5, 0])}, "non-negative integer"),
        ({"columns": np.array([0, 2_000_000_000])}, "one of them with the number 2000000000"),
        ({"columns": np.array([0, 2**62])}, "one of them with the number"),
        ({"columns": np.array([0, 0, 0])}, "hold more than its nodes need"),
        ({"ties": np.array([-1, -1, -1])}, "hold more than its nodes need"),
        ({"weights": np.array([0.5, 0.5, 0.0])}, "hold more than its nodes need"),
        ({"parameters": np.array([0.0, 1.0, 0.0, 1.0, 5.0])}, "hold more than its nodes need"),
        ({"parameters": np.array([0.0, 1.0, 0.0])}, "has 2 parameters, of which 1 are in the file"),
        ({"parameters": np.array([0.0, 1.0, np.nan, 1.0])}, "the mean must be finite"),
        ({"extra": np.array([1.0])}, "does not hold the arrays of a network"),
        ({"kind": np.array([], dtype=np.int64), "size": np.array([], dtype=np.int64)}, "has no nodes"),
    ],
)
def test_malicious_content_is_refused(saved, tensors, message):
    rewrite(saved, **tensors)
    with pytest.raises(ModelFileError, match=message):
        SPN.load(saved)


def test_newer_versions_and_foreign_files_are_refused(saved):
    rewrite(saved, metadata={"version": 2})
    with pytest.raises(ModelFileError, match="format version 2; this safespn reads version 1: upgrade safespn"):
        SPN.load(saved)
    for version in (float("inf"), float("nan"), "1e999", None, [1]):
        rewrite(saved, metadata={"version": version})
        with pytest.raises(ModelFileError, match="not a model saved by safespn"):
            SPN.load(saved)
    rewrite(saved, metadata={"version": 1, "kind": "classifier"})
    with pytest.raises(ModelFileError, match="the file holds a classifier, not a network"):
        SPN.load(saved)
    for foreign in (b"", b"hello", pickle.dumps({"a": 1}), save({"a": np.zeros(3)}), b"\xff" * 100):
        saved.write_bytes(foreign)
        with pytest.raises(ModelFileError, match="not a model saved by safespn"):
            SPN.load(saved)


def test_a_failed_save_leaves_nothing_behind(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        SPN(Gaussian(0, 5, 1)).save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        SPN.load(tmp_path / "nothing.safespn")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such devices on this system")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_refused_and_not_read(device):
    with pytest.raises(ModelFileError, match=f"{device}: neither a file nor a pipe"):
        SPN.load(device)


@pytest.fixture
def through_a_pipe(tmp_path):
    """Load a network from a pipe that has a content and then no end; return also how much of it was taken."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def load_from(content, *, endless=False):
        taken = 0

        def write():
            nonlocal taken
            with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
                taken += file.write(content)
                while endless and taken < 10**8:
                    taken += file.write(bytes(10_000))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return SPN.load(pipe)
        finally:
            writer.join()
            assert taken < 10**6

    return load_from


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_model_comes_through_a_pipe(saved, through_a_pipe):
    assert str(through_a_pipe(saved.read_bytes())) == str(SPN.load(saved))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a model saved by safespn"),
        (b"y" * 10, "not a model saved by safespn"),
        ((10).to_bytes(8, "little") + b"0123456789", "not a model saved by safespn"),
        (save({"a": np.zeros(3)}), "not a model saved by safespn"),
        (None, "damaged or truncated"),
    ],
)
def test_what_has_no_end_is_not_read_to_it(saved, through_a_pipe, content, message):
    with pytest.raises(ModelFileError, match=message):
        through_a_pipe(saved.read_bytes() if content is None else content, endless=True)


@pytest.mark.parametrize("claimed", [[0, 10**15], [0, 10**400], [0], "all", None])
def test_a_length_that_a_file_only_claims_costs_nothing(saved, claimed):
    content = saved.read_bytes()
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])
    metadata["weights"]["data_offsets"] = claimed
    text = json.dumps(metadata).encode()
    saved.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        SPN.load(saved)

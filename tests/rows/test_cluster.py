"""A cluster of worker processes: unchanged code, workers that are really killed, and memory that runs out."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

import numpy as np
import pytest

from safespn import SafeSPNClassifier
from tests.rows.tables import blobs

distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster"), pytest.mark.filterwarnings("ignore")]


@contextmanager
def two_workers():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client():
    """Two workers for one test: those that it kills do not always come back."""
    with two_workers() as client:
        yield client


def test_workers_give_the_answer_of_memory(client):
    X, _, partly = blobs(600)
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=15).fit(X, partly)
    blocks = da.from_array(X, chunks=(100, 3))
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=15).fit(
        blocks, da.from_array(partly, chunks=100)
    )
    np.testing.assert_allclose(lazily.joint_log_likelihood(X), in_memory.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(lazily.safety_.worst_case, in_memory.safety_.worst_case, rtol=1e-9)
    np.testing.assert_allclose(lazily.soft_labels_.compute(), in_memory.soft_labels_, atol=1e-9)
    np.testing.assert_array_equal(lazily.predict(blocks).compute(), in_memory.predict(X))


def divide(array):
    """Blocks that have nothing in common, as those of files."""
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(array[start : start + 100]), (100, *array.shape[1:]), array.dtype)
            for start in range(0, len(array), 100)
        ]
    )


@pytest.mark.parametrize("where", ["rows", "labels", "scratch"])
def test_a_killed_worker_costs_recomputation_not_the_fit(client, monkeypatch, where, tmp_path):
    from safespn.rows.dask_rows import DaskRows
    from safespn.rows.scratch_rows import ScratchRows

    X, _, partly = blobs(600)
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=15).fit(X, partly)
    kind = ScratchRows if where == "scratch" else DaskRows
    rounds, original = [], kind.run_together

    def run_together(self, requests):
        rounds.append(type(requests[0].task).__name__)
        if len(rounds) == 10:
            process = next(iter(client.run(os.getpid).values()))
            os.kill(process, signal.SIGKILL)
        return original(self, requests)

    monkeypatch.setattr(kind, "run_together", run_together)
    options = {"scratch": tmp_path} if where == "scratch" else {"persist": where}
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=15, **options).fit(divide(X), divide(partly))
    assert rounds[9] == "CertifiedEStep"
    np.testing.assert_allclose(lazily.joint_log_likelihood(X), in_memory.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(lazily.safety_.worst_case, in_memory.safety_.worst_case, rtol=1e-9)


def die(block):
    if len(block):
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_workers_that_die_name_the_block():
    X, _, partly = blobs(200)
    blocks = da.from_array(X, chunks=(100, 3)).map_blocks(die, dtype=float, meta=np.empty((0, 3)))
    # Dask blames whatever a dead worker had to do; with one more try it could be another block, or there is no worker.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        two_workers(),
        pytest.raises(MemoryError, match=r"^block [01]: every worker that computed it died, probably out of memory"),
    ):
        SafeSPNClassifier(network="blocks", max_iter=5).fit(blocks, da.from_array(partly, chunks=100))


@pytest.mark.parametrize("number", [0, 1])
def test_the_block_that_was_lost_is_named(number):
    from safespn.rows.dask_rows import explained

    blocks = da.from_array(np.ones((4, 2)), chunks=(2, 2)).map_blocks(die, dtype=float, meta=np.empty((0, 2)))
    promises = list(blocks.to_delayed().ravel())
    error = distributed.KilledWorker(promises[number].key, None, 3)
    assert str(explained(error, ["block 0", "block 1"], promises)).startswith(f"block {number}: every worker")

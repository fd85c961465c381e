"""A cluster of worker processes: unchanged code, workers that are really killed, and memory that runs out."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from safespn import SafeSPNClassifier
from tests.rows.tables import blobs

distributed = pytest.importorskip("distributed", reason="needs the extra [dask]")
da = pytest.importorskip("dask.array")
delayed = pytest.importorskip("dask").delayed

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_give_the_answer_of_memory(client):
    X, _, partly = blobs(600)
    in_memory = SafeSPNClassifier(random_state=0, max_iter=15).fit(X, partly)
    blocks = da.from_array(X, chunks=(100, 3))
    lazily = SafeSPNClassifier(random_state=0, max_iter=15).fit(blocks, da.from_array(partly, chunks=100))
    np.testing.assert_allclose(lazily.joint_log_likelihood(X), in_memory.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(lazily.safety_.worst_case, in_memory.safety_.worst_case, rtol=1e-9)
    np.testing.assert_allclose(lazily.soft_labels_.compute(), in_memory.soft_labels_, atol=1e-9)
    np.testing.assert_array_equal(lazily.predict(blocks).compute(), in_memory.predict(X))


def divide(array):
    """Blocks that have nothing in common, as those of files."""
    return da.concatenate(
        [
            da.from_delayed(delayed(array[start : start + 100]), (100, *array.shape[1:]), array.dtype)
            for start in range(0, len(array), 100)
        ]
    )


@pytest.mark.parametrize("persist", ["rows", "labels"])
def test_a_killed_worker_costs_recomputation_not_the_fit(client, monkeypatch, persist):
    from safespn.rows.dask_rows import DaskRows

    X, _, partly = blobs(600)
    in_memory = SafeSPNClassifier(random_state=0, max_iter=15).fit(X, partly)
    rounds, original = [], DaskRows.run

    def run(self, task, structure, kept=None):
        rounds.append(type(task).__name__)
        if len(rounds) == 10:
            process = next(iter(client.run(os.getpid).values()))
            os.kill(process, signal.SIGKILL)
        return original(self, task, structure, kept)

    monkeypatch.setattr(DaskRows, "run", run)
    lazily = SafeSPNClassifier(random_state=0, max_iter=15, persist=persist).fit(divide(X), divide(partly))
    assert rounds[9] == "Climb"
    np.testing.assert_allclose(lazily.joint_log_likelihood(X), in_memory.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(lazily.safety_.worst_case, in_memory.safety_.worst_case, rtol=1e-9)


def die_in_second_block(block, block_info=None):
    if block_info and block_info[0]["chunk-location"][0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_workers_that_die_again_and_again_name_the_block(client):
    X, _, partly = blobs(200)
    blocks = da.from_array(X, chunks=(100, 3)).map_blocks(die_in_second_block, dtype=float, meta=np.empty((0, 3)))
    with pytest.raises(MemoryError, match=r"block 1: every worker that computed it died, probably out of memory"):
        SafeSPNClassifier(max_iter=5).fit(blocks, da.from_array(partly, chunks=100))
    client.wait_for_workers(2)

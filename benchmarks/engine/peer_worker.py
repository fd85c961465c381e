"""Runs inside the peers' environment: build the given network with a peer's own classes, check it and time it.

Usage: python peer_worker.py PEER FOLDER, where FOLDER holds network.json and rows.npy; leaves PEER.npz and PEER.json.

How each peer is used, in the fastest way its interface offers for an irregular tree:

* SPFlow: what its own LearnSPN builds, that is one ``Normal`` module for all leaves of a product, float64, argument
  checks of torch.distributions off, likelihood under ``torch.no_grad``, EM by ``expectation_maximization`` with
  ``max_steps=1`` and without bias correction (then it is the same step as ours).
* deeprob-kit: its node classes, structure checks off; likelihood with one thread and with its default of all cores,
  the faster of the two; EM by ``expectation_maximization`` on one batch of all rows but one (it takes no more).
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np


def best_of(run, seconds: float, at_least: int = 5, clock=time.process_time) -> float:
    """Shortest processor time of one run, as in measure.py."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def spflow(nodes: list[dict], rows: np.ndarray) -> tuple[dict, dict]:
    import torch
    from spflow.learn import expectation_maximization
    from spflow.modules.leaves import Normal
    from spflow.modules.products import Product
    from spflow.modules.sums import Sum

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    built: list = []

    def normal(leaves: list[dict]):
        leaves = sorted(leaves, key=lambda leaf: leaf["column"])
        return Normal(
            scope=[leaf["column"] for leaf in leaves],
            loc=torch.tensor([leaf["mean"] for leaf in leaves]).reshape(-1, 1, 1),
            scale=torch.tensor([leaf["variance"] for leaf in leaves]).sqrt().reshape(-1, 1, 1),
            validate_args=False,
        )

    for node in nodes:
        children = node.get("children", [])
        if node["kind"] == "leaf":
            built.append(None)  # made by its parent, together with its siblings
        elif node["kind"] == "product":
            leaves = [nodes[child] for child in children if nodes[child]["kind"] == "leaf"]
            inputs = [built[child] for child in children if nodes[child]["kind"] != "leaf"]
            built.append(Product(inputs=([normal(leaves)] if leaves else []) + inputs))
        else:
            inputs = [normal([nodes[child]]) if built[child] is None else built[child] for child in children]
            built.append(Sum(inputs=inputs, weights=torch.tensor(node["weights"])))
    root, table = built[-1], torch.from_numpy(rows)

    def likelihood() -> np.ndarray:
        with torch.no_grad():
            return root.log_likelihood(table).numpy().ravel()

    def em_step() -> None:
        expectation_maximization(root, table, max_steps=1, bias_correction=False)

    arrays = {"log_likelihood": likelihood()}
    times = {"log_likelihood": best_of(likelihood, 4.0)}
    em_step()
    arrays["after_em_step"] = likelihood()
    times["em_step"] = best_of(em_step, 6.0)
    return arrays, {"times": times, "versions": {name: version(name) for name in ("spflow", "torch")}}


def deeprob(nodes: list[dict], rows: np.ndarray) -> tuple[dict, dict]:
    from deeprob.context import ContextState
    from deeprob.spn.algorithms.evaluation import eval_bottom_up
    from deeprob.spn.algorithms.inference import log_likelihood, node_log_likelihood
    from deeprob.spn.learning.em import expectation_maximization
    from deeprob.spn.structure.leaf import Gaussian
    from deeprob.spn.structure.node import Product, Sum, assign_ids

    built: list = []
    for node in nodes:
        children = [built[child] for child in node.get("children", [])]
        if node["kind"] == "leaf":
            built.append(Gaussian(node["column"], node["mean"], node["variance"] ** 0.5))
        elif node["kind"] == "product":
            built.append(Product(children=children))
        else:
            built.append(Sum(children=children, weights=np.array(node["weights"])))
    root = assign_ids(built[-1])
    unchecked = ContextState(check_spn=False, check_dtype=False)

    def one_thread() -> np.ndarray:
        with unchecked:
            return eval_bottom_up(root, rows, node_log_likelihood, node_log_likelihood, n_jobs=1)

    def all_cores() -> np.ndarray:
        with unchecked:
            return log_likelihood(root, rows)

    arrays = {"log_likelihood": one_thread()}
    by_threads = {
        "one thread, processor time": best_of(one_thread, 5.0),
        "all cores, wall time": best_of(all_cores, 3.0, clock=time.perf_counter),
    }
    share = 1 - 0.5 / len(rows)  # it samples a batch and refuses all rows

    def em_step() -> None:
        expectation_maximization(root, rows, num_iter=1, batch_perc=share, random_init=False, verbose=False)

    times = {"log_likelihood": min(by_threads.values()), "em_step": best_of(em_step, 4.0, at_least=2)}
    versions = {"deeprob-kit": version("deeprob-kit"), "numpy": version("numpy")}
    return arrays, {"times": times, "by_threads": by_threads, "versions": versions}


def main() -> None:
    peer, folder = sys.argv[1], Path(sys.argv[2])
    nodes = json.loads((folder / "network.json").read_text())
    arrays, report = {"spflow": spflow, "deeprob": deeprob}[peer](nodes, np.load(folder / "rows.npy"))
    np.savez(folder / f"{peer}.npz", **arrays)
    (folder / f"{peer}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()

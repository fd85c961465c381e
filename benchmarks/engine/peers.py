"""Log-likelihood and EM step against SPFlow and deeprob-kit: the same network, the same rows, one thread.

The peers live in an environment of their own, made here from PyPI on first use (``.peers`` in the repository), or
named by its interpreter in the environment variable SAFESPN_PEERS. Their versions are checked, not assumed. All times
are processor times of one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np

from measure import SINGLE_THREADED, Figure, best_of, print_section, use_compiled_pass
from networks import learnspn_tree, rows_of
from safespn import SPN, Gaussian, Sum
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.learning.parameters import Prior, m_step
from safespn.network.nodes import Node, walk
from safespn.network.structure import Parameters
from safespn.typing import FloatArray

PEERS = {"torch": "2.13.0", "spflow": "1.1.0", "deeprob-kit": "1.1.0"}
FOLDER = Path(__file__).parents[2] / ".peers"
N_ROWS = 10_000


def interpreter() -> str:
    """Return the peers' interpreter; make its environment if there is none."""
    python = os.environ.get("SAFESPN_PEERS")
    if python is None:
        python = str(FOLDER / "bin" / "python")
        if not Path(python).exists():
            print(f"making the peers' environment in {FOLDER} (a few minutes, once)", file=sys.stderr)
            venv.create(FOLDER, with_pip=True)
            # One resolution for all three: installed one after the other, torchvision, which deeprob-kit needs,
            # replaces torch by a newer version.
            wanted = [f"{name}=={number}" for name, number in PEERS.items()]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    _check_versions(python)
    return python


def _check_versions(python: str) -> None:
    code = f"from importlib.metadata import version; print(*map(version, {list(PEERS)}))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for (name, wanted), number in zip(PEERS.items(), found, strict=True):
        if number.split("+")[0] != wanted:
            raise SystemExit(f"{python} has {name} {number}; the figures are stated for {wanted}")


def em_step(spn: SPN, rows: FloatArray) -> Parameters:
    """One full EM step: bind the parameters, both passes over all rows, new parameters."""
    structure, parameters = spn._structure, spn._parameters
    statistics = passes.statistics(bind(structure, parameters), rows, n_jobs=1)
    return m_step(structure, parameters, statistics, Prior())


def as_plain_nodes(root: Node) -> list[dict[str, object]]:
    """Write a network as plain data: a list of nodes, children first, that name their children by number."""
    order = walk(root)
    number = {id(node): index for index, node in enumerate(order)}
    plain: list[dict[str, object]] = []
    for node in order:
        if isinstance(node, Gaussian):
            plain.append({"kind": "leaf", "column": node.column, "mean": node.mean, "variance": node.variance})
            continue
        plain.append({"kind": "product", "children": [number[id(child)] for child in node.children]})
        if isinstance(node, Sum):
            plain[-1] |= {"kind": "sum", "weights": node.weights}
    return plain


def main() -> None:
    use_compiled_pass()
    python = interpreter()
    spn = learnspn_tree()
    rows = rows_of(spn, N_ROWS)
    value = spn.log_likelihood(rows, n_jobs=1)
    after = SPN._from_parameters(spn._structure, em_step(spn, rows)).log_likelihood(rows, n_jobs=1)

    def ours() -> tuple[float, float]:
        return best_of(lambda: spn.log_likelihood(rows, n_jobs=1)), best_of(lambda: em_step(spn, rows))

    rounds, arrays, reports = [ours()], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "network.json").write_text(json.dumps(as_plain_nodes(spn.root)))
        np.save(Path(folder, "rows.npy"), rows)
        worker = str(Path(__file__).with_name("peer_worker.py"))
        for peer in ("spflow", "deeprob"):
            subprocess.run([python, worker, peer, folder], check=True, env={**os.environ, **SINGLE_THREADED})
            rounds.append(ours())
            arrays[peer] = dict(np.load(Path(folder, f"{peer}.npz")))
            reports[peer] = json.loads(Path(folder, f"{peer}.json").read_text())
    likelihood, step = map(min, zip(*rounds, strict=True))

    def ratio(peer: str, what: str, own: float, target: float | None) -> Figure:
        theirs = reports[peer]["times"][what]
        versions = ", ".join(f"{name} {number}" for name, number in reports[peer]["versions"].items())
        measured = f"{theirs / own:.0f} x ({theirs * 1e3:.1f} ms / {own * 1e3:.2f} ms)"
        name = what.replace("_", " ").replace("em", "EM")
        goal = "" if target is None else f">= {target:.0f} x"
        return Figure(f"{name}, {versions}", goal, measured, None if target is None else theirs / own >= target)

    def agreement(what: str, difference: float, target: float) -> Figure:
        return Figure(what, f"<= {target:g}", f"{difference:.1e}", difference <= target)

    scale = np.abs(value)
    print_section(
        f"peers: {spn!r}, {N_ROWS:,} rows, one thread",
        [
            ratio("spflow", "log_likelihood", likelihood, 50),
            ratio("deeprob", "log_likelihood", likelihood, 100),
            ratio("spflow", "em_step", step, 80),
            ratio("deeprob", "em_step", step, None),
            agreement(
                "largest difference of log-likelihoods to SPFlow",
                float(np.abs(arrays["spflow"]["log_likelihood"] - value).max()),
                1e-9,
            ),
            agreement(
                "the same to deeprob-kit, float32, relative",
                float((np.abs(arrays["deeprob"]["log_likelihood"] - value) / scale).max()),
                1e-4,
            ),
            agreement(
                "the same to SPFlow after one EM step (it adds 1e-12 to its flows)",
                float(np.abs(arrays["spflow"]["after_em_step"] - after).max()),
                1e-6,
            ),
        ],
        ["deeprob-kit: " + ", ".join(f"{k} {v * 1e3:.0f} ms" for k, v in reports["deeprob"]["by_threads"].items())],
    )


if __name__ == "__main__":
    main()

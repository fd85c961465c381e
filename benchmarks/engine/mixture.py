"""One EM step of a diagonal mixture of 30 Gaussians against scikit-learn's GaussianMixture, the identical model.

Ours is bind, both passes and new parameters; theirs ``_e_step`` and ``_m_step``. Both on one thread (BLAS and OpenMP
held to one by threadpoolctl), then both with no limit. They run in turns. The verdict takes scikit-learn's faster mode:
on busy cores its BLAS threads wait for each other, and without a limit it can be many times slower than with one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from measure import Figure, best_of, print_section, use_compiled_pass
from networks import diagonal_mixture, rows_of
from peers import em_step
from safespn import SPN
from safespn.network.nodes import Product
from safespn.typing import FloatArray

N_ROWS = 10_000


def as_gaussian_mixture(spn: SPN) -> GaussianMixture:
    """Build scikit-learn's mixture with the same weights, means and variances."""
    components = [node for node in spn.root.children if isinstance(node, Product)]
    leaves = [sorted(component.children, key=lambda leaf: leaf.column) for component in components]
    model = GaussianMixture(len(components), covariance_type="diag", reg_covar=0.0)
    model.weights_ = np.array(spn.root.weights)
    model.means_ = np.array([[leaf.mean for leaf in row] for row in leaves])
    model.covariances_ = np.array([[leaf.variance for leaf in row] for row in leaves])
    model.precisions_cholesky_ = 1 / np.sqrt(model.covariances_)
    return model


def their_step(model: GaussianMixture, rows: FloatArray) -> None:
    _, log_responsibility = model._e_step(rows)
    model._m_step(rows, log_responsibility)


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], clock: Callable[[], float]
) -> tuple[float, float]:
    pairs = [(best_of(ours, 0.5, clock=clock), best_of(theirs, 0.5, clock=clock)) for _ in range(5)]
    first, second = zip(*pairs, strict=True)
    return min(first), min(second)


def main() -> None:
    use_compiled_pass()
    spn = diagonal_mixture()
    rows = rows_of(spn, N_ROWS)
    model = as_gaussian_mixture(spn)
    difference = float(np.abs(model.score_samples(rows) - spn.log_likelihood(rows)).max())
    parameters = em_step(spn, rows)
    their_step(model, rows)
    after = float(
        np.abs(model.score_samples(rows) - SPN._from_parameters(spn._structure, parameters).log_likelihood(rows)).max()
    )
    times = {}
    modes = (("one thread, processor time", 1, time.process_time), ("unlimited threads, wall", None, time.perf_counter))
    for how, limit, clock in modes:
        with threadpool_limits(limit):
            times[how] = in_turns(lambda: em_step(spn, rows), lambda: their_step(model, rows), clock)
    ours = min(pair[0] for pair in times.values())
    fastest = min(pair[1] for pair in times.values())
    figures = [
        Figure(
            "EM step, GaussianMixture in its faster mode",
            ">= 3 x",
            f"{fastest / ours:.1f} x ({fastest * 1e3:.1f} ms / {ours * 1e3:.2f} ms)",
            fastest / ours >= 3,
        )
    ]
    figures += [
        Figure(f"both, {how}", "", f"{theirs / own:.1f} x ({theirs * 1e3:.1f} ms / {own * 1e3:.2f} ms)")
        for how, (own, theirs) in times.items()
    ]
    figures.append(Figure("largest difference of log-likelihoods", "<= 1e-9", f"{difference:.1e}", difference <= 1e-9))
    figures.append(Figure("the same after one EM step", "<= 1e-9", f"{after:.1e}", after <= 1e-9))
    print_section(f"mixture: 30 components, {N_ROWS:,} x 32 rows", figures)


if __name__ == "__main__":
    main()

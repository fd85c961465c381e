"""How often audit intervals cover the true difference in accuracy, how wide they are, and how narrow any could be.

For each number of classes and of rows on which two models disagree, 2,000 populations are drawn (how often the first
model, the second, or neither is right) and audited with 20 labels. The table has 20 times as many rows as disagree.

With two classes, the expected length of an exact interval at a true count A0 is the sum over all counts A of the
probability, under A0, that the interval holds A (Pratt 1961). Whatever the interval, A is held unless a test of A at
the level rejects it, and no test rejects more often under A0 than that of Neyman and Pearson: a lower bound.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.stats import hypergeom

from safespn.answers.limits import count_limits, difference_limits

N_AUDITS, N_LABELS, ALPHA, ROWS_PER_DISAGREEMENT = 2_000, 20, 0.05, 20


def coverage() -> None:
    """Print coverage and half-widths of simulated audits."""
    limits = cache(difference_limits)
    print("| classes | disagreeing rows | covered | mean half-width (points) | largest |")
    print("|---|---|---|---|---|")
    for n_classes in (2, 5):
        for n_disagreeing in (1, 5, 20, 50, 200, 1000):
            generator = np.random.default_rng(n_disagreeing)
            covered, widths = 0, []
            for _ in range(N_AUDITS):
                share = generator.dirichlet([1.0, 1.0] if n_classes == 2 else [1.0, 1.0, 1.0])
                kinds = np.append(generator.multinomial(n_disagreeing, share), 0)[:3]
                n_labels = min(N_LABELS, n_disagreeing)
                right, wrong, _ = generator.multivariate_hypergeometric(kinds, n_labels).tolist()
                low, high = limits(n_disagreeing, n_labels, right, wrong, alpha=ALPHA, one_is_right=n_classes == 2)
                covered += low <= kinds[0] - kinds[1] <= high
                widths.append(points(high - low, n_disagreeing) / 2)
            print(
                f"| {n_classes} | {n_disagreeing} | {100 * covered / N_AUDITS:.1f} % | {np.mean(widths):.2f} "
                f"| {np.max(widths):.2f} |",
                flush=True,
            )


def points(length: float, n_disagreeing: int) -> float:
    """Turn a number of rows into points of accuracy on the whole table."""
    return 100 * length / (ROWS_PER_DISAGREEMENT * n_disagreeing)


def expected_half_width(n_population: int, n_drawn: int, count: int) -> float:
    """Mean half-width of our interval for two classes if ``count`` rows are of the first kind, in points."""
    chances = hypergeom(n_population, count, n_drawn).pmf(np.arange(n_drawn + 1))
    lengths = [np.diff(count_limits(n_population, n_drawn, seen, ALPHA))[0] for seen in range(n_drawn + 1)]
    return points(float(chances @ np.array(lengths)), n_population)


def least_half_width(n_population: int, n_drawn: int, count: int) -> float:
    """Lower bound of the same mean for any exact interval."""
    seen = np.arange(n_drawn + 1)
    truth = hypergeom(n_population, count, n_drawn).pmf(seen)
    held = 0.0
    for other in range(n_population + 1):
        if other == count:
            held += 1.0
            continue
        # The most powerful test rejects in the tail towards the truth, at its end by the throw of a coin.
        chance = hypergeom(n_population, other, n_drawn).pmf(seen)
        order = seen[::-1] if count > other else seen
        spent = chance[order].cumsum() - chance[order]
        rejected = np.clip((ALPHA - spent) / np.maximum(chance[order], 1e-300), 0.0, 1.0)
        held += 1 - float(rejected @ truth[order])
    # One count less than the sum: an interval from low to high holds high - low + 1 of them, each is two rows apart.
    return points(held - 1, n_population)


def two_classes() -> None:
    """Print what is possible with two classes."""
    print("\n| disagreeing rows | share right | labels | mean half-width (points) | least of any exact interval |")
    print("|---|---|---|---|---|")
    for n_population, n_drawn in ((50, 20), (200, 20), (1000, 20), (1000, 30), (1000, 40), (1000, 50)):
        for share in (0.5, 0.75, 0.9, 1.0):
            count = round(share * n_population)
            print(
                f"| {n_population} | {share:g} | {n_drawn} | {expected_half_width(n_population, n_drawn, count):.2f} "
                f"| {least_half_width(n_population, n_drawn, count):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    coverage()
    two_classes()

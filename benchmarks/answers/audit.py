"""How often audit intervals cover the true difference in accuracy, how wide they are, and how narrow any could be.

For each number of classes and of rows on which two models disagree, 2,000 populations are drawn (how often the first
model, the second, or neither is right) and audited with 20 labels. The table has 20 times as many rows as disagree.

With two classes, the expected length of an exact interval at a true count A0 is the sum over all counts A of the
probability, under A0, that the interval holds A (Pratt 1961). Whatever the interval, A is held unless a test of A at
the level rejects it, and no test rejects more often under A0 than that of Neyman and Pearson: a lower bound. In the
mean over all A0 the same argument gives the best interval itself: each A is accepted at the outcomes that are most
probable under it relative to their mean probability.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
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


def chances(n_population: int, n_drawn: int) -> NDArray[np.float64]:
    """Probability of each outcome for each count of the first kind, shape (n_population + 1, n_drawn + 1)."""
    return np.asarray(
        hypergeom.pmf(np.arange(n_drawn + 1), n_population, np.arange(n_population + 1)[:, None], n_drawn)
    )


def best_mean_half_width(n_population: int, n_drawn: int) -> float:
    """Least mean half-width over all counts, equally probable, of an exact interval that throws no coins, in points."""
    probability = chances(n_population, n_drawn)
    mean = probability.mean(axis=0)
    held = 0.0
    for of_count in probability:
        order = np.argsort(-of_count / mean, kind="stable")
        n_accepted = int(np.searchsorted(of_count[order].cumsum(), 1 - ALPHA - 1e-12)) + 1
        held += mean[order[:n_accepted]].sum()
    return points(held - 1, n_population)


def where_narrow() -> None:
    """Print half-widths over all splits, for tables of different length."""
    print("\n| rows of the table | disagreeing | mean over splits | best possible | largest | at most 1.5 from share |")
    print("|---|---|---|---|---|---|")
    for n_population in (25, 40, 50, 75, 95, 100, 200, 1000):
        lengths = np.array(
            [np.diff(count_limits(n_population, N_LABELS, seen, ALPHA))[0] for seen in range(N_LABELS + 1)]
        )
        of_counts = points(1.0, n_population) * chances(n_population, N_LABELS) @ lengths
        upper = of_counts[n_population // 2 :] <= 1.5
        share = (n_population - int(np.argmin(upper[::-1])) + 1) / n_population if not upper.all() else 0.5
        print(
            f"| {ROWS_PER_DISAGREEMENT * n_population} | {n_population} | {of_counts.mean():.2f} "
            f"| {best_mean_half_width(n_population, N_LABELS):.2f} | {points(lengths.max(), n_population):.2f} "
            f"| {share:.2f} |",
            flush=True,
        )


def stratified() -> None:
    """Print half-widths if ten rows are drawn from each of two predicted classes of 100 rows, beside ours.

    With a and b right in the strata, tests of A + B use a + b. The strata's own counts are nuisances: the largest tail
    over all of them, or over those within exact limits at a tenth of the level (Berger and Boos 1994).
    """
    n, drawn = 100, N_LABELS // 2
    each = chances(n, drawn)
    sums = np.zeros((n + 1, n + 1, N_LABELS + 1))
    for first in range(drawn + 1):
        for second in range(drawn + 1):
            sums[:, :, first + second] += each[:, first, None] * each[:, second]
    total = np.add.outer(np.arange(n + 1), np.arange(n + 1))
    above, below = sums[:, :, ::-1].cumsum(axis=2)[:, :, ::-1], sums.cumsum(axis=2)
    tails = np.minimum(each.cumsum(axis=1), each[:, ::-1].cumsum(axis=1)[:, ::-1])
    lengths = np.zeros((2, drawn + 1, drawn + 1))
    for first in range(drawn + 1):
        for second in range(drawn + 1):
            likely = np.minimum(above[:, :, first + second], below[:, :, first + second])
            within = (tails[:, first, None] > ALPHA / 40) & (tails[:, second] > ALPHA / 40)
            for at, held in enumerate((likely > ALPHA / 2, (likely > 0.45 * ALPHA) & within)):
                lengths[at, first, second] = np.ptp(total[held])
    print("\n| shares right in two strata | not stratified | stratified, any nuisance | nuisance within limits |")
    print("|---|---|---|---|")
    for shares in ((0.5, 0.5), (0.75, 0.75), (0.9, 0.9), (0.9, 0.5), (0.9, 0.1), (1.0, 0.0)):
        counts = [round(share * n) for share in shares]
        joint = np.outer(*each[counts])
        ours = expected_half_width(2 * n, N_LABELS, sum(counts))
        found = [points(float((joint * length).sum()), 2 * n) for length in lengths]
        print(f"| {shares[0]:g}, {shares[1]:g} | {ours:.2f} | {found[0]:.2f} | {found[1]:.2f} |", flush=True)


if __name__ == "__main__":
    coverage()
    two_classes()
    where_narrow()
    stratified()

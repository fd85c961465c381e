"""How often audit intervals cover the true difference in accuracy, and how wide they are.

For each number of classes and of rows on which two models disagree, 2,000 populations are drawn (how often the first
model, the second, or neither is right) and audited with 20 labels. The table has 20 times as many rows as disagree.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from safespn.answers.audit import difference_limits

N_AUDITS, N_LABELS, CONFIDENCE = 2_000, 20, 0.95


def main() -> None:
    limits = cache(difference_limits)
    print("| classes | disagreeing rows | covered | mean half-width (points) | largest |")
    print("|---|---|---|---|---|")
    for n_classes in (2, 5):
        for n_disagreeing in (5, 20, 50, 200, 1000):
            generator = np.random.default_rng(n_disagreeing)
            covered, widths = 0, []
            for _ in range(N_AUDITS):
                share = generator.dirichlet([1.0, 1.0] if n_classes == 2 else [1.0, 1.0, 1.0])
                kinds = np.append(generator.multinomial(n_disagreeing, share), 0)[:3]
                n_labels = min(N_LABELS, n_disagreeing)
                right, wrong, _ = generator.multivariate_hypergeometric(kinds, n_labels).tolist()
                low, high = limits(
                    n_disagreeing, n_labels, right, wrong, alpha=1 - CONFIDENCE, one_is_right=n_classes == 2
                )
                covered += low <= kinds[0] - kinds[1] <= high
                widths.append(100 * (high - low) / 2 / (20 * n_disagreeing))
            print(
                f"| {n_classes} | {n_disagreeing} | {100 * covered / N_AUDITS:.1f} % | {np.mean(widths):.2f} "
                f"| {np.max(widths):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

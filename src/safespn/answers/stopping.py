"""When to stop labelling: what more labels are expected to bring, by a learning curve.

Accuracy grows about evenly with the logarithm of the number of labels, each time more slowly. The rise per doubling is
estimated by least squares over the curve; expected of more labels is what the rise gives from the present number on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

ENOUGH = 0.01
"""Labels that are expected to bring less accuracy than this, one point, are not worth asking for."""


def expected_gain(curve: Mapping[int, float], n_more: int) -> float:
    """Rise of the accuracy that ``n_more`` labels are expected to bring, as a share.

    Parameters
    ----------
    curve : mapping of int to float
        Numbers of labels and the mean accuracy reached with each, as of ``safespn evaluate``; the largest number is
        taken for the present one.
    n_more : int
        Labels to be added.
    """
    sizes = sorted(curve)
    if len(sizes) < 2:
        raise ValueError(f"a learning curve needs at least two numbers of labels, got {len(sizes)}")
    if sizes[0] < 1:
        raise ValueError(f"a learning curve begins with at least one label, got {sizes[0]}")
    accuracies = [curve[size] for size in sizes]
    for size, accuracy in zip(sizes, accuracies, strict=True):
        if not 0 <= accuracy <= 1:
            raise ValueError(f"accuracies are shares between 0 and 1, got {accuracy:g} for {size} labels")
    slope = float(np.polyfit(np.log(sizes), accuracies, 1)[0])
    return slope * float(np.log1p(n_more / sizes[-1]))

"""Numbers that probably stand for a missing cell: -999 among ages."""

from __future__ import annotations

import numpy as np

from safespn.typing import FloatArray

CODES = (-99_999.0, 99_999.0, -9_999.0, 9_999.0, -999.0, 999.0, -99.0, 99.0, -9.0, -1.0)
FEWEST_CELLS = 10
"""Other cells that it takes to say what is far from them."""
STEPS = 3
"""A negative code among numbers that are not negative is far if the gap is so many times their usual step."""


def find_sentinels(values: FloatArray) -> list[tuple[float, int]]:
    """Find codes that occur at least twice, far outside the rest of a column; each with the number of its cells.

    Far is farther from the next value than the others are from each other. Negative codes among numbers that are not
    negative need less: a gap that is wide beside the steps between the others.

    Parameters
    ----------
    values : array of shape (n_rows,)
        NaN where missing.
    """
    rest = values[np.isfinite(values)]
    found = []
    for code in CODES:
        is_code = rest == code
        n_cells = int(is_code.sum())
        if n_cells < 2 or len(rest) - n_cells < FEWEST_CELLS:
            continue
        others = np.unique(rest[~is_code])
        low, high = float(others[0]), float(others[-1])
        if low < code < high or low == high:
            continue
        gap = low - code if code < low else code - high
        is_wide = code < 0 <= low and gap > STEPS * float(np.median(np.diff(others)))
        if gap > high - low or is_wide:
            found.append((code, n_cells))
            rest = rest[~is_code]
    return found

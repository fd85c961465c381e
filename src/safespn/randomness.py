"""Random generators from what scikit-learn accepts as ``random_state``."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from safespn.typing import RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Make a numpy generator of a seed, a generator, a ``RandomState`` or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))

"""Random generators from what scikit-learn accepts as ``random_state``."""

from __future__ import annotations

import numpy as np

from safespn.typing import RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Make a numpy generator of a seed, a generator, a ``RandomState`` or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(_legacy_generator(random_state).randint(2**31, size=4))


def as_seed(random_state: RandomState) -> int:
    """Draw a seed from a seed, a generator, a ``RandomState`` or None."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(_legacy_generator(random_state).randint(2**31 - 1))


def _legacy_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    if random_state is None:
        return np.random.mtrand._rand  # numpy's global one, as in scikit-learn
    return random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(random_state)

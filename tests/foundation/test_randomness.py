from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import check_random_state

from safespn.foundation.randomness import as_generator, as_seed


@pytest.mark.parametrize("seed", [0, np.int64(7), 2**32 - 1])
def test_seeds_mean_what_they_mean_to_scikit_learn(seed):
    assert as_seed(seed) == check_random_state(seed).randint(2**31 - 1)
    assert as_seed(np.random.RandomState(seed)) == as_seed(seed)
    assert as_generator(seed).integers(2**40) == as_generator(np.random.RandomState(seed)).integers(2**40)


def test_none_draws_from_the_global_generator():
    shared = check_random_state(None)
    state = shared.get_state()
    seeds = as_seed(None), as_seed(None)
    assert seeds[0] != seeds[1]
    shared.set_state(state)
    assert as_seed(None) == seeds[0]


def test_generators_are_used_as_they_are():
    generator = np.random.default_rng(1)
    assert as_generator(generator) is generator
    assert as_seed(np.random.default_rng(1)) == generator.integers(2**31)


@pytest.mark.parametrize("refused", [-1, 2**32])
def test_seeds_out_of_range_are_refused(refused):
    with pytest.raises(ValueError, match="Seed must be between"):
        as_generator(refused)

import numpy as np
import pytest

from safespn.structure_learning.leaf_choice import LeafChoice, guess_leaf

GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "real values": (GENERATOR.normal(size=200), LeafChoice.GAUSSIAN),
    "booleans": (GENERATOR.integers(2, size=200), LeafChoice.CATEGORICAL),
    "codes from one": (GENERATOR.integers(1, 4, size=200), LeafChoice.CATEGORICAL),
    "few rows per code": (GENERATOR.integers(9, size=40), None),
    "counts": (GENERATOR.poisson(8.0, 200), LeafChoice.POISSON),
    "over-dispersed counts": (GENERATOR.negative_binomial(1, 0.05, 200), LeafChoice.GAUSSIAN),
    "years": (GENERATOR.integers(1950, 2020, 200), LeafChoice.GAUSSIAN),
    "ages": (np.clip(GENERATOR.normal(50, 15, 200), 0, None).round(), LeafChoice.GAUSSIAN),
    "negative integers": (GENERATOR.integers(-2, 3, size=200), LeafChoice.GAUSSIAN),
    "sparse codes": (GENERATOR.choice([0, 8], size=200), None),
    "constant": (np.full(200, 1), LeafChoice.GAUSSIAN),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_guesses(name):
    values, expected = COLUMNS[name]
    guess = guess_leaf(values.astype(float), np.ones(len(values)))
    assert guess is expected if expected else guess is not LeafChoice.CATEGORICAL


def test_weights_count_as_rows():
    values = np.array([0.0, 1.0])
    assert guess_leaf(values, np.array([1.0, 1.0])) is not LeafChoice.CATEGORICAL
    assert guess_leaf(values, np.array([20.0, 20.0])) is LeafChoice.CATEGORICAL

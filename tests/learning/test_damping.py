"""Damped M-steps lie between the present model and the full step."""

from __future__ import annotations

import numpy as np
import pytest

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.learning.damping import damped_m_step, model_statistics
from safespn.learning.parameters import Prior, m_step
from tests.networks import random_problem


def arrays(parameters):
    return [np.exp(parameters.log_weights), *parameters.leaves]


@pytest.mark.parametrize("seed", range(6))
def test_statistics_of_the_model_itself_lead_nowhere(seed):
    spn, _, _ = random_problem(seed)
    own = model_statistics(spn._structure, spn._parameters)
    stayed = m_step(spn._structure, spn._parameters, own, Prior())
    for found, before in zip(arrays(stayed), arrays(spn._parameters), strict=True):
        np.testing.assert_allclose(found, before, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_steps_of_any_length_raise_the_likelihood_and_end_in_the_m_step(seed):
    spn, table, _ = random_problem(seed, missing=0.0)
    structure, parameters, prior = spn._structure, spn._parameters, Prior(0.0)
    statistics = passes.statistics(bind(structure, parameters), table)

    def likelihood(size):
        moved = damped_m_step(structure, parameters, statistics, prior, size, len(table))
        return passes.log_likelihood(bind(structure, moved), table).sum()

    values = [likelihood(size) for size in (1e-9, 0.05, 0.3, 1.0)]
    assert values[0] == pytest.approx(passes.log_likelihood(bind(structure, parameters), table).sum(), abs=1e-3)
    assert values == sorted(values)
    full = m_step(structure, parameters, statistics, prior)
    assert values[-1] == passes.log_likelihood(bind(structure, full), table).sum()

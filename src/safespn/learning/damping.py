"""EM steps of any length: the M-step between the present parameters and the full step.

A damped step sees, besides a share of the rows, pseudo-data from the present model itself. The less it sees of the
rows, the closer it stays to the present model, in all leaves and weights at once and whatever their units.
"""

from __future__ import annotations

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.statistics import Statistics
from safespn.learning.parameters import Prior, m_step
from safespn.network.structure import Parameters, Structure


def damped_m_step(
    structure: Structure, parameters: Parameters, statistics: Statistics, prior: Prior, size: float, n_rows: float
) -> Parameters:
    """Make an M-step of a given length.

    Parameters
    ----------
    statistics : Statistics
        Relative to ``parameters``.
    size : float
        Above 0; 1 is the M-step itself, and a small step follows the gradient of its objective.
    n_rows : float
        Total weight of the rows that the statistics are from.
    """
    if size == 1:
        return m_step(structure, parameters, statistics, prior)
    own = model_statistics(structure, parameters).scaled((1 - size) * n_rows)
    return m_step(structure, parameters, statistics.scaled(size) + own, prior.scaled(size))


def model_statistics(structure: Structure, parameters: Parameters) -> Statistics:
    """Expected statistics of one row that is drawn from the model itself."""
    nothing_known = np.full((1, structure.n_columns), np.nan)
    statistics = passes.statistics(bind(structure, parameters), nothing_known, n_jobs=1)
    unit_flow = np.bincount(structure.edge_unit, weights=statistics.edge_flow, minlength=structure.n_units)
    of_groups = []
    for group, values in zip(structure.groups, parameters.leaves, strict=True):
        terms = structure.terms_of(group.kinds[0])
        slot_flow = np.bincount(terms.slot, weights=unit_flow[terms.unit], minlength=terms.n_slots)
        flow = slot_flow[group.slots[0]][:, None]
        of_groups.append([flow * each for each in group.family.expected_statistics(values, values)])
    return statistics.with_groups(structure, of_groups)

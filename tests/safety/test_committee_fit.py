"""The comparison of a committee with that of its supervised members, on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from safespn import SafeSPNClassifier
from safespn.rows.memory import MemoryRows
from safespn.safety.committee_fit import CommitteeComparison
from tests.rows.tables import blobs


@pytest.fixture(scope="module")
def fitted():
    X, _, partly = blobs(120)
    classifier = SafeSPNClassifier(network=["blocks", "components"], random_state=0).fit(X, partly)
    return X, partly, classifier


def comparison_of(fitted, safe, weights=None):
    X, partly, classifier = fitted
    return CommitteeComparison(safe, classifier.supervised_._committee, MemoryRows(X, partly, 2, weights))


def test_it_is_what_the_two_joint_log_likelihoods_say(fitted):
    X, partly, classifier = fitted
    weights = np.linspace(0.5, 2.0, len(X))
    ours, theirs = classifier.joint_log_likelihood(X), classifier.supervised_.joint_log_likelihood(X)
    found = comparison_of(fitted, classifier._committee, weights).assess(0.0)
    each = ours - theirs
    least = np.where(partly >= 0, each[np.arange(len(X)), partly], each.min(axis=1))
    assert found.worst_case == pytest.approx(least @ weights)
    density_gain = classifier.score_samples(X) - classifier.supervised_.score_samples(X)
    assert found.density_gain == pytest.approx(density_gain @ weights)
    assert found.labelled_gain == pytest.approx((least * weights)[partly >= 0].sum())


@pytest.mark.parametrize("has_density", [False, True])
def test_a_member_that_is_not_a_number_is_never_certified(fitted, has_density):
    """Neither in the density nor in the posteriors does a NaN pass as a row that is impossible."""
    committee = fitted[2]._committee
    number = next(
        number for number, member in enumerate(committee.members) if (member.density_weight > 0) == has_density
    )
    member = committee.members[number]
    broken = replace(member.parameters, log_weights=np.full_like(member.parameters.log_weights, np.nan))
    safe = committee.with_parameters(
        [broken if which == number else each.parameters for which, each in enumerate(committee.members)]
    )
    assert np.isnan(comparison_of(fitted, safe).assess(0.0).worst_case)


def test_a_row_that_the_reference_makes_impossible_adds_nothing(fitted):
    """Its gain would be infinite, and hide what the others lose."""
    X, partly, classifier = fitted
    comparison = comparison_of(fitted, classifier._committee)
    (state,) = comparison._states
    gain = state.density_gain.copy()
    free = np.nonzero(partly < 0)[0][:3]
    gain[free] = np.inf
    before = comparison.assess(0.0)
    comparison._states = [replace(state, density_gain=gain)]
    after = comparison.assess(0.0)
    ours, theirs = classifier.joint_log_likelihood(X[free]), classifier.supervised_.joint_log_likelihood(X[free])
    assert after.worst_case == pytest.approx(before.worst_case - (ours - theirs).min(axis=1).sum())
    assert after.density_gain == pytest.approx(before.density_gain - state.density_gain[free].sum())
    assert np.isfinite(after.contrast)

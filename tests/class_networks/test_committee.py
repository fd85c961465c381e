from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from safespn import SPN, Categorical, Gaussian, Product, Sum
from safespn.class_networks.candidate import compile_checked
from safespn.class_networks.committee import Committee, Member, log_average

CELLS = np.array([[0.3, 1.0], [2.0, 0.0], [np.nan, 1.0], [np.nan, np.nan], [-1.0, np.nan]])


def of_class(mean, share):
    return Product([Gaussian(0, mean, 1.0), Categorical(1, [share, 1 - share])])


def member(means, shares, class_weights, **options):
    root = Sum([of_class(*each) for each in zip(means, shares, strict=True)], class_weights)
    structure, parameters = compile_checked(root)
    settings = {"weight": 1.0, "temperature": 1.0, "log_loss": 0.5, "density_weight": 1.0} | options
    return Member("blocks", "by hand", structure=structure, parameters=parameters, **settings)


def two_members():
    first = member([0, 2], [0.3, 0.6], [0.5, 0.5], weight=0.7, density_weight=0.4, temperature=2.0)
    second = member([1, -1], [0.5, 0.1], [0.2, 0.8], weight=0.3, density_weight=0.6)
    return first, second


def joint_by_hand(means, shares, class_weights, cells):
    x, state = cells[:, :1], cells[:, 1:]
    normal = np.where(np.isnan(x), 1, np.exp(-0.5 * (x - np.array(means)) ** 2) / np.sqrt(2 * np.pi))
    table = np.where(np.isnan(state), 1, np.where(state == 0, shares, 1 - np.array(shares)))
    return normal * table * class_weights


def test_posteriors_are_averaged_and_densities_mixed():
    one = joint_by_hand([0, 2], [0.3, 0.6], [0.5, 0.5], CELLS)
    other = joint_by_hand([1, -1], [0.5, 0.1], [0.2, 0.8], CELLS)
    density, posterior = Committee(two_members()).evaluate(CELLS)
    np.testing.assert_allclose(np.exp(density), 0.4 * one.sum(axis=1) + 0.6 * other.sum(axis=1))
    tempered = softmax(np.log(one) / 2, axis=1)
    expected = 0.7 * tempered + 0.3 * other / other.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(posterior), expected)


def test_the_average_is_sharpened_by_its_own_temperature():
    density, average = Committee(two_members()).evaluate(CELLS)
    sharpened = Committee(two_members(), temperature=0.5)
    np.testing.assert_allclose(sharpened.evaluate(CELLS)[0], density)
    squares = np.exp(average) ** 2
    np.testing.assert_allclose(np.exp(sharpened.evaluate(CELLS)[1]), squares / squares.sum(axis=1, keepdims=True))
    kept = sharpened.with_parameters([member.parameters for member in sharpened.members])
    assert kept.temperature == 0.5


def test_the_described_density_has_a_child_per_class():
    committee = Committee(two_members())
    root = committee.describe()
    assert len(root.children) == 2
    np.testing.assert_allclose(SPN(root).log_likelihood(CELLS), committee.evaluate(CELLS)[0], atol=1e-12)


def test_a_member_without_a_share_in_the_density_still_votes():
    first, second = two_members()
    committee = Committee((replace(first, density_weight=1.0), replace(second, density_weight=0.0)))
    np.testing.assert_allclose(committee.evaluate(CELLS)[0], committee.members[0].evaluate(CELLS)[0])
    np.testing.assert_allclose(committee.evaluate(CELLS)[1], Committee((first, second)).evaluate(CELLS)[1])


def test_posteriors_are_drawn_back_to_the_reference():
    first, second = two_members()
    alone = Committee((replace(first, weight=1.0, density_weight=1.0),))
    reference = Committee((replace(second, weight=1.0, density_weight=1.0),))
    drawn = replace(alone, reference=reference, drawn_back=0.25)
    expected = 0.75 * np.exp(alone.evaluate(CELLS)[1]) + 0.25 * np.exp(reference.evaluate(CELLS)[1])
    np.testing.assert_allclose(np.exp(drawn.evaluate(CELLS)[1]), expected)
    np.testing.assert_allclose(drawn.evaluate(CELLS)[0], alone.evaluate(CELLS)[0])
    ours, theirs = np.log([[0.9, 0.1]]), np.log([[0.2, 0.8]])
    assert log_average(ours, theirs, 0.0) is ours
    assert log_average(ours, theirs, 1.0) is theirs


def test_trees_vote_with_one_posterior_each():
    """However much denser a row is under one tree than under another."""
    trees = [[of_class(0, 0.3), of_class(50, 0.6)], [of_class(2, 0.6), of_class(50, 0.9)]]
    structure, parameters = compile_checked(Sum([Sum(each, [0.5, 0.5]) for each in trees], [0.5, 0.5]))
    voting = Member("forest", "", 1.0, 1.0, 0.5, 1.0, structure, parameters, votes=True)
    cells = CELLS[:2]
    near = joint_by_hand([0, 2], [0.3, 0.6], [0.25, 0.25], cells)
    # The second tree's densities underflow in the linear domain; its class tables alone tell the classes apart.
    far = np.where(cells[:, 1:] == 0, [0.6, 0.9], [0.4, 0.1])
    expected = (near / near.sum(axis=1, keepdims=True) + far / far.sum(axis=1, keepdims=True)) / 2
    density, posterior = voting.evaluate(cells)
    np.testing.assert_allclose(np.exp(posterior), expected, rtol=1e-9)
    np.testing.assert_allclose(density, SPN(Committee((voting,)).describe()).log_likelihood(cells))


def test_a_row_that_is_impossible_has_the_class_proportions():
    root = Sum([Categorical(0, [1.0, 0.0]), Categorical(0, [1.0, 0.0])], [0.3, 0.7])
    structure, parameters = compile_checked(root)
    committee = Committee((Member("blocks", "", 1.0, 1.0, 0.5, 1.0, structure, parameters),))
    density, posterior = committee.evaluate(np.array([[1.0]]))
    assert density[0] == -np.inf
    np.testing.assert_allclose(np.exp(posterior), [[0.3, 0.7]])
    assert (committee.joint(np.array([[1.0]])) == -np.inf).all()


def test_members_travel_without_their_bound_networks():
    first, _ = two_members()
    first.evaluate(CELLS)
    again = pickle.loads(pickle.dumps(first))
    assert "_network" not in vars(again)
    np.testing.assert_array_equal(again.evaluate(CELLS)[1], first.evaluate(CELLS)[1])


def test_a_committee_says_what_it_consists_of():
    first, second = two_members()
    assert str(Committee((first, replace(second, family="forest")))) == "2 networks: 70 % blocks, 30 % forest"
    assert str(Committee((first,))) == "blocks (by hand)"
    assert "weight 0.70, temperature 2.00" in repr(first)


@pytest.mark.parametrize("number", [0, 1])
def test_other_parameters_keep_weights_and_temperatures(number):
    committee = Committee(two_members())
    swapped = committee.with_parameters([each.parameters for each in committee.members[::-1]])
    assert swapped.members[number].temperature == committee.members[number].temperature
    assert swapped.members[number].parameters is committee.members[1 - number].parameters

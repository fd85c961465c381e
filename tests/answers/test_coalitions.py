"""Posteriors given subsets of cells: the short way of forests against passes over rows with missing cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import safespn
from safespn import SafeSPNClassifier
from safespn.answers.coalitions import CommitteePosteriors, RowPosteriors
from safespn.answers.gaussians import chains
from safespn.answers.votes import Votes, votes_of
from safespn.class_networks.committee import Committee

pd = pytest.importorskip("pandas", reason="needs the extra [cli]")


def problem(n_classes=3, n_rows=90, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    table = pd.DataFrame(
        {
            "age": rng.normal(50 + 10 * y, 8),
            "dose": rng.normal(0, 1, n_rows),
            "site": pd.Categorical(np.array(["left", "right", "both"])[(y + rng.integers(2, size=n_rows)) % 3]),
            "size": rng.normal(y, 1),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, "dose"] = np.nan
    known = np.where(np.arange(n_rows) < 45, y, -1)
    return table, known


@pytest.fixture(scope="module", params=[("blocks", "forest"), "auto"], ids=str)
def fitted(request):
    table, known = problem()
    return SafeSPNClassifier(network=request.param, random_state=0).fit(table, known), table


def subsets_of(n_columns, n=20, seed=1):
    drawn = np.random.default_rng(seed).random((n, n_columns)) < 0.5
    drawn[0], drawn[1] = False, True
    return drawn


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_subsets_have_the_posteriors_of_rows_with_gaps(fitted, n_jobs, monkeypatch):
    monkeypatch.setattr("safespn.answers.votes.FEWEST_VOTES", 0)
    clf, table = fitted
    cells = clf._cells(table)
    cells[3] = np.nan
    subsets = subsets_of(cells.shape[1])
    expected = RowPosteriors(clf._log_posteriors)(cells, subsets)
    found = CommitteePosteriors(clf._committee, n_jobs)(cells, subsets)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.exp(found).sum(axis=2), 1, atol=1e-9)
    with safespn.use_engine("numpy"):
        np.testing.assert_allclose(CommitteePosteriors(clf._committee)(cells, subsets), expected, rtol=0, atol=1e-9)


def test_forests_go_the_short_way(fitted, monkeypatch):
    monkeypatch.setattr("safespn.answers.votes.FEWEST_VOTES", 0)
    clf, table = fitted
    forest = next(member for member in clf._committee.members if member.family == "forest")
    votes = votes_of(forest, None)
    assert isinstance(votes, Votes)
    cells, rows = clf._cells(table), []
    evaluate = type(forest).evaluate
    monkeypatch.setattr(
        type(forest), "evaluate", lambda self, table, *_: rows.append(len(table)) or evaluate(self, table)
    )
    votes(cells, subsets_of(cells.shape[1]))
    assert rows == [len(cells)]


def test_rows_that_no_box_holds_and_tiny_boxes_are_left_to_a_pass(fitted, monkeypatch):
    monkeypatch.setattr("safespn.answers.votes.FEWEST_VOTES", 0)
    clf, table = fitted
    cells = clf._cells(table)[:5]
    cells[1, 0], cells[2, 3] = 1e160, -40.0
    subsets = subsets_of(cells.shape[1])
    committee = Committee(clf._committee.members, reference=clf._committee, drawn_back=0.25)
    expected = RowPosteriors(lambda known: committee.evaluate(known)[1])(cells, subsets)
    np.testing.assert_allclose(CommitteePosteriors(committee)(cells, subsets), expected, rtol=0, atol=1e-9)
    monkeypatch.setattr("safespn.answers.votes_kernel.SMALLEST_TOTAL", 1e300)
    np.testing.assert_allclose(CommitteePosteriors(committee)(cells, subsets), expected, rtol=0, atol=1e-9)


def test_members_that_are_no_forest_have_no_votes(fitted):
    clf, _ = fitted
    for member in clf._committee.members:
        assert (votes_of(member, None) is None) == (member.family != "forest")
        assert votes_of(replace(member, votes=False), None) is None


@pytest.mark.parametrize("n_patterns", [1, 3, 20])
def test_gaussian_leaves_by_chains_of_subsets(n_patterns):
    rng = np.random.default_rng(n_patterns)
    X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6))
    y = (X[:, 0] > 0).astype(int)
    clf = SafeSPNClassifier(network="blocks", random_state=0).fit(X, np.where(np.arange(80) < 30, y, -1))
    missing = rng.random((n_patterns, 6)) < 0.3
    missing[0] = False
    cells = np.where(missing[np.arange(40) % n_patterns], np.nan, X[:40])
    subsets = subsets_of(6)
    subsets[5:11] = np.tril(np.ones((6, 6), dtype=bool))
    expected = RowPosteriors(clf._log_posteriors)(cells, subsets)
    np.testing.assert_allclose(CommitteePosteriors(clf._committee)(cells, subsets), expected, rtol=0, atol=1e-9)


def test_chains_are_cut_where_a_subset_is_not_within_the_next():
    subsets = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 1], [1, 0]], dtype=bool)
    assert [chain.tolist() for chain in chains(subsets)] == [[0, 1, 2], [3, 4], [5]]

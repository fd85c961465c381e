"""What a classifier of every family, and of several, must obey."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp

from safespn import SafeSPNClassifier
from safespn.class_networks import forest
from safespn.class_networks.families import FAMILIES

pd = pytest.importorskip("pandas", reason="needs the extra [cli]")

NETWORKS = [*FAMILIES, "auto", ("blocks", "forest")]
networks = pytest.mark.parametrize("network", NETWORKS, ids=str)


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES_PER_FOLD", 2)


def rows(n_rows=90, seed=0):
    """Two columns of numbers and one of three colours, gaps in all, and three classes of which a third is known."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % 3
    numbers = rng.normal(size=(n_rows, 2)) + 2.5 * np.column_stack([codes, codes == 1])
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    colours = np.array(["red", "green", "blue"])[(codes + (rng.random(n_rows) < 0.3)) % 3].astype(object)
    colours[rng.random(n_rows) < 0.1] = None
    frame = pd.DataFrame({"length": numbers[:, 0], "width": numbers[:, 1], "colour": colours})
    return frame, np.where(np.arange(n_rows) // 3 % 3 == 0, codes, -1)


X, Y = rows()


def fit(network, X=X, y=Y, **options):
    network = list(network) if isinstance(network, tuple) else network
    return SafeSPNClassifier(network=network, max_iter=5, random_state=0, n_jobs=1).fit(X, y, **options)


@cache
def fitted(network):
    return fit(network)


@networks
def test_the_joint_is_density_times_posterior(network):
    clf = fitted(network)
    joint = clf.joint_log_likelihood(X)
    np.testing.assert_allclose(joint, clf.score_samples(X)[:, None] + clf.predict_log_proba(X), atol=1e-10)
    np.testing.assert_allclose(logsumexp(clf.predict_log_proba(X), axis=1), 0, atol=1e-10)


@networks
def test_the_density_is_one_network_with_a_child_per_class(network):
    clf = fitted(network)
    table, _ = clf._check_table(X, reset=False)
    np.testing.assert_allclose(clf.spn_.log_likelihood(table), clf.score_samples(X), rtol=1e-9)
    assert len(clf.spn_.root.children) == 3


@networks
def test_the_worst_case_is_recomputed_from_two_joint_densities(network):
    clf = fitted(network)
    gain = clf.joint_log_likelihood(X) - clf.supervised_.joint_log_likelihood(X)
    of_label = np.where(Y >= 0, gain[np.arange(len(Y)), Y], gain.min(axis=1))
    report = clf.safety_
    assert report.worst_case == pytest.approx(of_label.sum(), abs=1e-6)
    assert report.worst_case >= -1e-9
    assert report.certified
    assert report.worst_case == pytest.approx(report.density_gain - report.posterior_loss, abs=1e-9)
    density_gain = clf.score_samples(X) - clf.supervised_.score_samples(X)
    assert report.density_gain == pytest.approx(density_gain.sum(), abs=1e-6)


@networks
def test_members_are_listed(network):
    clf = fitted(network)
    wanted = ("blocks", "components", "forest") if network == "auto" else np.atleast_1d(network)
    assert {member.family for member in clf.members_} <= set(wanted)
    assert sum(member.weight for member in clf.members_) == pytest.approx(1)
    assert sum(member.density_weight for member in clf.members_) == pytest.approx(1)
    assert all(member.temperature > 0 and member.log_loss > 0 for member in clf.members_)
    if isinstance(network, str) and network != "auto":
        assert len(clf.members_) == 1
        assert clf.members_[0].temperature == 1
    assert str(clf._committee) in str(clf.safety_)


@networks
def test_save_and_load(network, tmp_path):
    clf = fitted(network)
    clf.save(tmp_path / "model.safespn")
    other = SafeSPNClassifier.load(tmp_path / "model.safespn")
    np.testing.assert_allclose(other.joint_log_likelihood(X), clf.joint_log_likelihood(X), rtol=1e-12)
    np.testing.assert_allclose(other.supervised_.predict_proba(X), clf.supervised_.predict_proba(X), rtol=1e-10)
    assert list(map(repr, other.members_)) == list(map(repr, clf.members_))


@networks
def test_the_order_of_rows_changes_nothing(network):
    order = np.random.default_rng(1).permutation(len(X))
    other = fit(network, X.iloc[order].reset_index(drop=True), Y[order])
    np.testing.assert_allclose(other.predict_proba(X), fitted(network).predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(other.score_samples(X), fitted(network).score_samples(X), atol=1e-5)


@networks
def test_a_row_of_weight_two_is_that_row_twice(network):
    weights = 1 + (np.arange(len(X)) % 4 == 0)
    twice = np.repeat(np.arange(len(X)), weights)
    weighted = fit(network, sample_weight=weights.astype(float))
    repeated = fit(network, X.iloc[twice].reset_index(drop=True), Y[twice])
    np.testing.assert_allclose(repeated.predict_proba(X), weighted.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(repeated.score_samples(X), weighted.score_samples(X), atol=1e-5)


def test_rows_of_weight_zero_do_not_count():
    noise = X.assign(length=X["length"] + 50)
    both = pd.concat([X, noise], ignore_index=True)
    clf = fit("auto", both, np.append(Y, np.roll(Y, 1)), sample_weight=np.repeat([1.0, 0.0], len(X)))
    np.testing.assert_allclose(clf.predict_proba(X), fitted("auto").predict_proba(X), atol=1e-6)


@networks
def test_draws_follow_the_joint(network):
    clf = fitted(network)
    cells, labels = clf.sample(4000, random_state=1)
    posterior = np.exp(clf._committee.evaluate(cells)[1])
    np.testing.assert_allclose((labels[:, None] == clf.classes_).mean(axis=0), posterior.mean(axis=0), atol=0.03)
    # The mean log density of draws and the mean of the first column agree with those of the network itself.
    again = clf.spn_.sample(4000, random_state=2)
    spread = cells[:, 0].std() / np.sqrt(len(cells))
    assert cells[:, 0].mean() == pytest.approx(again[:, 0].mean(), abs=6 * spread)
    for code, label in enumerate(clf.classes_):
        of_class = cells[labels == label, 0].mean()
        expected = np.average(again[:, 0], weights=np.exp(clf._committee.evaluate(again)[1][:, code]))
        assert of_class == pytest.approx(expected, abs=8 * spread)


@pytest.mark.slow
def test_dask_equals_memory():
    array = pytest.importorskip("dask.array")
    numbers = X[["length", "width"]].to_numpy()
    in_memory = fit("auto", numbers)
    lazy = fit("auto", array.from_array(numbers, chunks=(30, 2)), array.from_array(Y, chunks=30))
    np.testing.assert_allclose(lazy.predict_proba(numbers), in_memory.predict_proba(numbers), atol=1e-6)
    assert lazy.safety_.worst_case == pytest.approx(in_memory.safety_.worst_case, abs=1e-4)
    np.testing.assert_allclose(np.asarray(lazy.soft_labels_), in_memory.soft_labels_, atol=1e-6)

"""Tables that leave little to learn from: what the classifier makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from safespn import FewLabelsWarning, IgnoredColumnWarning, SafeSPNClassifier
from safespn.class_networks import forest

RNG = np.random.default_rng(0)
N_ROWS = 80
CODES = np.arange(N_ROWS) % 2
NUMBERS = RNG.normal(size=(N_ROWS, 3)) + 3 * CODES[:, None]


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES_PER_FOLD", 2)


def labels(per_class, codes=CODES):
    """Codes of the first rows of each class, -1 for the others."""
    result = np.full(len(codes), -1)
    for code, count in enumerate(per_class):
        rows = np.nonzero(codes == code)[0][:count]
        result[rows] = code
    return result


def fit(X, y, network="auto", **options):
    clf = SafeSPNClassifier(network=network, max_iter=3, random_state=0, n_jobs=1).fit(X, y, **options)
    joint = clf.joint_log_likelihood(X)
    assert np.isfinite(clf.predict_log_proba(X)).all()
    assert np.isfinite(logsumexp(joint, axis=1)).all()
    assert clf.safety_.certified
    return clf


@pytest.mark.filterwarnings("error::safespn.FewLabelsWarning")
def test_a_class_with_two_labelled_rows_is_weighed_like_any_other():
    """Each fold leaves out one of the two at most."""
    clf = fit(NUMBERS, labels([10, 2]))
    assert clf.score(NUMBERS, CODES) > 0.9
    assert np.isfinite([member.log_loss for member in clf.members_]).all()


def test_one_labelled_row_per_class_gives_equal_weights_and_says_so():
    with pytest.warns(FewLabelsWarning, match="one labelled row per class.*equal weights"):
        clf = fit(NUMBERS, labels([1, 1]))
    families = {member.family for member in clf.members_}
    for family in families:
        of_family = [member.weight for member in clf.members_ if member.family == family]
        assert max(of_family) == pytest.approx(min(of_family)) or family == "components"
    assert all(member.temperature == 1 and np.isnan(member.log_loss) for member in clf.members_)
    assert clf.score(NUMBERS, CODES) > 0.9


def test_one_labelled_row_per_class_is_enough_for_a_single_network():
    with pytest.warns(FewLabelsWarning):
        assert fit(NUMBERS, labels([1, 1]), "blocks").score(NUMBERS, CODES) > 0.9


def test_more_classes_than_components():
    codes = np.arange(N_ROWS) % 10
    cells = RNG.normal(scale=0.3, size=(N_ROWS, 2)) + 2.0 * np.column_stack([codes, codes % 3])
    # Eight components at most, with ten classes: some share one, and still it is twice as good as chance.
    assert fit(cells, labels([4] * 10, codes), "components").score(cells, codes) > 0.2
    assert fit(cells, labels([4] * 10, codes)).score(cells, codes) > 0.8


@pytest.mark.parametrize("network", ["auto", "deep"])
def test_all_columns_categorical(network):
    pd = pytest.importorskip("pandas", reason="needs the extra [cli]")
    frame = pd.DataFrame({name: np.where(RNG.random(N_ROWS) < 0.2, "c", np.array(["a", "b"])[CODES]) for name in "xyz"})
    assert fit(frame, labels([8, 8]), network).score(frame, CODES) > 0.85


@pytest.mark.parametrize("network", ["auto", "deep"])
def test_one_column(network):
    assert fit(NUMBERS[:, :1], labels([8, 8]), network).score(NUMBERS[:, :1], CODES) > 0.85


@pytest.mark.filterwarnings("ignore::safespn.DegenerateColumnWarning")
@pytest.mark.parametrize("network", ["auto", "deep"])
def test_constant_and_duplicated_columns(network):
    cells = np.column_stack([NUMBERS, NUMBERS[:, 0], np.full(N_ROWS, 7.0)])
    clf = fit(cells, labels([8, 8]), network)
    assert clf.score(cells, CODES) > 0.85
    # A constant column tells classes apart no more than its absence.
    assert np.abs(clf.predict_proba(cells) - clf.predict_proba(np.where(cells == 7, np.nan, cells))).max() < 1e-6


@pytest.mark.filterwarnings("ignore::safespn.DegenerateColumnWarning")
@pytest.mark.parametrize("network", ["auto", "deep"])
def test_columns_missing_for_every_labelled_row(network):
    """They are learned from the unlabelled rows, and change predictions by correlation only."""
    pd = pytest.importorskip("pandas", reason="needs the extra [cli]")
    y = labels([8, 8])
    cells = NUMBERS.copy()
    cells[y >= 0, 2] = np.nan
    colours = np.where(y >= 0, None, np.array(["a", "b"], dtype=object)[CODES])
    frame = pd.DataFrame(cells).assign(colour=colours)
    frame.columns = frame.columns.astype(str)
    assert fit(frame, y, network).score(frame, CODES) > 0.85


@pytest.mark.filterwarnings("ignore::safespn.DegenerateColumnWarning")
def test_a_column_that_is_missing_everywhere():
    cells = np.column_stack([NUMBERS, np.full(N_ROWS, np.nan)])
    assert fit(cells, labels([8, 8])).score(cells, CODES) > 0.85


@pytest.mark.slow
def test_a_category_with_a_thousand_levels():
    pd = pytest.importorskip("pandas", reason="needs the extra [cli]")
    n_rows = 1000
    codes = np.arange(n_rows) % 2
    frame = pd.DataFrame({"id": np.arange(n_rows).astype(str), "x": np.random.default_rng(1).normal(3.0 * codes)})
    y = labels([10, 10], codes)
    with pytest.warns(IgnoredColumnWarning, match="'id'"):
        assert fit(frame, y).score(frame, codes) > 0.85
    assert fit(frame, y, column_types={"id": "categorical"}).score(frame, codes) > 0.85


def test_a_class_whose_labelled_rows_have_weight_zero_is_refused():
    weights = np.where(labels([8, 8]) == 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="weight zero"):
        fit(NUMBERS, labels([8, 8]), sample_weight=weights)


def test_equal_rows_of_different_classes():
    """No family can tell them apart: the posterior of the shared row is near one half."""
    cells = np.concatenate([NUMBERS, np.full((20, 3), 1.5)])
    y = np.concatenate([labels([8, 8]), np.arange(20) % 2])
    clf = fit(cells, y)
    assert clf.predict_proba(cells[-1:])[0, 0] == pytest.approx(0.5, abs=0.25)


@pytest.mark.slow
def test_many_more_columns_than_rows():
    generator = np.random.default_rng(0)
    classes = np.arange(60) % 2
    X = generator.normal(size=(60, 2_000)) + 2.0 * classes[:, None] * (np.arange(2_000) < 50)
    clf = SafeSPNClassifier(random_state=0).fit(X, np.where(np.arange(60) < 20, classes, -1))
    assert clf.safety_.certified
    assert np.isfinite(clf.score_samples(X)).all()
    assert (clf.predict(X[20:]) == classes[20:]).mean() > 0.6

"""Audits: limits against brute force over all populations, coverage in simulations, and bad input."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import hypergeom

from safespn import AuditWarning
from safespn.answers.audit import audit_predictions, draw_disagreeing
from safespn.answers.limits import _largest_tail, _tail, count_limits, difference_limits


def tail_by_enumeration(ones, others, neither, n_drawn, t):
    total = comb(ones + others + neither, n_drawn)
    return (
        sum(
            comb(ones, a) * comb(others, b) * comb(neither, n_drawn - a - b)
            for a, b in product(range(n_drawn + 1), repeat=2)
            if a + b <= n_drawn and a - b >= t
        )
        / total
    )


@pytest.mark.parametrize(("population", "n_drawn"), [(7, 3), (9, 9), (12, 5)])
def test_tails_and_limits_are_those_of_all_populations(population, n_drawn):
    populations = [(one, other) for one in range(population + 1) for other in range(population + 1 - one)]
    for t in range(-n_drawn, n_drawn + 1):
        tails = {
            (one, other): tail_by_enumeration(one, other, population - one - other, n_drawn, t)
            for one, other in populations
        }
        ones, others = np.array(list(tails)).T
        np.testing.assert_allclose(_tail(population, n_drawn, ones, others, t), list(tails.values()), atol=1e-12)
        for right in range(max(t, 0), (n_drawn + t) // 2 + 1):
            wrong = right - t
            least, most = count_limits(population, n_drawn, right + wrong, 0.005)
            unseen = population - n_drawn
            possible = [
                one - other
                for (one, other), tail in tails.items()
                if abs(one - other - t) <= unseen and least <= one + other <= most and tail > 0.0225
            ]
            low, _ = difference_limits(population, n_drawn, right, wrong, alpha=0.05, one_is_right=False)
            assert low == min(possible)


@pytest.mark.parametrize(("population", "n_drawn"), [(1, 1), (9, 4), (12, 12), (40, 20), (300, 20)])
def test_limits_of_a_count_cover_it_and_are_no_wider_than_those_of_two_tails(population, n_drawn):
    limits = [count_limits(population, n_drawn, seen, 0.05) for seen in range(n_drawn + 1)]
    for count in range(population + 1):
        chance = hypergeom(population, count, n_drawn)
        covered = sum(chance.pmf(seen) for seen, (low, high) in enumerate(limits) if low <= count <= high)
        assert covered >= 0.95 - 1e-9
        for seen, (low, high) in enumerate(limits):
            if low <= count <= high:
                assert min(chance.sf(seen - 1), chance.cdf(seen)) > 0.025 - 1e-9


def test_rows_on_which_neither_model_is_right_make_the_interval_narrower():
    widths = []
    for neither in (0, 10, 20):
        low, high = difference_limits(
            1000, 20, (20 - neither) // 2, (20 - neither) // 2, alpha=0.05, one_is_right=False
        )
        widths.append(high - low)
    assert widths[2] < 0.5 * widths[0]
    assert widths[1] < widths[0]


def test_limits_are_a_mirror_image_when_the_models_are_exchanged():
    for one_is_right, counts in ((False, (4, 9)), (True, (8, 12))):
        low, high = difference_limits(60, 20, *counts, alpha=0.05, one_is_right=one_is_right)
        assert (-high, -low) == difference_limits(60, 20, *counts[::-1], alpha=0.05, one_is_right=one_is_right)
        assert low <= 60 * (counts[0] - counts[1]) / 20 <= high


def test_large_populations_are_bounded_from_above():
    exact = max(_tail(3000, 10, np.arange(100, 1551), np.arange(100, 1551) - 100, 5))
    bound = _largest_tail(3000, 10, 100, 5, (0, 3000))
    assert exact <= bound <= 1.05 * exact


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_disagreeing", [1, 5, 30, 200])
def test_intervals_cover_the_true_difference(n_classes, n_disagreeing):
    generator = np.random.default_rng(n_disagreeing)
    n_audits, n_covered, known = 500, 0, {}
    for _ in range(n_audits):
        share = generator.dirichlet([1, 1, 1 if n_classes > 2 else 1e-9])
        ones, others, _ = generator.multinomial(n_disagreeing, share / share.sum())
        if n_classes == 2:
            others = n_disagreeing - ones
        n_drawn = min(20, n_disagreeing)
        counts = (ones, others, n_disagreeing - ones - others)
        right, wrong, _ = generator.multivariate_hypergeometric(counts, n_drawn).tolist()
        if (right, wrong) not in known:
            known[right, wrong] = difference_limits(
                n_disagreeing, n_drawn, right, wrong, alpha=0.05, one_is_right=n_classes == 2
            )
        low, high = known[right, wrong]
        n_covered += low <= ones - others <= high
    assert n_covered >= 0.95 * n_audits


def predictions(n_classes=3, n_rows=400, seed=0):
    generator = np.random.default_rng(seed)
    truth, ours = generator.integers(n_classes, size=(2, n_rows))
    theirs = np.where(generator.random(n_rows) < 0.8, ours, generator.integers(n_classes, size=n_rows))
    return truth, ours, theirs


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_complete_audit_is_exact(n_classes):
    truth, ours, theirs = predictions(n_classes)
    rows = np.flatnonzero(ours != theirs)
    audit = audit_predictions(ours, theirs, rows, truth[rows], n_classes)
    expected = (ours == truth).mean() - (theirs == truth).mean()
    assert audit.difference == pytest.approx(expected)
    assert audit.interval == pytest.approx((expected, expected))
    assert "exact" in str(audit)


def test_more_rows_are_added_to_those_drawn_before():
    _, ours, theirs = predictions()
    first, second = (draw_disagreeing(ours, theirs, n, np.random.default_rng(3)) for n in (20, 25))
    np.testing.assert_array_equal(first, second[:20])
    assert len(set(second)) == 25
    assert (ours[second] != theirs[second]).all()


def test_later_looks_are_wider_and_their_error_rates_add_up():
    truth, ours, theirs = predictions()
    rows = draw_disagreeing(ours, theirs, 20, np.random.default_rng(0))
    audits = [audit_predictions(ours, theirs, rows, truth[rows], 3, look=look) for look in (None, 1, 2, 9)]
    widths = [high - low for low, high in (audit.interval for audit in audits)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_looks_after_every_batch_keep_the_confidence_together(n_classes):
    generator = np.random.default_rng(n_classes)
    n_disagreeing, n_rows, n_audits, n_failed = 60, 400, 200, 0
    ours, theirs = np.zeros(n_rows, dtype=int), np.zeros(n_rows, dtype=int)
    theirs[:n_disagreeing] = 1
    for _ in range(n_audits):
        share = generator.dirichlet(np.ones(min(n_classes, 3)))
        truth = np.zeros(n_rows, dtype=int)
        truth[:n_disagreeing] = generator.choice(len(share), n_disagreeing, p=share)
        difference = (ours == truth).mean() - (theirs == truth).mean()
        rows = draw_disagreeing(ours, theirs, 20, generator)
        intervals = [
            audit_predictions(ours, theirs, rows[: 5 * look], truth[rows[: 5 * look]], n_classes, 0.8, look).interval
            for look in range(1, 5)
        ]
        n_failed += any(not low - 1e-12 <= difference <= high + 1e-12 for low, high in intervals)
    assert n_failed <= 0.2 * n_audits


def test_models_that_never_disagree_need_no_audit():
    _, ours, _ = predictions()
    with pytest.warns(AuditWarning, match="no audit is needed"):
        rows = draw_disagreeing(ours, ours, 10, np.random.default_rng(0))
    assert len(rows) == 0
    audit = audit_predictions(ours, ours, rows, rows, 3)
    assert (audit.difference, audit.interval, audit.n_disagreeing) == (0.0, (0.0, 0.0), 0)
    assert "no audit is needed" in str(audit)


def test_fewer_disagreements_than_asked_for():
    _, ours, theirs = predictions()
    with pytest.warns(AuditWarning, match="these are all"):
        rows = draw_disagreeing(ours, theirs, 10_000, np.random.default_rng(0))
    assert sorted(rows) == np.flatnonzero(ours != theirs).tolist()


@pytest.mark.parametrize(
    ("rows", "words"),
    [([], "audit_rows"), ([10_000], "no row 10000"), ([-1], "no row -1"), (["same", "same"], "twice")],
)
def test_rows_that_cannot_have_been_drawn(rows, words):
    _, ours, theirs = predictions()
    given = [int(np.argmax(ours != theirs)) if row == "same" else row for row in rows]
    with pytest.raises(ValueError, match=words):
        audit_predictions(ours, theirs, np.array(given, dtype=int), np.zeros(len(given), dtype=int), 3)


def test_rows_on_which_the_models_agree_were_not_drawn():
    _, ours, theirs = predictions()
    row = int(np.argmax(ours == theirs))
    with pytest.raises(ValueError, match=f"row {row} was not drawn"):
        audit_predictions(ours, theirs, np.array([row]), np.array([0]), 3)


@pytest.mark.parametrize("options", [{"confidence": 1.0}, {"confidence": 0.0}, {"look": 0}])
def test_impossible_confidences_and_looks(options):
    truth, ours, theirs = predictions()
    rows = draw_disagreeing(ours, theirs, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match=next(iter(options))):
        audit_predictions(ours, theirs, rows, truth[rows], 3, **options)

"""The certificate is exact: nothing a labelling can do goes below it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from safespn import SPN, Gaussian, Sum
from safespn.engine import backends, passes
from safespn.engine.bound import bind
from safespn.foundation.posteriors import gains
from safespn.foundation.simplex import dirichlet
from safespn.network.structure import Parameters
from safespn.rows.blocks import RowBlock
from safespn.safety.certified import KEPT_SHARE
from safespn.safety.certified_em import CertifiedEM
from safespn.safety.contrast import contrast, soft_label_gradient, worst_gains
from safespn.safety.mcp import fit_mcp
from safespn.safety.method import Method
from safespn.safety.problem import Comparison, SafeFit
from safespn.safety.proportions import (
    fit_proportion_certified,
    log_posteriors,
    proportion_interval,
    restricted_worst_case,
    worst_soft_labels,
)
from safespn.safety.tasks import RowState, assess
from tests.safety.problems import fit_certified, supervised_problem


def contrast_at(comparison, parameters, soft_labels):
    return comparison.assess(parameters, comparison.at(soft_labels)).contrast


def test_worst_case_by_hand(backend):
    """Two labelled rows gain 1 and -0.5; the unlabelled ones lose at most 2 and gain at least 0.25."""
    joint = np.array([[3.0, -2.0], [1.0, -7.0], [0.25, 0.5], [9.0, -0.5]])
    codes = np.array([-1, 0, -1, 1])
    state = RowState(np.zeros((4, 2)), np.full((4, 2), 0.5))
    found = assess(RowBlock(joint, codes), state, joint)
    assert found.worst_case == pytest.approx(1 - 0.5 - 2 + 0.25)
    assert found.labelled_gain == pytest.approx(0.5)
    weighted = assess(RowBlock(joint, codes, np.array([1, 1, 4, 2.0])), state, joint)
    assert weighted.worst_case == pytest.approx(1 - 1 - 2 + 1)
    assert weighted.labelled_gain == pytest.approx(0)


def test_impossible_classes():
    """Impossible under both: skipped. Under the model only: no certificate. Under the reference only: no loss."""
    joint, reference = np.array([[-np.inf, -1.0]]), np.array([[-np.inf, -2.0]])
    assert gains(joint, reference).min(axis=1) == 1
    assert gains(joint, np.array([[-3.0, -2.0]])).min() == -np.inf
    assert gains(np.array([[-3.0, -1.0]]), reference).min(axis=1) == 1
    nowhere = np.full((1, 2), -np.inf)
    assert worst_gains(gains(nowhere, nowhere)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_no_soft_labels_go_below_the_worst_case(seed):
    """A dense grid for one row and random soft labels for all of them."""
    rng = np.random.default_rng(seed)
    joint, reference = rng.normal(0, 3, (8, 2)), rng.normal(0, 3, (8, 2))
    bound = gains(joint, reference).min(axis=1)
    grid = np.linspace(0, 1, 501)
    for row in range(8):
        values = [contrast(joint[[row]], reference[[row]], np.array([[q, 1 - q]]))[0] for q in grid]
        assert min(values) == pytest.approx(bound[row], abs=1e-9)
    for _ in range(50):
        assert contrast(joint, reference, rng.dirichlet([0.3, 0.3], 8)).sum() >= bound.sum() - 1e-9


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("options", [{}, {"n_classes": 3}, {"leaf": "block"}, {"weights": True}])
def test_certified_fits_hold_for_the_true_and_for_random_labels(seed, options):
    problem, supervised, truth, rng = supervised_problem(seed, **options)
    fit = fit_certified(CertifiedEM(problem, supervised))
    comparison = Comparison(problem, supervised)
    bound = comparison.assess(fit.parameters).worst_case
    assert bound >= 0
    assert fit.fallback == (fit.parameters is supervised)
    np.testing.assert_allclose(problem.soft_labels(fit.states).sum(axis=1), 1)
    assert contrast_at(comparison, fit.parameters, np.eye(problem.n_classes)[truth]) >= bound - 1e-9
    for _ in range(20):
        soft_labels = rng.dirichlet(np.full(problem.n_classes, 0.5), problem.n_unlabelled)
        assert contrast_at(comparison, fit.parameters, soft_labels) >= bound - 1e-9


def test_most_certified_fits_are_not_fallbacks():
    fits = [fit_certified(CertifiedEM(*supervised_problem(seed)[:2])) for seed in range(12)]
    assert sum(fit.fallback for fit in fits) <= 2


@pytest.mark.parametrize("options", [{}, {"n_classes": 3}, {"leaf": "block"}, {"weights": True}])
def test_fits_are_certified_after_few_passes_and_never_fall_back(options):
    """Three passes are enough for a positive worst case; of a longer fit hardly anything that was won is lost again."""
    positive = []
    for seed in range(8):
        problem, supervised, *_ = supervised_problem(seed, **options)
        em = CertifiedEM(problem, supervised)
        fit = fit_certified(em, max_iter=25)
        values = [entry["worst_case"] for entry in em.history]
        positive.append(max(values[:3]) > 0)
        assert len(values) <= 25
        found = Comparison(problem, supervised).assess(fit.parameters).worst_case
        assert found >= KEPT_SHARE * max(0.0, *values) - 1e-9
    assert sum(positive) >= 7


def test_a_broken_model_is_refused():
    """A model that is worse for one labelling has a negative worst case, whatever its likelihood."""
    problem, supervised, *_ = supervised_problem(0)
    comparison = Comparison(problem, supervised)
    moved = tuple(values.copy() for values in supervised.leaves)
    moved[0][:2, 0] += 5.0
    broken = Parameters(supervised.log_weights, moved)
    assert comparison.assess(broken).worst_case < 0
    assert comparison.assess(supervised).worst_case == 0


def test_pessimism_of_zero_is_plain_em():
    """Steps with the model's own soft labels are EM with unknown classes."""
    problem, supervised, *_ = supervised_problem(3)
    fit = fit_certified(CertifiedEM(problem, supervised), pessimism=0.0, max_iter=200, tol=0)
    rows, values = problem.rows.whole, []
    for parameters in (supervised, fit.parameters):
        joint = passes.log_joint(bind(problem.structure, parameters), rows.table)
        n = problem.n_labelled
        labelled = joint[np.arange(n), rows.codes[:n]].sum()
        values.append(labelled + np.logaddexp.reduce(joint[n:], axis=1).sum())
    assert values[1] > values[0]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("conditional", [False, True])
def test_the_papers_inequality_holds_at_the_returned_soft_labels(seed, conditional):
    problem, supervised, _, rng = supervised_problem(seed, conditional=conditional)
    for start in (dirichlet(problem.n_unlabelled, 2, rng), None):
        fit = fit_mcp(problem, supervised, start, conditional=conditional, max_iter=15)
        comparison = Comparison(problem, supervised, conditional)
        soft_labels = problem.soft_labels(fit.states)
        assert contrast_at(comparison, fit.parameters, soft_labels) >= -1e-9
        assert (soft_labels >= 0).all()
        np.testing.assert_allclose(soft_labels.sum(axis=1), 1)


def test_soft_label_gradient_is_right_and_finite():
    rng = np.random.default_rng(0)
    joint, reference, labels = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.dirichlet(np.ones(3), 5)
    slope = soft_label_gradient(joint, reference, labels)
    for row, k in [(0, 0), (2, 1), (4, 2)]:
        moved = labels.copy()
        moved[row, k] += 1e-6
        assert (contrast(joint, reference, moved) - contrast(joint, reference, labels)).sum() / 1e-6 == pytest.approx(
            slope[row, k], rel=1e-4
        )
    extreme = np.array([[-1e5, 1e5, -np.inf], [-np.inf, -np.inf, -np.inf], [0, 0, 0]])
    corners = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    assert np.isfinite(soft_label_gradient(extreme, extreme[::-1], corners)).all()


@pytest.mark.parametrize("seed", range(5))
def test_sort_for_two_classes_equals_the_linear_programme(seed):
    """Two classes by the sort, and again as three classes of which one may not occur."""
    rng = np.random.default_rng(seed)
    each, weights = rng.normal(size=(30, 2)), rng.uniform(0.5, 2, 30)
    lower, upper = np.array([0.2, 0.35]), np.array([0.65, 0.8])
    by_sort = worst_soft_labels(each, lower, upper, weights)
    padded = np.column_stack([each, np.zeros(30)])
    by_programme = worst_soft_labels(padded, np.append(lower, 0.0), np.append(upper, 0.0), weights)
    value = (by_sort * each).sum(axis=1) @ weights
    assert value == pytest.approx((by_programme * padded).sum(axis=1) @ weights)
    share = weights @ by_sort / weights.sum()
    assert (share >= lower - 1e-9).all()
    assert (share <= upper + 1e-9).all()


def test_proportion_intervals_are_those_of_clopper_and_pearson():
    lower, upper = proportion_interval(np.array([7, 3]), 0.9)
    # Two intervals, each with confidence 0.95: the textbook values for 7 of 10.
    assert lower[0] == pytest.approx(0.3475, abs=1e-4)
    assert upper[0] == pytest.approx(0.9333, abs=1e-4)
    lower, upper = proportion_interval(np.array([5, 0]), 0.95)
    assert (lower[1], upper[0]) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_proportion_certificates_hold_for_plausible_labellings(seed):
    problem, supervised, _, rng = supervised_problem(seed, conditional=True)
    fit = fit_proportion_certified(problem, supervised, max_iter=10)
    comparison = Comparison(problem, supervised, conditional=True)
    bound, _ = restricted_worst_case(comparison, fit.parameters, 0.95, comparison.assess(fit.parameters).labelled_gain)
    assert bound >= -1e-9
    lower, upper = proportion_interval(problem.class_counts, 0.95)
    n_plausible = 0
    for ones in rng.integers(problem.n_unlabelled + 1, size=100):
        labels = rng.permutation(np.arange(problem.n_unlabelled) < ones).astype(int)
        share = labels.mean()
        if lower[1] <= share <= upper[1] and lower[0] <= 1 - share <= upper[0]:
            assert contrast_at(comparison, fit.parameters, np.eye(2)[labels]) >= bound - 1e-9
            n_plausible += 1
    assert n_plausible > 20


def test_posteriors_cannot_be_certified_over_all_labellings():
    """Whatever the model, some class of every row loses posterior probability."""
    problem, supervised, _, rng = supervised_problem(1, conditional=True)
    moved = tuple(values + rng.normal(0, 0.05, values.shape) ** 2 for values in supervised.leaves)
    changed = replace(supervised, leaves=moved)
    each = gains(log_posteriors(problem, changed), log_posteriors(problem, supervised))
    assert (each.min(axis=1) <= 1e-12).all()


def test_contrast_is_exact_where_soft_labels_leave_out_the_likely_classes():
    joint, reference = (
        np.array([[0.0, -2000.0], [-1e5, -1e5 - 900]]),
        np.array([[0.0, -2001.0], [-1e5 - 3, -1e5 - 903]]),
    )
    np.testing.assert_allclose(contrast(joint, reference, np.array([[0.0, 1.0], [0.0, 1.0]])), [1.0, 3.0])
    np.testing.assert_allclose(contrast(joint, reference, np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, 3.0])
    nowhere = np.full((2, 2), -np.inf)
    np.testing.assert_array_equal(contrast(nowhere, nowhere, np.full((2, 2), 0.5)), [0, 0])
    assert contrast(nowhere, reference, np.full((2, 2), 0.5)).max() == -np.inf


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_sums_equal_those_of_numpy(monkeypatch, weighted):
    """Ordinary rows, and rows with classes that are impossible under one model, the other, or both."""
    rng = np.random.default_rng(0)
    joint, reference = rng.normal(0, 300, (400, 3)), rng.normal(0, 300, (400, 3))
    joint[rng.random((400, 3)) < 0.05] = -np.inf
    reference[(rng.random((400, 3)) < 0.05) | (joint == -np.inf)] = -np.inf
    joint[:5] = reference[:5] = -np.inf
    codes = rng.integers(-1, 3, 400)
    labels = np.where(codes[:, None] < 0, rng.dirichlet(np.ones(3), 400), np.eye(3)[codes])
    block = RowBlock(joint, codes, rng.uniform(0.5, 2, 400) if weighted else None)
    found = []
    for loaded in (False, True):
        monkeypatch.setattr(backends._State, "loaded", loaded)
        found.append(assess(block, RowState(reference, labels), joint))
    assert found[0].worst_case == pytest.approx(found[1].worst_case)
    assert found[0].contrast == pytest.approx(found[1].contrast)
    assert found[0].labelled_gain == pytest.approx(found[1].labelled_gain)


@pytest.mark.parametrize("where", ["joint", "reference", "soft labels"])
@pytest.mark.parametrize("row", [0, 1])
def test_a_nan_is_no_impossible_class(backend, where, row):
    """One labelled and one unlabelled row: wherever the NaN is, the sums that count it are NaN, not a certificate."""
    joint, reference, labels = np.full((3, 2, 2), 0.5)
    codes = np.array([0, -1])
    {"joint": joint, "reference": reference, "soft labels": labels}[where][row, 0] = np.nan
    found = assess(RowBlock(joint, codes), RowState(reference, labels), joint)
    assert np.isnan(found.contrast)
    if where != "soft labels":
        assert np.isnan(found.worst_case)
        assert np.isnan(found.labelled_gain) == (row == 0)
    everywhere = np.full((2, 2), np.nan)
    assert np.isnan(assess(RowBlock(joint, codes), RowState(everywhere, labels), everywhere).worst_case)


@pytest.mark.parametrize("objective", ["generative", "discriminative"])
@pytest.mark.parametrize("which", ["mean", "variance", "weight"])
def test_a_model_that_is_not_a_number_is_never_certified(backend, objective, which):
    problem, supervised, *_ = supervised_problem(0, conditional=objective == "discriminative")
    method = Method("certified", objective, "auto", 1.0, 0.95, 30, 1e-5)
    log_weights, leaves = supervised.log_weights.copy(), supervised.leaves[0].copy()
    if which == "weight":
        log_weights[-1] = np.nan
    else:
        leaves[1, ["mean", "variance"].index(which)] = np.nan
    broken = Parameters(log_weights, (leaves,))
    states = Comparison(problem, supervised).start
    for model, compared in ((broken, supervised), (broken, broken)):
        report = method.report(problem, compared, SafeFit(model, states, [], converged=True, fallback=False), "by hand")
        assert not report.certified
        assert np.isnan(report.worst_case)
        assert "whatever the true classes" not in " ".join(report.promises)
    # Deep inside the network, below a sum where compiled code takes a NaN for next to nothing.
    inner = [Sum([Gaussian(0, k, 1), Gaussian(0, k + 1, 1)], [0.5, 0.5]) for k in range(2)]
    deep = SPN(Sum(inner, [0.5, 0.5]))
    hidden = deep._parameters.leaves[0].copy()
    hidden[0, 0] = np.nan
    network = bind(deep._structure, replace(deep._parameters, leaves=(hidden,)))
    assert np.isnan(passes.log_joint(network, np.zeros((3, 1)))).all()


def test_parameters_of_another_structure_are_refused():
    """Compiled code would read beyond the end of arrays."""
    problem, supervised, *_ = supervised_problem(0)
    for broken in (
        replace(supervised, log_weights=supervised.log_weights[:-1]),
        replace(supervised, leaves=(supervised.leaves[0][:-1],)),
    ):
        with pytest.raises(ValueError, match="expected"):
            bind(problem.structure, broken)

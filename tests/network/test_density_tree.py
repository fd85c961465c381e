from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris
from sklearn.tree import ExtraTreeClassifier

from safespn import SPN, Categorical, DensityTree, Gaussian, Product, Sum
from safespn.engine.evidence import class_evidence
from safespn.learning.em import fit_em
from safespn.learning.gradient import objective_and_gradient
from safespn.learning.parameters import Prior, UnconstrainedParameters
from safespn.learning.statistics_source import TableSource
from safespn.network.leaves import LeafPrior
from safespn.network.leaves.boxes.base import BaseDensity

INF = np.inf
BASE = np.array([[0.3, 2.0], [4, 0], [-1.0, 0.5]])
KINDS = ("real", "code", "real")


def random_nodes(rng, n_nodes, *, base=BASE, half_lines=True):
    """Grow a tree by splitting random boxes; children come after their parents."""
    nodes, open_ends = [], [None]
    for number in range(n_nodes):
        end = open_ends.pop(rng.integers(len(open_ends)))
        if end is not None:
            nodes[end[0]][end[1]] = number
        position = int(rng.integers(len(base)))
        if base[position, 1] == 0:
            state = rng.integers(base[position, 0])
            low, high = state - 0.5, state + 0.5
        else:
            low, high = -INF, np.round(rng.normal(*base[position] ** [1, 0.5]), 1)
            if rng.random() < 0.3:
                low, high = high, INF
            elif not half_lines and rng.random() < 0.5:
                low = high - rng.choice([0.5, 1.0])
        nodes.append([position, low, high, None, None])
        open_ends += [(number, 3), (number, 4)]
    for box, (number, side) in enumerate(rng.permutation(open_ends).tolist() if n_nodes else []):
        nodes[number][side] = -1 - box
    return np.array(nodes, dtype=float).reshape(-1, 5)


def random_tree(seed, n_nodes=8, *, base=BASE, half_lines=True):
    """A tree with random probabilities of the boxes that can have one."""
    rng = np.random.default_rng(seed)
    nodes = random_nodes(rng, n_nodes, base=base, half_lines=half_lines)
    probabilities = rng.dirichlet(np.ones(n_nodes + 1)) * possible_boxes(nodes, base)
    return DensityTree(range(len(base)), nodes, probabilities / probabilities.sum(), base)


def box_of(nodes, x):
    if len(nodes) == 0:
        return 0
    child = 0
    while child >= 0:
        position, low, high, inside, outside = nodes[int(child)]
        child = inside if low < x[int(position)] <= high else outside
    return -1 - int(child)


def grid(nodes, base):
    """For each column, one value of every piece between thresholds and the base's mass of the piece."""
    for position, (mean, variance) in enumerate(base):
        if variance == 0:
            yield [(float(state), 1 / mean) for state in range(int(mean))]
            continue
        cuts = sorted({bound for row in nodes if row[0] == position for bound in row[1:3] if np.isfinite(bound)})
        edges = [-INF, *cuts, INF]
        mass = np.diff(stats.norm(mean, variance**0.5).cdf(edges))
        yield [
            (high if np.isfinite(high) else (cuts or [0.0])[-1] + 1.0, m)
            for high, m in zip(edges[1:], mass, strict=True)
        ]


def box_masses(nodes, base):
    """Base mass of every box, by enumeration of all pieces of all columns."""
    masses = np.zeros(len(nodes) + 1)
    for piece in itertools.product(*grid(nodes, base)):
        masses[box_of(nodes, [x for x, _ in piece])] += np.prod([mass for _, mass in piece])
    return masses


def possible_boxes(nodes, base):
    return box_masses(nodes, base) > 0


def log_base(x, base):
    return sum(
        -np.log(first) if second == 0 else stats.norm(first, second**0.5).logpdf(value)
        for value, (first, second) in zip(x, base, strict=True)
    )


def random_rows(seed, n, missing=0.0):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(0.3, 1.4, n), rng.integers(4, size=n), rng.normal(-1, 0.7, n)])
    rows[:, [0, 2]] = np.round(rows[:, [0, 2]], 1)  # so that cells meet thresholds exactly
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


@pytest.mark.parametrize("half_lines", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_complete_rows_have_the_density_of_their_box(seed, half_lines, backend):
    tree, rows = random_tree(seed, half_lines=half_lines), random_rows(seed, 200)
    masses = box_masses(tree.nodes, BASE)
    with np.errstate(divide="ignore"):
        expected = [
            np.log(tree.probabilities[box_of(tree.nodes, x)] / (masses[box_of(tree.nodes, x)] or 1)) + log_base(x, BASE)
            for x in rows
        ]
    np.testing.assert_allclose(SPN(tree).log_likelihood(rows), expected, rtol=1e-11)


@pytest.mark.parametrize("half_lines", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_missing_cells_are_marginalised(seed, half_lines, backend):
    """Against integrals over real cells, piece by piece, and sums over codes; with nothing observed that is one."""
    tree, rows = random_tree(seed, half_lines=half_lines), random_rows(seed, 3)
    spn = SPN(tree)

    def density(x):
        return np.exp(spn.log_likelihood(np.atleast_2d(x))[0])

    def marginal(x):
        missing = np.nonzero(np.isnan(x))[0]
        if len(missing) == 0:
            return density(x)
        position = missing[0]
        if KINDS[position] == "code":
            return sum(marginal(np.where(np.arange(3) == position, state, x)) for state in range(4))
        cuts = {bound for row in tree.nodes if row[0] == position for bound in row[1:3] if np.isfinite(bound)}
        edges = [-12.0, *sorted(cuts), 12.0]
        pieces = itertools.pairwise(edges)
        return sum(quad(lambda v: marginal(np.where(np.arange(3) == position, v, x)), a, b)[0] for a, b in pieces)

    for x, missing in zip(rows, ([0], [1, 2], [2]), strict=True):
        x[missing] = np.nan
        assert density(x) == pytest.approx(marginal(x), rel=1e-6)
    assert density([np.nan] * 3) == pytest.approx(1, abs=1e-12)


def test_the_density_integrates_to_one():
    tree = random_tree(3, base=BASE[[0, 2]])
    axes, widths = [], []
    for position in range(2):
        cuts = {bound for row in tree.nodes if row[0] == position for bound in row[1:3] if np.isfinite(bound)}
        edges = [-9.0, *sorted(cuts), 9.0]
        nodes, weights = np.polynomial.legendre.leggauss(40)
        pieces = list(itertools.pairwise(edges))
        axes.append(np.concatenate([(a + b) / 2 + (b - a) / 2 * nodes for a, b in pieces]))
        widths.append(np.concatenate([(b - a) / 2 * weights for a, b in pieces]))
    points = np.array(list(itertools.product(*axes)))
    total = np.exp(SPN(tree).log_likelihood(points)) @ np.outer(*widths).ravel()
    assert total == pytest.approx(1, abs=1e-9)


def nodes_of(tree):
    """Write a tree of scikit-learn as nodes."""
    inner = tree.children_left >= 0
    number = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner))
    left, right = number[tree.children_left], number[tree.children_right]
    return np.column_stack([tree.feature, np.full(len(inner), -INF), tree.threshold, left, right])[inner]


def test_classes_that_share_a_tree_have_its_class_table_as_posterior(backend):
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)  # scikit-learn compares single precision
    peer = ExtraTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, y)
    nodes, base = nodes_of(peer.tree_), np.column_stack([X.mean(axis=0), X.var(axis=0)])
    box = np.array([box_of(nodes, x) for x in X])
    counts = np.array([np.bincount(box[y == k], minlength=len(nodes) + 1) for k in range(3)])
    leaves = [DensityTree(range(4), nodes, of_class / of_class.sum(), base) for of_class in counts]
    spn = SPN(Sum(leaves, counts.sum(axis=1) / len(y)))
    joint = np.exp(spn.log_joint(X))
    np.testing.assert_allclose(joint / joint.sum(axis=1, keepdims=True), peer.predict_proba(X), atol=1e-12)
    start = [DensityTree(range(4), nodes, [1 / (len(nodes) + 1)] * (len(nodes) + 1), base) for _ in range(3)]
    start = SPN(Sum(start, [1 / 3] * 3))
    result = fit_em(TableSource(start._structure, X, class_evidence(y, len(y), 3)), start._parameters, tol=1e-10)
    fitted = SPN._from_parameters(start._structure, result.parameters)
    np.testing.assert_allclose(fitted.log_joint(X), spn.log_joint(X), rtol=1e-12)


def forest(seed, n_trees=5, n_classes=3, n_nodes=8):
    trees = [random_tree(seed + number, n_nodes) for number in range(n_trees)]
    rng = np.random.default_rng(seed)
    classes = []
    for _ in range(n_classes):
        leaves = []
        for tree in trees:
            values = rng.dirichlet(np.ones(n_nodes + 1)) * possible_boxes(tree.nodes, BASE)
            leaves.append(DensityTree(range(3), tree.nodes, values / values.sum(), BASE))
        classes.append(Sum(leaves, rng.dirichlet(np.ones(n_trees))))
    return Sum(classes, rng.dirichlet(np.ones(n_classes)))


@pytest.mark.parametrize("n_nodes", [8, 70, 130])
def test_a_forest_is_the_sum_of_its_trees(n_nodes, backend):
    """Leaves that share a group, a tree and the cells, against each leaf alone; boxes in one, two and three words."""
    root, rows = forest(1, n_nodes=n_nodes), random_rows(0, 300, missing=0.1)
    alone = np.array([[np.exp(SPN(leaf).log_likelihood(rows)) for leaf in child.children] for child in root.children])
    weights = np.array([child.weights for child in root.children]) * np.array(root.weights)[:, None]
    np.testing.assert_allclose(np.exp(SPN(root).log_joint(rows)), np.einsum("kt,ktn->nk", weights, alone), rtol=1e-10)


def test_leaves_on_different_columns_read_their_own():
    tree = random_tree(0)
    permuted = DensityTree([2, 1, 0], tree.nodes, tree.probabilities, BASE)
    rows = random_rows(0, 50, missing=0.1)
    expected = np.logaddexp(SPN(tree).log_likelihood(rows), SPN(tree).log_likelihood(rows[:, ::-1])) - np.log(2)
    np.testing.assert_allclose(SPN(Sum([tree, permuted], [0.5, 0.5])).log_likelihood(rows), expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_em_never_lowers_the_likelihood(missing, backend):
    rows, spn = random_rows(1, 400, missing), SPN(forest(2))
    history = [spn.log_likelihood(rows).sum()]
    for _ in range(8):
        spn = spn.fit_em(rows, max_iter=1, tol=-1)
        history.append(spn.log_likelihood(rows).sum())
    assert (np.diff(history) > -1e-8).all()
    assert history[-1] > history[0] + 10


@pytest.mark.parametrize("category_prior", [0.0, 2.0])
def test_gradient_is_that_of_finite_differences(category_prior, backend):
    rows, spn = random_rows(1, 60, missing=0.2), SPN(forest(3, n_trees=2, n_classes=2))
    coordinates = UnconstrainedParameters(spn._structure, spn._parameters)
    prior = Prior(leaves=LeafPrior(category_prior=category_prior))
    source = TableSource(spn._structure, rows)
    vector = coordinates.pack(spn._parameters)

    def value(vector):
        return objective_and_gradient(coordinates, vector, source, prior)[0]

    _, gradient = objective_and_gradient(coordinates, vector, source, prior)
    np.testing.assert_allclose(gradient, approx_fprime(vector, value, 1e-6), atol=2e-3)


def test_impossible_boxes_get_no_mass_from_priors_or_gradients():
    nodes = [[0, -INF, 0.0, -1, 1], [0, -INF, -1.0, -2, -3], [0, 0, 0, 0, 0]]  # box 1 is empty, box 3 is not reached
    leaf = DensityTree([0], nodes, [0.4, 0, 0.6, 0], [[0, 1]])
    X = np.random.default_rng(0).normal(size=(50, 1))
    fitted = SPN(leaf).fit_em(X, category_prior=1.0)
    np.testing.assert_allclose(fitted.root.probabilities, [(np.sum(X <= 0) + 1) / 52, 0, (np.sum(X > 0) + 1) / 52, 0])
    by_gradient = SPN(leaf).fit_gradient(X)
    np.testing.assert_allclose(by_gradient.root.probabilities, [np.mean(X <= 0), 0, np.mean(X > 0), 0], atol=1e-4)
    assert SPN(leaf).n_parameters == 1


def test_padding_changes_nothing(backend):
    tree, rows = random_tree(5), random_rows(5, 100, missing=0.2)
    nodes = np.vstack([tree.nodes, np.zeros((3, 5))])
    padded = DensityTree(range(3), nodes, [*tree.probabilities, 0, 0, 0], BASE)
    np.testing.assert_allclose(SPN(padded).log_likelihood(rows), SPN(tree).log_likelihood(rows), atol=1e-14)
    np.testing.assert_array_equal(SPN(padded).mpe(rows), SPN(tree).mpe(rows))
    ours, theirs = SPN(padded).fit_em(rows).root, SPN(tree).fit_em(rows).root
    np.testing.assert_allclose(ours.probabilities, [*theirs.probabilities, 0, 0, 0])
    assert SPN(padded).n_parameters == SPN(tree).n_parameters


def test_one_box_is_the_base(backend):
    rows = random_rows(0, 40, missing=0.2)
    product = Product([Gaussian(0, 0.3, 2.0), Categorical(1, [0.25] * 4), Gaussian(2, -1, 0.5)])
    spn = SPN(DensityTree(range(3), [], [1.0], BASE))
    np.testing.assert_allclose(spn.log_likelihood(rows), SPN(product).log_likelihood(rows), rtol=1e-12, atol=1e-12)


def test_a_cell_at_the_threshold_goes_inside(backend):
    leaf = DensityTree([0], [[0, -INF, 0.1, 1, -1], [0, -INF, 0.1, -2, -3]], [0.25, 0.75, 0], [[0.1, 1]])
    near = [[np.nextafter(0.1, -1)], [0.1], [np.nextafter(0.1, 1)]]
    density = np.exp(SPN(leaf).log_likelihood(near)) / stats.norm.pdf(0)
    np.testing.assert_allclose(density, [1.5, 1.5, 0.5])


def test_one_sum_may_model_codes_by_trees_and_by_tables(backend):
    tree = random_tree(1)
    product = Product([Gaussian(0, 0, 1), Categorical(1, [0.1, 0.2, 0.3, 0.4]), Gaussian(2, 0, 1)])
    spn = SPN(Sum([tree, product], [0.5, 0.5]))
    rows = random_rows(0, 30)
    expected = np.logaddexp(SPN(tree).log_likelihood(rows), SPN(product).log_likelihood(rows)) - np.log(2)
    np.testing.assert_allclose(spn.log_likelihood(rows), expected)
    with pytest.raises(ValueError, match="row 0, column 1: 4 is not valid, expected an integer code from 0 to 3"):
        spn.log_likelihood([[0.0, 4.0, 0.0]])


def test_conditional_draws_follow_the_density():
    """Draws of two cells given the third, against rows of the base weighted by their boxes."""
    tree, n = random_tree(6, half_lines=False), 40_000
    draws = SPN(tree).conditional_sample(np.tile([np.nan, np.nan, -0.8], (n, 1)), random_state=0)
    rng = np.random.default_rng(0)
    peers = np.column_stack([rng.normal(0.3, 2**0.5, n), rng.integers(4, size=n), np.full(n, -0.8)])
    box, of_peer = (np.array([box_of(tree.nodes, x) for x in rows]) for rows in (draws, peers))
    masses = box_masses(tree.nodes, BASE)
    weights = np.divide(tree.probabilities, masses, out=np.zeros(9), where=masses > 0) * np.bincount(
        of_peer, minlength=9
    )
    share = np.bincount(box, minlength=9) / n
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.02)
    assert (share > 0.05).sum() > 2
    for number in np.nonzero(share > 0.05)[0]:
        ours, theirs = draws[box == number], peers[of_peer == number]
        assert stats.ks_2samp(ours[:, 0], theirs[:, 0]).pvalue > 1e-3
        assert stats.ks_2samp(ours[:, 1], theirs[:, 1]).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_most_probable_completion_is_the_best_point_of_the_best_box(seed):
    tree = random_tree(seed, half_lines=False)
    rows = random_rows(seed, 20, missing=0.5)
    completed = SPN(tree).mpe(rows)
    value = SPN(tree).log_likelihood(completed)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        other = np.where(np.isnan(rows), random_rows(rng.integers(1 << 30), 20), rows)
        assert (SPN(tree).log_likelihood(other) <= value + 1e-9).all()


def test_masses_are_exact_in_the_tails_and_for_narrow_intervals():
    base = BaseDensity(np.array([[0.0, 1.0], [1e6, 0.0]]))
    lower = np.array([-INF, 30.0, -40.0, 0.0, 5.0, 1.0, -INF, -INF])
    upper = np.array([-38.0, INF, -39.0, 1e-9, 5.0 + 1e-7, 2.0, INF, -1e200])
    normal = stats.norm()
    expected = [
        normal.logcdf(-38),
        normal.logsf(30),
        normal.logcdf(-39) + np.log1p(-np.exp(normal.logcdf(-40) - normal.logcdf(-39))),
        np.log(1e-9) + normal.logpdf(0),
        np.log(1e-7) + normal.logpdf(5 + 0.5e-7),
        np.log(normal.cdf(2) - normal.cdf(1)),
        0,
        -INF,
    ]
    np.testing.assert_allclose(base.log_mass(np.zeros(8, dtype=int), lower, upper), expected, rtol=1e-8)
    codes = base.log_mass(np.ones(4, dtype=int), np.array([2.5, -INF, 7.5, 7.1]), np.array([3.5, 2.5, INF, 7.9]))
    np.testing.assert_allclose(np.exp(codes), [1e-6, 3e-6, 1 - 8e-6, 0])


def test_boxes_of_very_different_mass_do_not_underflow(backend):
    """Observed cells that speak for a box which the leaf almost rules out."""
    nodes = [[0, -INF, -45.0, -1, -2]]
    leaf = DensityTree([0, 1], nodes, [0.0, 1.0], [[0, 1], [0, 1]])
    both = DensityTree([0, 1], nodes, [1e-300, 1.0], [[0, 1], [0, 1]])
    rows = np.array([[-50.0, np.nan], [0.0, np.nan], [np.nan, 0.0]])
    tail = stats.norm.logpdf(-50) - stats.norm.logcdf(-45)
    expected = [[-INF, tail + np.log(1e-300)], [stats.norm.logpdf(0)] * 2, [stats.norm.logpdf(0)] * 2]
    np.testing.assert_allclose(
        np.column_stack([SPN(leaf).log_likelihood(rows), SPN(both).log_likelihood(rows)]), expected
    )
    fitted = SPN(both).fit_em(rows[:2], max_iter=1, tol=-1)
    np.testing.assert_allclose(fitted.root.probabilities, [0.5, 0.5])


def test_saved_trees_come_back(tmp_path):
    spn, rows = SPN(forest(4)), random_rows(0, 50, missing=0.1)
    spn.save(tmp_path / "forest.safespn")
    loaded = SPN.load(tmp_path / "forest.safespn")
    np.testing.assert_array_equal(loaded.log_likelihood(rows), spn.log_likelihood(rows))
    assert str(loaded) == str(spn)
    assert re.search(r"DensityTree\(\[0, 1, 2\], \d boxes\)", str(spn))

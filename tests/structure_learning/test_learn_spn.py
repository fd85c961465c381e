"""What every learned network must obey, on hand-made tables and on random mixed ones."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safespn import SPN, Categorical, Gaussian, MultivariateGaussian, Poisson, Product, Sum, learn_spn
from safespn.exceptions import DegenerateColumnWarning
from safespn.network.nodes import walk


def two_blobs(n_rows=120, seed=0):
    generator = np.random.default_rng(seed)
    side = np.repeat([-3.0, 3.0], n_rows // 2)
    return side[:, None] + generator.normal(size=(n_rows, 2))


def mixed_table(n_rows, seed, missing=0.0):
    """Two clusters that show in a real, a code and a count column, and one column of noise."""
    generator = np.random.default_rng(seed)
    cluster = generator.integers(2, size=n_rows)
    table = np.column_stack(
        [
            np.where(cluster, 2.0, -2.0) + generator.normal(size=n_rows),
            (generator.random(n_rows) < np.where(cluster, 0.9, 0.2)).astype(float) + generator.integers(2, size=n_rows),
            generator.poisson(np.where(cluster, 12.0, 2.0)),
            generator.normal(5.0, 10.0, n_rows),
        ]
    )
    table[generator.random(table.shape) < missing] = np.nan
    return table


MIXED = ["gaussian", "categorical", "poisson", "gaussian"]


@st.composite
def random_tables(draw):
    """Mixed tables with missing cells, repeated rows, constant columns and weights, as learn_spn's arguments."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_columns = draw(st.integers(1, 60)), draw(st.integers(1, 4))
    cluster = generator.integers(draw(st.integers(1, 3)), size=n_rows)
    families, columns = [], []
    for _ in range(n_columns):
        family = draw(st.sampled_from(["gaussian", "rounded", "constant", "categorical", "poisson"]))
        effect = draw(st.sampled_from([0.0, 1.0, 4.0])) * cluster
        if family == "categorical":
            column = np.minimum(generator.integers(3, size=n_rows) + (effect > 0), 3).astype(float)
        elif family == "poisson":
            column = generator.poisson(1.0 + effect).astype(float)
        else:
            column = (generator.normal(size=n_rows) + effect) * draw(st.sampled_from([1e-6, 1.0, 1e6]))
        column = np.round(column / (np.std(column) or 1.0)) if family == "rounded" else column
        column = np.full(n_rows, 3.0) if family == "constant" else column
        families.append(family if family in ("categorical", "poisson") else "gaussian")
        hidden = generator.random(n_rows) < draw(st.sampled_from([0.0, 0.3]))
        hidden[generator.integers(n_rows)] = False
        columns.append(np.where(hidden, np.nan, column))
    table = np.column_stack(columns)
    weights = generator.integers(1, 4, size=n_rows).astype(float) if draw(st.booleans()) else None
    return table, families, weights


@settings(max_examples=60)
@given(random_tables(), st.sampled_from([None, "aic"]), st.sampled_from(["cosine", "rdc", "rank"]), st.booleans())
def test_random_tables_give_valid_networks_whatever_the_order_of_the_rows(case, truncate, dependence, multivariate):
    table, families, weights = case
    options = {"leaves": families, "truncate": truncate, "dependence": dependence, "random_state": 0}
    options["multivariate"] = multivariate
    order = np.random.default_rng(1).permutation(len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateColumnWarning)
        spn = learn_spn(table, sample_weight=weights, **options)
        shuffled = learn_spn(table[order], sample_weight=None if weights is None else weights[order], **options)
    SPN(spn.root)  # complete, decomposable, proper weights
    value = spn.log_likelihood(table)
    assert np.isfinite(value).all()
    np.testing.assert_allclose(shuffled.log_likelihood(table), value, rtol=1e-10, atol=1e-10)


@settings(max_examples=25)
@given(random_tables())
def test_weights_are_repetitions(case):
    table, families, weights = case
    weights = np.ones(len(table)) if weights is None else weights
    repeated = np.repeat(table, weights.astype(int), axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateColumnWarning)
        weighted = learn_spn(table, leaves=families, sample_weight=weights, min_rows=5)
        plain = learn_spn(repeated, leaves=families, min_rows=5)
    np.testing.assert_allclose(weighted.log_likelihood(table), plain.log_likelihood(table), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_density_of_one_real_column_integrates_to_one(seed):
    generator = np.random.default_rng(seed)
    column = np.concatenate([generator.normal(0, 1, 80), generator.normal(6, 0.3, 40), np.zeros(20)])
    spn = learn_spn(column[:, None], leaves="gaussian", variance_floor=1e-3)
    grid = np.linspace(-30, 40, 200_001)
    density = np.exp(spn.log_likelihood(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_density_of_two_columns_integrates_to_one(missing):
    table = two_blobs()
    table[np.random.default_rng(1).random(table.shape) < missing] = np.nan
    grid = np.linspace(-14, 14, 401)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    density = np.exp(learn_spn(table).log_likelihood(points.reshape(-1, 2))).reshape(401, 401)
    assert np.trapezoid(np.trapezoid(density, grid), grid) == pytest.approx(1.0, abs=1e-4)


def test_probability_of_codes_and_counts_adds_up_to_one():
    spn = learn_spn(mixed_table(200, 0)[:, 1:3], leaves=["categorical", "poisson"])
    points = np.array([(code, count) for code in range(3) for count in range(200)], dtype=float)
    assert np.exp(spn.log_likelihood(points)).sum() == pytest.approx(1.0, abs=1e-9)


def test_clusters_and_independent_columns_are_found():
    spn = learn_spn(mixed_table(400, 0), leaves=MIXED)
    assert isinstance(spn.root, Product)
    alone = [node for node in spn.root.children if isinstance(node, Gaussian)]
    assert [node.column for node in alone] == [3]
    assert any(isinstance(node, Sum) and len(node.children) == 2 for node in spn.root.children)


def test_number_of_clusters_follows_the_evidence():
    generator = np.random.default_rng(0)
    centres = np.array([[0, 0], [8, 8], [16, 16], [24, 24], [32, 32]])
    table = np.repeat(centres, 60, axis=0) + generator.normal(size=(300, 2))
    assert len(learn_spn(table).root.children) == 5
    assert isinstance(learn_spn(generator.normal(size=(300, 2))).root, Product)


def test_leaf_types_follow_the_columns():
    spn = learn_spn(mixed_table(300, 1))
    types = {node.column: type(node) for node in walk(spn.root) if not node.children}
    assert types == {0: Gaussian, 1: Categorical, 2: types[2], 3: Gaussian}
    assert types[2] in (Gaussian, Poisson)


def test_densities_are_in_the_units_of_the_table():
    table, scale, shift = two_blobs(), np.array([1e-3, 1e4]), np.array([5.0, -1e5])
    value = learn_spn(table).log_likelihood(table)
    other = learn_spn(table * scale + shift).log_likelihood(table * scale + shift)
    np.testing.assert_allclose(other, value - np.log(scale).sum(), rtol=1e-6)


def test_missing_cells_are_not_filled_in():
    table = two_blobs(400)
    table[200:, 1] = np.nan  # the second column is only ever seen on the left
    spn = learn_spn(table)
    right = np.array([[3.0, np.nan]])
    assert spn.log_likelihood(right)[0] == pytest.approx(np.log(0.5) - 0.5 * np.log(2 * np.pi), abs=0.3)
    means = [node.mean for node in walk(spn.root) if isinstance(node, Gaussian) and node.column == 1]
    assert all(mean < -2 for mean in means)


def test_a_fit_beats_independent_columns_on_new_rows():
    train, test = two_blobs(seed=0), two_blobs(seed=1)
    flat = learn_spn(train, max_depth=0)
    assert flat.depth == 1
    assert learn_spn(train).log_likelihood(test).mean() > flat.log_likelihood(test).mean() + 1.0


def test_refinement_raises_the_likelihood():
    table = np.random.default_rng(0).standard_t(2, size=(300, 3))
    start = learn_spn(table, refine_iterations=0).log_likelihood(table).mean()
    assert learn_spn(table, refine_iterations=10).log_likelihood(table).mean() > start


def test_random_state_decides():
    table = mixed_table(100, 2, missing=0.1)
    first, second = (learn_spn(table, dependence="rdc", random_state=3).log_likelihood(table) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_max_depth_bounds_the_splits(depth):
    spn = learn_spn(mixed_table(300, 3), leaves=MIXED, max_depth=depth, variance_floor=0.01)
    assert spn.depth <= depth + 1


def test_a_frequent_value_gets_a_narrow_leaf_and_an_escape():
    generator = np.random.default_rng(0)
    column = np.where(generator.random(200) < 0.4, 0.0, generator.normal(3.0, 1.0, 200))
    spn = learn_spn(column[:, None], leaves="gaussian", variance_floor=1e-6)
    at_value, beside = spn.log_likelihood([[0.0], [0.05]])
    assert at_value > 3
    assert beside > -12


class Frame:
    """As much of a data frame as learn_spn looks at."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)

    def astype(self, dtype):
        return Frame(np.asarray(self.values).astype(dtype), self.columns)


@pytest.mark.parametrize("dtype", [float, object])
def test_frames_of_numbers(dtype):
    table = two_blobs()
    spn = learn_spn(Frame(table.astype(dtype), ["height", "weight"]))
    np.testing.assert_array_equal(spn.log_likelihood(table), learn_spn(table).log_likelihood(table))


class TestBadInput:
    def test_infinite(self):
        table = two_blobs()
        table[7, 1] = np.inf
        with pytest.raises(ValueError, match="row 7, column 1: inf is not valid"):
            learn_spn(table)

    def test_column_is_named_by_its_title(self):
        table = two_blobs()
        table[:, 1] = np.nan
        with pytest.raises(ValueError, match="column 1 \\('weight'\\) is missing in every row"):
            learn_spn(Frame(table, ["height", "weight"]))

    def test_text(self):
        with pytest.raises(ValueError, match="expected numbers"):
            learn_spn(np.array([["a", "b"]]))

    @pytest.mark.parametrize("family", ["categorical", "poisson"])
    def test_real_values_in_a_discrete_column(self, family):
        with pytest.raises(ValueError, match=f"column 1 is declared {family} but holds"):
            learn_spn(two_blobs(), leaves=["gaussian", family])

    def test_constant_column_is_modelled_with_variance_one(self):
        table = np.column_stack([two_blobs(), np.full(120, 7.0)])
        with pytest.warns(DegenerateColumnWarning, match="column 2"):
            spn = learn_spn(table, leaves="gaussian")
        difference = spn.log_likelihood(table) - learn_spn(table[:, :2]).log_likelihood(table[:, :2])
        np.testing.assert_allclose(difference, -0.5 * np.log(2 * np.pi), atol=1e-6)

    def test_one_row(self):
        with pytest.warns(DegenerateColumnWarning):
            spn = learn_spn([[1.5, -2.0]])
        assert spn.log_likelihood([[1.5, -2.0]])[0] == pytest.approx(-np.log(2 * np.pi))

    def test_one_column(self):
        assert learn_spn(two_blobs()[:, :1]).n_columns == 1

    def test_one_category(self):
        table = np.column_stack([two_blobs(), np.zeros(120)])
        spn = learn_spn(table, leaves=["gaussian", "gaussian", "categorical"])
        plain = learn_spn(table[:, :2], leaves="gaussian")
        np.testing.assert_allclose(spn.log_likelihood(table), plain.log_likelihood(table[:, :2]))

    def test_fewer_rows_than_min_rows(self):
        spn = learn_spn(two_blobs(), min_rows=1000, multivariate=False)
        assert isinstance(spn.root, Product)
        assert spn.n_nodes == 3
        assert isinstance(learn_spn(two_blobs(), min_rows=1000).root, MultivariateGaussian)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("min_rows", 0),
            ("max_depth", -1),
            ("alpha", 0.0),
            ("dependence", "pearson"),
            ("criterion", "mdl"),
            ("truncate", "cv"),
            ("variance_floor", -1.0),
            ("variance_floor", "none"),
            ("weight_prior", -0.5),
            ("pseudo_rows", float("nan")),
            ("leaves", "gamma"),
            ("leaves", ["gaussian"]),
            ("leaves", {5: "gaussian"}),
            ("sample_weight", np.full(120, -1.0)),
        ],
    )
    def test_options_out_of_range(self, option, value):
        with pytest.raises(ValueError, match=option):
            learn_spn(two_blobs(), **{option: value})


def test_a_curve_is_not_left_to_one_gaussian():
    """Clusters along a curve overlap: row by row they lose against one Gaussian, and as a mixture they win."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, np.pi, 1500)
    bow = np.column_stack([np.cos(angle), 1.6 * np.sin(angle)]) + rng.normal(scale=0.3, size=(1500, 2))
    train, test = bow[:1000], bow[1000:]
    one = SPN(MultivariateGaussian([0, 1], train.mean(axis=0), np.cov(train.T)))
    spn = learn_spn(train)
    assert spn.n_nodes > 1
    assert spn.log_likelihood(test).mean() > one.log_likelihood(test).mean() + 0.1


def test_one_gaussian_stays_one_gaussian():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(600, 3)) @ np.array([[1, 0.8, 0.3], [0, 1, -0.5], [0, 0, 1]])
    assert learn_spn(rows).n_nodes == 1

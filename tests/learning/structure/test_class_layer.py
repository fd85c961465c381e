import numpy as np
import pytest

from safespn import SPN
from safespn.learning.structure import learn_class_spn
from safespn.learning.structure.gaussian_classes import GAUSSIAN_STRUCTURES
from safespn.network.nodes import Leaf, walk

STRUCTURES = ["copied", "shared", "per_class", "tied", *GAUSSIAN_STRUCTURES, "auto"]


def labelled_table(n_rows=200, seed=0):
    generator = np.random.default_rng(seed)
    classes = generator.integers(2, size=n_rows)
    table = np.column_stack(
        [
            np.where(classes, 2.0, -2.0) + generator.normal(size=n_rows),
            np.where(classes, 1.0, 0.0) + generator.normal(size=n_rows),
            generator.poisson(np.where(classes, 6.0, 2.0)),
            (generator.random(n_rows) < np.where(classes, 0.8, 0.3)).astype(float),
        ]
    )
    return table, classes


LEAVES = ["gaussian", "gaussian", "poisson", "categorical"]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("multivariate", [True, False])
def test_classes_are_recognised(structure, multivariate):
    table, classes = labelled_table()
    new, truth = labelled_table(seed=1)
    spn = learn_class_spn(table, classes, 2, structure=structure, multivariate=multivariate, leaves=LEAVES)
    SPN(spn.root)
    joint = spn.log_joint(new)
    assert joint.shape == (200, 2)
    assert (joint.argmax(axis=1) == truth).mean() > 0.93


@pytest.mark.parametrize("structure", STRUCTURES)
def test_few_labels_and_missing_cells(structure):
    table, classes = labelled_table()
    table[np.random.default_rng(3).random(table.shape) < 0.1] = np.nan
    few = np.full(200, -1)
    few[:12] = classes[:12]
    spn = learn_class_spn(table, few, 2, structure=structure, leaves=LEAVES)
    assert (spn.log_joint(table).argmax(axis=1) == classes).mean() > 0.75


def test_root_weights_are_class_frequencies():
    table, classes = labelled_table()
    spn = learn_class_spn(table, classes, 2, leaves=LEAVES, weight_prior=0.5)
    counts = np.bincount(classes) + 0.5
    np.testing.assert_allclose(spn.root.weights, counts / counts.sum())


def test_shared_structure_shares_its_leaves():
    table, classes = labelled_table()
    spn = learn_class_spn(table, classes, 2, structure="shared", leaves=LEAVES)
    first, second = ({id(node) for node in walk(child) if isinstance(node, Leaf)} for child in spn.root.children)
    assert first == second


def test_copies_have_the_same_wiring():
    table, classes = labelled_table()
    spn = learn_class_spn(table, classes, 2, structure="copied", leaves=LEAVES)
    first, second = ([type(node) for node in walk(child)] for child in spn.root.children)
    assert first == second


@pytest.mark.parametrize("structure", STRUCTURES)
def test_order_of_the_rows_does_not_matter(structure):
    table, classes = labelled_table(80)
    classes[::3] = -1
    order = np.random.default_rng(0).permutation(80)
    first = learn_class_spn(table, classes, 2, structure=structure, leaves=LEAVES)
    second = learn_class_spn(table[order], classes[order], 2, structure=structure, leaves=LEAVES)
    np.testing.assert_allclose(first.log_joint(table), second.log_joint(table), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("structure", ["copied", "per_class"])
def test_validation_rows_choose_the_depth(structure):
    generator = np.random.default_rng(0)
    classes = generator.integers(2, size=60)
    table = np.where(classes, 1.0, 0.0)[:, None] + generator.normal(size=(60, 6))
    new = generator.integers(2, size=500)
    rows = np.where(new, 1.0, 0.0)[:, None] + generator.normal(size=(500, 6))
    options = {"structure": structure, "criterion": "aic", "alpha": 0.5, "multivariate": False}
    deep = learn_class_spn(table, classes, 2, **options)
    cut = learn_class_spn(table, classes, 2, validation=(rows, new), **options)

    def score(spn):
        joint = spn.log_joint(rows)
        return (joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))[np.arange(500), new].mean()

    assert score(cut) > score(deep)
    assert cut.depth < deep.depth


def test_a_class_without_rows_is_an_error():
    table, classes = labelled_table()
    with pytest.raises(ValueError, match="class 2 has no labelled row"):
        learn_class_spn(table, classes, 3, leaves=LEAVES)
    with pytest.raises(ValueError, match="structure must be"):
        learn_class_spn(table, classes, 2, structure="other")

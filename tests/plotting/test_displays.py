from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from scipy.stats import norm
from sklearn.datasets import load_iris, make_moons

from safespn import SafeSPNClassifier
from safespn.plotting import library, plot_decision, plot_densities, plot_history, plot_soft_labels
from safespn.plotting.library import COLOURS


def dots(ax, label):
    return next(each for each in ax.collections if each.get_label() == label)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(120, noise=0.1, random_state=0)
    y[12:] = -1
    return X, y, SafeSPNClassifier(network="blocks", max_depth=2, max_iter=10, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def mixed():
    generator = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 60).astype(object)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "age": generator.normal(np.repeat([30.0, 50.0], 60), 5.0),
            "height": generator.normal(170.0, 8.0, 120),
            "smoker": pd.Categorical(np.where(generator.random(120) < np.repeat([0.2, 0.7], 60), "often", "never")),
        }
    )
    frame.loc[3, "age"] = np.nan
    labels = np.where(np.arange(120) % 4 == 0, y, -1)
    return frame, labels, SafeSPNClassifier(network="blocks", max_iter=10, random_state=0).fit(frame, labels)


def test_decision_draws_the_boundary_where_the_prediction_changes(moons):
    X, y, classifier = moons
    display = plot_decision(classifier, X, y)
    lines = [each for each in display.ax_.collections if getattr(each, "filled", True) is False]
    assert len(lines) == 1
    vertices = np.concatenate([path.vertices for path in lines[0].get_paths()])
    lead = np.diff(classifier.joint_log_likelihood(vertices), axis=1)[:, 0]
    assert len(vertices) > 10
    assert np.abs(lead).max() < 0.5  # straight pieces between the points of the grid


def test_decision_values_are_the_models_and_bands_hang_from_each_peak(moons):
    X, y, classifier = moons
    display = plot_decision(classifier, X, y, n_grid=30)
    point = np.array([[display.across[7], display.up[21]]])
    assert np.allclose(display.log_joint[21, 7], classifier.joint_log_likelihood(point)[0])
    bands = [each for each in display.ax_.collections if getattr(each, "filled", False)]
    assert len(bands) == 2
    for code, band in enumerate(bands):
        assert band.levels[-1] == pytest.approx(display.log_joint[..., code].max())
        assert {tuple(colour[:3]) for colour in band.get_facecolor()} == {to_rgba(COLOURS[code])[:3]}
        assert np.all(np.diff(band.get_facecolor()[:, 3]) > 0)  # darker towards the peak


def test_decision_draws_rows_by_what_is_known_of_them(moons):
    X, y, classifier = moons
    ax = plot_decision(classifier, X, y, soft_labels=classifier.soft_labels_).ax_
    assert np.array_equal(dots(ax, "labelled").get_offsets(), X[y >= 0])
    assert [tuple(colour) for colour in dots(ax, "labelled").get_facecolor()] == [
        to_rgba(COLOURS[code]) for code in y[y >= 0]
    ]
    unlabelled = dots(ax, "unlabelled")
    assert np.array_equal(unlabelled.get_offsets(), X[y < 0])
    ends = np.array([to_rgba(colour)[:3] for colour in COLOURS[:2]])
    assert np.allclose(unlabelled.get_facecolor()[:, :3], classifier.soft_labels_ @ ends)
    assert legend_texts(ax)[:3] == ["class 0", "class 1", "decision boundary"]
    assert "unlabelled row, shaded by soft label" in legend_texts(ax)
    alone = plot_decision(classifier, X).ax_
    assert len(dots(alone, "unlabelled").get_offsets()) == len(X)
    assert "labelled row" not in legend_texts(alone)


def test_decision_marginalises_the_other_columns_and_knows_three_classes():
    X, y = load_iris(return_X_y=True)
    partly = np.where(np.arange(150) % 5 == 0, y, -1)
    classifier = SafeSPNClassifier(network="blocks", max_iter=10, random_state=0).fit(X, partly)
    display = plot_decision(classifier, X, partly, columns=(2, 3), n_grid=40)
    assert display.column_names == ("column 2", "column 3")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("column 2", "column 3")
    cell = np.full((1, 4), np.nan)
    cell[0, 2:] = display.across[5], display.up[30]
    assert np.allclose(display.log_joint[30, 5], classifier.spn_.log_joint(cell)[0])
    assert display.log_joint.shape == (40, 40, 3)


def test_decision_says_what_does_not_fit(moons, mixed):
    X, y, classifier = moons
    with pytest.raises(ValueError, match=r"expected soft labels of shape \(108, 2\).*got \(3, 2\)"):
        plot_decision(classifier, X, y, soft_labels=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"each of 120 rows, got y of shape \(2,\)"):
        plot_decision(classifier, X, [0, 1])
    with pytest.raises(ValueError, match="row 0 has the label 7; expected one of 0, 1"):
        plot_decision(classifier, X, np.full(120, 7))
    with pytest.raises(ValueError, match="no column 2; there are columns 0 to 1"):
        plot_decision(classifier, X, columns=(0, 2))
    frame, _, by_name = mixed
    with pytest.raises(ValueError, match="'smoker' is categorical"):
        plot_decision(by_name, frame, columns=("age", "smoker"))
    with pytest.raises(ValueError, match="no column 'weight'; there are 'age', 'height', 'smoker'"):
        plot_decision(by_name, frame, columns=("age", "weight"))
    with pytest.raises(ValueError, match="'age' is missing in every row"):
        plot_decision(by_name, frame.assign(age=np.nan), columns=("age", "height"))


def test_a_display_draws_again_into_other_axes(moons):
    X, y, classifier = moons
    display = plot_decision(classifier, X, y, n_grid=20)
    figure, (left, right) = plt.subplots(1, 2)
    assert display.plot(right, legend=False).ax_ is right
    assert display.figure_ is figure
    assert right.get_legend() is None
    assert plot_soft_labels(classifier, ax=left).ax_ is left


def test_history_lines_are_the_recorded_gains(moons):
    _, _, classifier = moons
    ax = plot_history(classifier).ax_
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert np.array_equal(lines["worst case"], [entry["worst_case"] for entry in classifier.history_])
    assert np.array_equal(lines["at the soft labels"], [entry["contrast"] for entry in classifier.history_])
    assert lines["worst case of the returned model"][0] == classifier.safety_.worst_case
    assert "validation rows (right)" not in legend_texts(ax)


def test_history_shows_validation_rows_on_the_right(moons):
    X, y, _ = moons
    known = y >= 0
    classifier = SafeSPNClassifier(network="blocks", max_depth=2, max_iter=5, random_state=0).fit(
        X, y, validation=(X[known], y[known])
    )
    display = plot_history(classifier)
    assert "validation rows (right)" in legend_texts(display.ax_)
    right = display.figure_.axes[1]
    assert np.array_equal(right.get_lines()[0].get_ydata(), display.validation_score)
    assert not np.isnan(display.validation_score).any()


def test_soft_labels_are_counted_by_class(moons):
    _, _, classifier = moons
    display = plot_soft_labels(classifier)
    assert display.counts.sum() == len(classifier.soft_labels_)
    most = classifier.soft_labels_.argmax(axis=1)
    assert np.array_equal(display.counts.sum(axis=1), np.bincount(most, minlength=2))
    heights = [patch.get_height() for patch in display.ax_.patches]
    assert np.array_equal(heights, display.counts.ravel())
    assert legend_texts(display.ax_) == ["class 0", "class 1"]


def test_without_unlabelled_rows_there_is_nothing_to_draw(moons):
    _, _, classifier = moons
    for plot in (plot_history, plot_soft_labels):
        with pytest.raises(ValueError, match="fitted without unlabelled rows"):
            plot(classifier.supervised_)


def test_densities_are_normalised_and_the_models(mixed):
    frame, labels, classifier = mixed
    display = plot_densities(classifier, frame, labels)
    assert [ax.get_xlabel() for ax in display.axes_] == ["age", "height", "smoker"]
    for line, code in zip(display.axes_[0].get_lines(), range(2), strict=True):
        x, density = line.get_data()
        assert np.trapezoid(density, x) == pytest.approx(1.0, abs=0.05)
        seen = frame["age"][labels == classifier.classes_[code]]
        assert x[np.argmax(density)] == pytest.approx(seen.mean(), abs=5.0)
        assert np.corrcoef(density, norm.pdf(x, seen.mean(), seen.std()))[0, 1] > 0.9
    bars = np.array([patch.get_height() for patch in display.axes_[2].patches]).reshape(2, 2)
    assert np.allclose(bars.sum(axis=1), 1.0)
    assert [text.get_text() for text in display.axes_[2].get_xticklabels()] == ["never", "often"]
    assert legend_texts(display.axes_[0]) == ["class no", "class yes"]


def test_densities_of_chosen_columns_go_into_given_axes(mixed):
    frame, _, classifier = mixed
    _, axes = plt.subplots(1, 2)
    display = plot_densities(classifier, frame, columns=["smoker", 0], axes=axes)
    assert [ax.get_xlabel() for ax in axes] == ["smoker", "age"]
    with pytest.raises(ValueError, match="each of 2 columns, got 1"):
        display.plot(axes[0])


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch, moons):
    def missing(name):
        raise ImportError(name)

    X, _, classifier = moons
    monkeypatch.setattr(library, "import_module", missing)
    for plot in (
        lambda: plot_decision(classifier, X),
        lambda: plot_densities(classifier, X),
        lambda: plot_history(classifier),
        lambda: plot_soft_labels(classifier),
    ):
        with pytest.raises(ImportError, match=r"pip install 'safespn\[plot\]'"):
            plot()
    assert importlib.import_module("matplotlib")


def test_importing_the_module_imports_neither_matplotlib_nor_scikit_learn():
    code = "import sys, safespn.plotting; sys.exit(bool({'matplotlib', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

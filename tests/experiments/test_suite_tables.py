"""Tables of the wide comparison from trials whose figures are known."""

import re

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("pandas", reason="needs the extra [cli]")

import pandas as pd

from safespn.experiments.comparison import friedman_p_value
from safespn.experiments.outputs import Picture, Reproduction, ResultTable
from safespn.experiments.suite_description import describe
from safespn.experiments.suite_gains import (
    gain_by_table_table,
    gain_sentence,
    gain_table,
    gains,
    gains_by_table,
    prediction_table,
)
from safespn.experiments.suite_plots import curves
from safespn.experiments.suite_protocol import SuiteTable
from safespn.experiments.suite_results import FIELDS, complete, methods_in, read_recorded, write_trials
from safespn.experiments.suite_tables import budget_table, ranks, suite_claims, wins_table
from safespn.report.render import render_experiments


def trials_of(accuracy, *, budget=20, n_trials=1, **more):
    """Trials from table -> method -> accuracy; log loss is one less the accuracy."""
    rows = [
        {"table": table, "budget": budget, "trial": trial, "method": method, "accuracy": value, "log_loss": 1 - value}
        | {"macro_f1": value, "brier": 1 - value, "calibration_error": 1 - value}
        | {name: values.get(method, np.nan) for name, values in more.items()}
        for table, methods in accuracy.items()
        for method, value in methods.items()
        for trial in range(n_trials)
    ]
    return pd.DataFrame(rows).reindex(columns=FIELDS)


ACCURACY = {
    "a": {"safespn": 0.90, "labels_only": 0.80, "plain_em": 0.70, "lr": 0.85, "base": 0.5},
    "b": {"safespn": 0.80, "labels_only": 0.82, "plain_em": 0.60, "lr": 0.803, "base": 0.5},
    "c": {"safespn": 0.70, "labels_only": 0.74, "plain_em": 0.75, "lr": 0.75, "base": 0.5},
}


def cells(table: ResultTable):
    return {row[0]: dict(zip(table.header[1:], row[1:], strict=True)) for row in table.rows}


def test_means_and_ranks_of_one_budget():
    table = budget_table(trials_of(ACCURACY), 20)
    found = cells(table)
    assert table.title == "20 labels, 3 tables"
    assert list(found)[:3] == ["logistic regression", "safespn", "safespn, labels only"]  # by log loss
    assert found["safespn"]["accuracy"] == "0.800"
    assert found["safespn"]["log loss"] == "0.200"
    # Variants of ours are not ranked: of safespn, logistic regression and base rate it is first once, second twice.
    assert found["safespn"]["rank, accuracy"] == "1.67"
    assert found["logistic regression"]["rank, log loss"] == "1.33"
    assert found["safespn, labels only"]["rank, accuracy"] == "-"
    assert "Friedman" in table.note


def test_a_missing_score_leaves_a_gap_and_no_ranks():
    trials = trials_of(ACCURACY)
    trials.loc[trials["method"] == "lr", "calibration_error"] = np.nan
    found = cells(budget_table(trials, 20))
    assert found["logistic regression"]["calibration error"] == "-"
    assert found["logistic regression"]["rank, calibration error"] == "-"
    assert found["safespn"]["rank, calibration error"] == "-"
    assert found["safespn"]["rank, Brier"] == "1.67"


def test_trials_that_a_method_has_not_finished_are_left_out_for_all():
    trials = trials_of(ACCURACY)
    trials.loc[(trials["method"] == "lr") & (trials["table"] == "c"), ["accuracy", "log_loss"]] = np.nan
    assert set(complete(trials, ("safespn", "lr"))["table"]) == {"a", "b"}
    table = budget_table(trials, 20)
    assert table.title == "20 labels, 2 tables"
    assert "1 that a method has not finished or not run are left out" in table.note
    assert cells(table)["safespn"]["accuracy"] == "0.850"
    trials.loc[trials["method"] == "lr", "log_loss"] = np.nan
    assert "lr" not in methods_in(trials)


def test_wins_ties_and_losses():
    against = cells(wins_table(trials_of(ACCURACY)))
    assert against["logistic regression"]["accuracy"] == "1 / 1 / 1"
    assert against["base rate"]["accuracy"] == "3 / 0 / 0"
    assert against["base rate"]["log loss"] == "3 / 0 / 0"


def test_gains_and_harm():
    found = gains(trials_of(ACCURACY, n_trials=2), "safespn")
    np.testing.assert_allclose(found.accuracy, [0.10, -0.02, -0.04])
    np.testing.assert_allclose(found.log_loss, found.accuracy)
    assert len(found.trial_accuracy) == 6
    expected = -np.mean(found.log_loss) / np.mean([0.2, 0.18, 0.26])
    assert found.relative_log_loss == pytest.approx(expected)
    assert "on 2 of 3 tables, by more than three on 1" in gain_sentence(trials_of(ACCURACY), "safespn")
    by_method = cells(gain_table(trials_of(ACCURACY)))
    assert by_method["safespn"]["accuracy"] == "+1.33"
    assert by_method["safespn, plain EM"]["harmed tables, > 1 point"] == "2"
    assert gains(trials_of(ACCURACY), "supervised") is None


def test_what_predicts_gains():
    descriptions = pd.DataFrame(
        {"training_rows": [400.0, 200.0, 100.0], "columns": [3.0, 2.0, 9.0], "purity": [0.5, 0.5, 0.5]},
        index=list("abc"),
    )
    by_table = gains_by_table(trials_of(ACCURACY), descriptions)
    np.testing.assert_allclose(by_table["rows_per_label"], [19, 9, 4])
    rows = prediction_table(by_table).rows
    assert rows[0][:3] == ["unlabelled rows per label", "20", "+1.00"]
    assert rows[2][2:] == ["-"] * 4  # equal purities tell nothing


def test_claims_name_the_best_comparator_and_count_certificates():
    worst = {"safespn": 3.0, "plain_em": -2.0}
    rows = dict(suite_claims(trials_of(ACCURACY, worst_case=worst, fallback={"safespn": 0.0})).rows)
    assert rows["safespn: worst case of the likelihood not negative, recomputed"] == "3 of 3 fits"
    assert rows["safespn, plain EM: worst case of the likelihood not negative, recomputed"] == "0 of 3 fits"
    accuracy = rows["20 labels, 3 tables: accuracy, and the best comparator's"]
    assert accuracy == "0.800 against 0.801 (logistic regression): -0.1 points"


def test_ranks_over_all_budgets_weigh_tables_equally():
    both = pd.concat([trials_of(ACCURACY, budget=20), trials_of({"a": ACCURACY["a"]}, budget=100)])
    told = dict(suite_claims(both).rows)["average rank over all numbers of labels: accuracy"]
    # With 20 labels 5/3 over three tables, with 100 labels 1 on one table.
    assert told == "logistic regression 1.50, safespn 1.50, base rate 3.00"


def test_curves_have_only_tables_with_all_budgets():
    few = {name: ACCURACY[name] for name in ("a", "b")}
    both = pd.concat([trials_of(ACCURACY, budget=20), trials_of(few, budget=100)])
    drawn = curves(both)
    assert (drawn.methods, drawn.budgets, drawn.n_tables) == (["safespn", "labels_only", "lr"], [20, 100], 2)
    np.testing.assert_allclose(drawn.means[0], [0.15, 0.15])
    around = np.array([[0.10, 0.20], [0.20, 0.18], [0.15, 0.197]])
    around -= np.median(around, axis=0)
    np.testing.assert_allclose(drawn.errors[:, 0], around.std(axis=1, ddof=1) / np.sqrt(2))


def test_no_curves_of_one_method_or_without_a_common_table():
    assert curves(trials_of({"a": {"base": 0.5}})) is None
    apart = [trials_of({name: ACCURACY[name]}, budget=budget) for name, budget in (("a", 20), ("b", 100))]
    assert curves(pd.concat(apart)) is None


def test_one_rival_has_no_rank():
    only = {name: {"safespn": 0.5, "labels_only": 0.4} for name in "ab"}
    assert ranks(trials_of(only), 20, "accuracy")[0] == []


def test_friedman_agrees_with_scipy_and_needs_three_methods():
    scores = np.random.default_rng(0).normal(size=(12, 4)) + np.arange(4)
    assert friedman_p_value(scores) == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    assert np.isnan(friedman_p_value(scores[:, :2]))


def test_trials_survive_their_file(tmp_path):
    trials = trials_of(ACCURACY)
    write_trials(tmp_path / "trials.csv.gz", trials)
    assert (tmp_path / "trials.csv.gz").read_bytes()[4:8] == bytes(4)  # no time of writing: the same bytes again
    pd.testing.assert_frame_equal(read_recorded(tmp_path / "trials.csv.gz"), trials, check_dtype=False)


def test_purity_is_one_for_clusters_of_one_class_and_near_zero_without_any():
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], 60)
    apart = pd.DataFrame(generator.normal(size=(120, 2)) + 20 * codes[:, None], columns=["a", "b"])
    assert describe(SuiteTable("apart", apart, codes))["purity"] == 1
    noise = pd.DataFrame({"a": generator.normal(size=120), "b": ["x"] * 60 + ["y"] * 60})
    described = describe(SuiteTable("noise", noise, generator.permutation(codes)))
    assert described["purity"] < 0.4
    assert (described["columns"], described["categorical"], described["rows"]) == (2, 1, 120)
    assert described["training_rows"] == 84


def test_text_of_a_table_is_aligned():
    table = ResultTable("t", "Title", "note", ["method", "score"], [["a", "1.0"], ["longer", "10.0"]])
    assert table.text() == "Title\nmethod  score\na         1.0\nlonger   10.0"


def test_the_page_shows_pictures_below_their_tables_folds_long_tables_and_writes_minus_signs():
    long = ResultTable("long", "Long", "", ["table", "gain", "source"], [["a", "-0.5", "x-1"]] * 41, ["source"])
    made = Reproduction([ResultTable("summary", "First", "", ["a", "b"], [["c", "-"]]), long])
    made.pictures = {"last": Picture("Last", "", "<svg/>"), "curve": Picture("Curve", "", "<svg/>", "summary")}
    page = render_experiments(made, title="T", subtitle="", protocol="P", command="c")
    assert re.findall(r'<section id="(\w+)"', page) == ["summary", "curve", "long", "last", "protocol"]
    assert re.findall(r'href="#(\w+)">\w', page) == ["main", "summary", "curve", "long", "last", "protocol"]
    assert page.count("<details>") == 1
    assert "Show 41 rows" in page
    assert '<td class="n">−0.5</td><td class="wrap">x-1</td>' in page
    assert '<td class="n">–</td>' in page


def test_no_negative_zero():
    trials = trials_of({"a": {"safespn": 0.8, "labels_only": 0.80001}})
    descriptions = pd.DataFrame({"training_rows": [400.0], "columns": [3.0], "purity": [0.5]}, index=["a"])
    assert gain_by_table_table(gains_by_table(trials, descriptions)).rows[0][2:4] == ["+0.0", "+0.000"]

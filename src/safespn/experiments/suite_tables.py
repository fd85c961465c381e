"""Tables of the wide comparison: means and ranks for each number of labels, wins and losses, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safespn.experiments.comparison import average_ranks, compare, critical_difference, friedman_p_value
from safespn.experiments.outputs import ResultTable
from safespn.experiments.suite_gains import gain_sentence
from safespn.experiments.suite_results import (
    SCORES,
    VARIANTS,
    complete,
    higher_is_better,
    mean_by_table,
    methods_in,
    name_of,
)
from safespn.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

RANKED = ("accuracy", "log_loss")
"""Scores whose ranks are drawn."""
TIES = {"accuracy": 0.005, "log_loss": 0.01}
"""Means over trials that differ by no more than this, half a point or a hundredth of a nat, are a tie."""
ROUNDING = 1e-6
"""A worst case, in nats, that is negative by less is one of rounding."""


def budget_table(trials: pd.DataFrame, budget: int) -> ResultTable:
    """Means over tables, and average ranks, with one number of labels."""
    of_budget = trials[trials["budget"] == budget]
    methods = methods_in(of_budget)
    finished = complete(of_budget, methods)
    means = {score: mean_by_table(finished, score).reindex(columns=methods) for score in SCORES}
    ranked = {score: ranks(trials, budget, score) for score in SCORES}
    order = sorted(methods, key=means["log_loss"].mean().to_dict().__getitem__)
    rows = [
        [
            name_of(method),
            *(_number(float(means[score][method].mean()), 3) for score in SCORES),
            *(_number(_rank_of(method, ranked[score]), 2) for score in SCORES),
        ]
        for method in order
    ]
    n_tables = finished["table"].nunique()
    left_out = _n_trials(of_budget) - _n_trials(finished)
    note = (
        f"Means over {n_tables} tables of means over trials ({_n_trials(finished)} trials in all"
        f"{f'; {left_out} that a method has not finished or not run are left out' if left_out else ''}), and average "
        f"ranks of the default beside the comparators, 1 is best. {_significance(ranked)}"
    )
    header = ["method", *SCORES.values(), *(f"rank, {name}" for name in SCORES.values())]
    return ResultTable(f"suite_{budget}", f"{budget} labels, {n_tables} tables", note, header, rows)


Ranks = tuple[list[str], FloatArray, float, float]
"""Methods, their average ranks, best first, the critical difference and the p-value of Friedman's test."""


def ranks(trials: pd.DataFrame, budget: int, score: str) -> Ranks:
    """Rank the default and the comparators over tables; nothing where one of them lacks the score, or for one alone."""
    of_budget = trials[trials["budget"] == budget]
    methods = methods_in(of_budget)
    means = mean_by_table(complete(of_budget, methods), score).reindex(columns=methods)
    rivals = [method for method in methods if method not in VARIANTS]
    if len(rivals) < 2 or means.empty or means[rivals].isna().any(axis=None):
        return [], np.empty(0), float("nan"), float("nan")
    values = higher_is_better(means[rivals].to_numpy(), score)
    average = average_ranks(values)
    order = np.argsort(average, kind="stable")
    difference = critical_difference(len(rivals), len(values))
    return [rivals[index] for index in order], average[order], difference, friedman_p_value(values)


def _rank_of(method: str, ranked: Ranks) -> float:
    return float(ranked[1][ranked[0].index(method)]) if method in ranked[0] else float("nan")


def _significance(ranked: dict[str, Ranks]) -> str:
    told = [
        f"{SCORES[score]} {difference:.2f} (p {_p(p_value)})"
        for score, (methods, _, difference, p_value) in ranked.items()
        if methods
    ]
    if not told:
        return ""
    return (
        "Critical differences of ranks (Nemenyi, 5 %), with the p-value of Friedman's test that all methods rank "
        f"alike: {', '.join(told)}."
    )


def wins_table(trials: pd.DataFrame) -> ResultTable:
    """Count tables on which the default does better, as well and worse than each other method."""
    rows = []
    for budget in budgets_in(trials):
        of_budget = trials[trials["budget"] == budget]
        for method in methods_in(of_budget):
            if method != "safespn":
                both = complete(of_budget, ("safespn", method))
                counts = [cell for score in TIES for cell in _counts(both, method, score)]
                rows.append([name_of(method), str(budget), str(both["table"].nunique()), *counts])
    note = (
        "Tables on which safespn wins, ties and loses against each method, by means over the trials that both have "
        "finished. A tie is a difference of at most half a point of accuracy or 0.01 nats of log loss; p of "
        "Wilcoxon's signed-rank test over tables."
    )
    header = ["against", "labels", "tables", *(f"{cell}" for score in TIES for cell in (SCORES[score], "p"))]
    return ResultTable("suite_wins", "Wins, ties and losses", note, header, rows)


def _counts(trials: pd.DataFrame, method: str, score: str) -> tuple[str, str]:
    means = mean_by_table(trials, score)
    if means.empty:
        return "-", "-"
    ours, theirs = (higher_is_better(means[name].to_numpy(), score) for name in ("safespn", method))
    wins, losses = int((ours - theirs > TIES[score]).sum()), int((theirs - ours > TIES[score]).sum())
    return f"{wins} / {len(ours) - wins - losses} / {losses}", f"{compare(ours, theirs).p_value:.2g}"


def seconds_table(trials: pd.DataFrame) -> ResultTable:
    """Processor time of a fit with its predictions."""
    budgets = budgets_in(trials)
    rows = []
    for method in methods_in(trials):
        seconds = [
            trials.loc[(trials["method"] == method) & (trials["budget"] == budget), "seconds"].dropna()
            for budget in budgets
        ]
        if all(len(values) for values in seconds):
            rows.append([name_of(method), *(f"{v.median():.2f} / {v.mean():.2f} / {v.max():.1f}" for v in seconds)])
    note = "Seconds of processor time for a fit and the predictions of the test rows: median / mean / longest."
    return ResultTable("suite_seconds", "Processor time", note, ["method", *(f"{b} labels" for b in budgets)], rows)


def suite_claims(trials: pd.DataFrame) -> ResultTable:
    """Say what the trials allow to say, with the measured figures."""
    rows = []
    for budget in budgets_in(trials):
        of_budget = trials[trials["budget"] == budget]
        rows += _against_comparators(of_budget, budget)
        for method in ("safespn", "plain_em"):
            if sentence := gain_sentence(of_budget, method):
                what = "" if method == "safespn" else ", plain EM without a guard"
                rows.append([f"{budget} labels: what the unlabelled rows did{what}", sentence])
    rows += _ranks_over_budgets(trials)
    rows += _of_certificates(trials)
    note = "Computed from the trials of this run; means over tables of means over trials."
    return ResultTable("summary", "What the comparison says", note, ["question", "measured"], rows, ["measured"])


def _of_certificates(trials: pd.DataFrame) -> list[list[str]]:
    rows = []
    for method in ("safespn", "plain_em"):
        worst = trials.loc[trials["method"] == method, "worst_case"].dropna()
        if len(worst):
            what = f"{name_of(method)}: worst case of the likelihood not negative, recomputed"
            rows.append([what, f"{int((worst >= -ROUNDING).sum())} of {len(worst)} fits"])
    fallback = trials.loc[trials["method"] == "safespn", "fallback"].dropna()
    if len(fallback):
        rows.append(["safespn: supervised committee returned instead", f"{100 * fallback.mean():.1f} % of fits"])
    return rows


def _against_comparators(of_budget: pd.DataFrame, budget: int) -> list[list[str]]:
    methods = methods_in(of_budget)
    comparators = [method for method in methods if method not in ("safespn", *VARIANTS)]
    finished = complete(of_budget, methods)
    if "safespn" not in methods or not comparators or finished.empty:
        return []
    rows = []
    for score in RANKED:
        means = mean_by_table(finished, score).mean()
        best = max(comparators, key=lambda method: float(higher_is_better(means[method], score)))
        ours, theirs = float(means["safespn"]), float(means[best])
        change = (
            f"{100 * (ours - theirs):+.1f} points" if score == "accuracy" else f"{100 * (ours / theirs - 1):+.1f} %"
        )
        what = f"{budget} labels, {finished['table'].nunique()} tables: {SCORES[score]}, and the best comparator's"
        rows.append([what, f"{ours:.3f} against {theirs:.3f} ({name_of(best)}): {change}"])
    return rows


def _ranks_over_budgets(trials: pd.DataFrame) -> list[list[str]]:
    """Average ranks over all pairs of a table and a number of labels, which are not independent: no test."""
    budgets = budgets_in(trials)
    parts = [trials[trials["budget"] == budget] for budget in budgets]
    n_tables = [complete(part, methods_in(part))["table"].nunique() for part in parts]
    rows = []
    for score in RANKED:
        ranked = [ranks(trials, budget, score) for budget in budgets]
        common = [method for method in ranked[0][0] if all(method in methods for methods, *_ in ranked)]
        if len(common) > 1 and len(budgets) > 1:
            means = {name: np.average([_rank_of(name, each) for each in ranked], weights=n_tables) for name in common}
            told = ", ".join(f"{name_of(name)} {means[name]:.2f}" for name in sorted(means, key=means.__getitem__))
            rows.append([f"average rank over all numbers of labels: {SCORES[score]}", told])
    return rows


def budgets_in(trials: pd.DataFrame) -> list[int]:
    """Numbers of labels, ascending."""
    return sorted(int(budget) for budget in trials["budget"].unique())


def _n_trials(trials: pd.DataFrame) -> int:
    return len(trials.drop_duplicates(["table", "budget", "trial"]))


def _number(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _p(value: float) -> str:
    return "not defined" if np.isnan(value) else f"= {value:.1g}"

"""The paper's tables from the trials: our figures with the paper's beside them, as Markdown and CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from safespn.experiments.comparison import average_ranks, compare, critical_difference
from safespn.experiments.outputs import ResultTable
from safespn.foundation.scoring import standard_error
from safespn.typing import FloatArray

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""Data set -> trials -> table -> method -> score -> value."""

TABLE2_METHODS = (
    "supervised",
    "mcp",
    "certified",
    "plain EM",
    "oracle",
    "MCPLDA",
    "supervised univariate",
    "certified univariate",
)
TABLE3_OURS = tuple(
    f"{kind}, {variant}"
    for variant, kinds in {
        "authors' generative": ("supervised", "mcp", "oracle"),
        "authors' discriminative": ("supervised", "mcp", "oracle"),
        "generative": ("supervised", "mcp", "certified", "oracle"),
        "committee": ("labels only", "supervised", "certified", "oracle"),
        "discriminative": ("supervised", "mcp", "certified", "oracle"),
    }.items()
    for kind in kinds
)
TABLE3_OTHERS = (
    "TSVM",
    "ICLS",
    "MER",
    "self-training",
    "label spreading",
    "logistic regression",
    "GaussianNB",
    "random forest",
    "extra trees",
    "base rate",
)
SEMI_SUPERVISED = (
    *(name for name in TABLE3_OURS if name.startswith(("mcp", "certified"))),
    "TSVM",
    "ICLS",
    "MER",
    "self-training",
    "label spreading",
)
SIDE_BY_SIDE = (
    "mcp, authors' generative",
    "mcp, authors' discriminative",
    "labels only, committee",
    "supervised, committee",
    "certified, committee",
    "TSVM",
    "MER",
    "logistic regression",
    "random forest",
    "extra trees",
    "base rate",
)
PAIRS = {
    "table2": (("certified", "supervised"), ("certified univariate", "supervised univariate")),
    "table3": (
        ("certified, committee", "labels only, committee"),
        *((f"certified, {name}", f"supervised, {name}") for name in ("committee", "generative", "discriminative")),
    ),
}


@cache
def paper() -> dict[str, Any]:
    """The paper's own figures."""
    return dict(json.loads(files("safespn.experiments").joinpath("paper.json").read_text()))


def scores_of(results: Results, name: str, table: str, method: str, score: str) -> FloatArray:
    """One score of one method on a data set, over trials; F1 decisions fall back to a method's own decisions."""
    fallback = "f1" if score == "f1_decision" else score
    values = [trial[table][method].get(score, trial[table][method].get(fallback, np.nan)) for trial in results[name]]
    return np.array(values, dtype=np.float64)


def table1(data: Sequence[Bunch]) -> ResultTable:
    """Sizes of the data sets, the paper's and those really loaded."""
    rows = []
    for table in data:
        n_classes = len(np.unique(table.target))
        printed = paper()["table1"].get(table.name, ["-"] * 3)
        varies = int((table.data.std(axis=0) > 0).sum())
        ours = [*table.data.shape, n_classes, 2 * varies + n_classes]
        rows.append([table.name, *map(str, printed), *map(str, ours), _place(table.source)])
    header = ["data set", "paper N", "paper D", "paper K", "N", "D", "K", "labelled rows", "source"]
    note = (
        "N rows, D features, K classes: as the paper prints them and as loaded. The files that the authors published "
        "differ from their table. Labelled rows are 2D+K, D without features of zero variance."
    )
    return ResultTable("table1", "Table 1. Data sets", note, header, rows)


def _place(source: str) -> str:
    return source if not source.endswith(".csv") else "file"


def table2(results: Results) -> ResultTable:
    """Mean test log-likelihood."""
    note = (
        "Mean test log p(x, y) in nats per row ± standard error over trials; z-scored features. The first four columns "
        "are the paper's, whose scale cannot be reproduced from its description. Univariate: leaves of one column, "
        "as in the paper, and a structure of depth 4; narrow leaves on repeated values (zeros, rounded numbers) can "
        "raise its likelihood without being informative."
    )
    printed = ("supervised", "SSL", "oracle", "MCPLDA")
    return _table("table2", "Table 2. Test log-likelihood", note, results, TABLE2_METHODS, "log_likelihood", 2, printed)


def table3(results: Results) -> list[ResultTable]:
    """F1, and the other scores, of the classifiers."""
    methods = (*TABLE3_OURS, *TABLE3_OTHERS)
    f1 = (
        "F1 of the most probable class ± standard error over trials; the minority class is positive for two classes, "
        "macro-averaged for more. Every method sees the labels of the labelled and the validation rows. Columns "
        "\"authors'\" have the authors' own setting, univariate LearnSPN of depth 4 and mcp, which learns from the "
        "labelled rows and stops early on the validation rows; their supervised model is the one it starts from."
    )
    threshold = (
        "F1 ± standard error over the same trials, where methods with probabilities decide for F1 by a threshold "
        "computed from the probabilities of unlabelled rows; TSVM, ICLS and the paper's take their own decisions."
    )
    beside = (
        "F1 of the most probable class: the paper's semi-supervised column; the authors' own setting run here; the "
        "default classifier, its supervised members and the same classifier without unlabelled rows; what people would "
        "use instead, on the same trials."
    )
    printed = ("supervised", "SSL", "oracle", "TSVM", "ICLS", "MER")
    more = "Mean ± standard error over the same trials"
    return [
        _table("table3_side_by_side", "Table 3, side by side", beside, results, SIDE_BY_SIDE, "f1", 3, ("SSL",)),
        _table("table3", "Table 3. F1", f1, results, methods, "f1", 3, printed),
        _table("table3_f1_threshold", "Table 3, F1 by thresholds", threshold, results, methods, "f1_decision", 3),
        _table("table3_macro_f1", "Table 3, macro-F1", f"{more}.", results, methods, "macro_f1", 3),
        _table("table3_accuracy", "Table 3, accuracy", f"{more}.", results, methods, "accuracy", 3),
        _table("table3_log_loss", "Table 3, log loss", f"{more}; lower is better.", results, methods, "log_loss", 3),
    ]


def _table(
    name: str,
    title: str,
    note: str,
    results: Results,
    methods: Sequence[str],
    score: str,
    digits: int,
    printed: Sequence[str] = (),
) -> ResultTable:
    source = name.split("_")[0]
    rows, means = [], []
    for data_set in results:
        theirs = [paper()[source].get(data_set, {}).get(column) for column in printed]
        ours = [scores_of(results, data_set, source, method, score) for method in methods]
        means.append([np.nan if cell is None else cell[0] for cell in theirs] + [values.mean() for values in ours])
        cells = ["-" if cell is None else f"{cell[0]:.{digits}f}±{cell[1]:g}" for cell in theirs]
        rows.append([data_set, *cells, *(_mean(values, digits) for values in ours)])
    overall = np.array(means).mean(axis=0)
    rows.append(["mean", *("-" if np.isnan(value) else f"{value:.{digits}f}" for value in overall)])
    return ResultTable(name, title, note, ["data set", *(f"paper: {column}" for column in printed), *methods], rows)


def _mean(values: FloatArray, digits: int) -> str:
    if np.isnan(values).any():
        return "-"
    error = standard_error(values)
    return f"{values.mean():.{digits}f}" + ("" if np.isinf(error) else f"±{error:.{digits}f}")


def comparisons(results: Results, table: str) -> ResultTable:
    """Semi-supervised against supervised on each data set."""
    score, unit = ("log_likelihood", "nats") if table == "table2" else ("f1", "F1")
    rows = []
    for method, baseline in PAIRS[table]:
        for data_set in results:
            pair = compare(*(scores_of(results, data_set, table, name, score) for name in (method, baseline)))
            figures = [f"{pair.difference:+.3f}", f"{pair.p_value:.2g}", f"{pair.effect:+.2f}"]
            rows.append([method, baseline, data_set, *figures, f"{100 * pair.harm_rate:.0f} %"])
    note = (
        "Against its own supervised model, and against the same classifier without unlabelled rows where it was run, "
        f"on the same trials: mean difference in {unit}, p-value of Wilcoxon's signed-rank test, rank-biserial "
        "correlation, and the harm rate, the share of trials that are worse by more than 0.01."
    )
    header = ["method", "against", "data set", "difference", "p", "effect", "harm rate"]
    return ResultTable(f"{table}_paired", f"Table {table[-1]}, semi-supervised against supervised", note, header, rows)


def ranks(results: Results, score: str) -> tuple[list[str], FloatArray, float]:
    """Average ranks of the semi-supervised methods of Table 3 over data sets, best first, and the critical difference.

    Methods without the score are left out.
    """
    means = {
        method: np.array([scores_of(results, name, "table3", method, score).mean() for name in results])
        for method in SEMI_SUPERVISED
    }
    complete = [method for method, values in means.items() if not np.isnan(values).any()]
    scores = np.column_stack([means[method] for method in complete])
    average = average_ranks(-scores if score == "log_loss" else scores)
    order = np.argsort(average, kind="stable")
    return [complete[index] for index in order], average[order], critical_difference(len(complete), len(scores))


RANKED = {"f1": "F1", "f1_decision": "F1 by thresholds", "log_loss": "log loss"}
"""Scores by which methods are ranked."""


def rank_table(results: Results) -> ResultTable:
    """Average ranks in F1 and in log loss."""
    by_score = {score: ranks(results, score) for score in RANKED}
    rows = []
    for score, (methods, average, _) in by_score.items():
        rows += [[RANKED[score], method, f"{rank:.2f}"] for method, rank in zip(methods, average, strict=True)]
    differences = ", ".join(f"{by_score[score][2]:.2f}" for score in by_score)
    note = (
        "Average rank over the data sets of every semi-supervised method, 1 is best. Ranks that differ by less than "
        f"the critical difference of Nemenyi's test at 5 % ({differences}) do not differ significantly."
    )
    return ResultTable("ranks", "Average ranks", note, ["score", "method", "average rank"], rows)

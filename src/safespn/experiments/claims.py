"""What the tables say, as a short list of checks with the measured figures."""

from __future__ import annotations

import numpy as np

from safespn.experiments.comparison import compare
from safespn.experiments.outputs import ResultTable
from safespn.experiments.tables import PAIRS, RANKED, Results, paper, ranks, scores_of


def claims(results: Results) -> ResultTable:
    """Check each claim that the trials allow to check."""
    present = {table for trials in results.values() for trial in trials for table in trial}
    rows = []
    if "table2" in present:
        rows += _of_table2(results)
    if "table3" in present:
        rows += _of_table3(results)
    note = "Computed from the trials of this run. Data sets in brackets are those where a claim does not hold."
    return ResultTable("summary", "What the tables say", note, ["claim", "measured"], rows, ["measured"])


def _of_table2(results: Results) -> list[list[str]]:
    def values(name: str, method: str) -> np.ndarray:
        return scores_of(results, name, "table2", method, "log_likelihood")

    def mean_above(method: str, baseline: str) -> dict[str, bool]:
        return {name: bool(values(name, method).mean() >= values(name, baseline).mean()) for name in results}

    pairs = {name: compare(values(name, "certified"), values(name, "supervised")) for name in results}
    above = {name: pair.difference > 0 and pair.p_value < 0.01 for name, pair in pairs.items()}
    return [
        *_of_certificates(results, "certified", "committees"),
        *_of_certificates(results, "certified univariate", "univariate networks"),
        ["likelihood: certified above supervised (p < 0.01)", _count(above)],
        ["likelihood: certified at least MCPLDA", _count(mean_above("certified", "MCPLDA"))],
        [
            "likelihood: certified with univariate leaves at least MCPLDA",
            _count(mean_above("certified univariate", "MCPLDA")),
        ],
        ["likelihood: certified at least mcp, which uses validation labels", _count(mean_above("certified", "mcp"))],
    ]


def _of_certificates(results: Results, method: str, kind: str) -> list[list[str]]:
    """Whether the worst cases of one kind of certified fits hold, and how many of these fits gave up."""
    worst, fallback = (
        np.concatenate([scores_of(results, name, "table2", method, score) for name in results])
        for score in ("worst_case", "fallback")
    )
    return [
        [f"{kind}: worst case not negative, recomputed", f"{np.sum(worst >= -1e-6)} of {len(worst)} certified fits"],
        [f"{kind}: supervised model returned instead", f"{100 * fallback.mean():.1f} % of certified fits"],
    ]


def _of_table3(results: Results) -> list[list[str]]:
    printed = {name: paper()["table3"][name]["SSL"][0] for name in results if name in paper()["table3"]}
    rows = [["F1: mean of the paper's semi-supervised column", f"{np.mean(list(printed.values())):.3f}"]]
    for method in ("mcp, authors' generative", "mcp, authors' discriminative", "logistic regression", "random forest"):
        rows.append([f"F1: mean of {method}", _mean_f1(results, method)])
    for method, baseline in PAIRS["table3"]:
        rows += [row for row in _of_method(results, method, baseline, printed) if row not in rows]
    for score, label in RANKED.items():
        methods, average, _ = ranks(results, score)
        best = ", ".join(f"{method} {rank:.2f}" for method, rank in list(zip(methods, average, strict=True))[:4])
        rows.append([f"{label}: best average ranks of semi-supervised methods", best])
    return rows


def _of_method(results: Results, method: str, baseline: str, printed: dict[str, float]) -> list[list[str]]:
    """One of our semi-supervised columns against the paper's and against its own supervised model."""

    def values(name: str, column: str) -> np.ndarray:
        return scores_of(results, name, "table3", column, "f1")

    pairs = {name: compare(values(name, method), values(name, baseline)) for name in results}
    harm = np.mean([pair.harm_rate for pair in pairs.values()])
    at_least = {name: bool(values(name, method).mean() >= figure) for name, figure in printed.items()}
    not_worse = {name: not pair.significantly_worse for name, pair in pairs.items()}
    better = {name: pair.difference > 0 and pair.p_value < 0.05 for name, pair in pairs.items()}
    return [
        [f"F1: mean of {method}", _mean_f1(results, method)],
        [f"F1: {method} at least the paper's semi-supervised column", _count(at_least)],
        [f"F1: {method} not significantly worse than {baseline}", _count(not_worse)],
        [f"F1: {method} significantly better than {baseline}", f"{sum(better.values())} of {len(better)}"],
        [f"F1: {method} worse than {baseline} by more than a point", f"{100 * harm:.1f} % of trials"],
    ]


def _mean_f1(results: Results, method: str) -> str:
    mean, other = (
        np.mean([scores_of(results, name, "table3", method, score).mean() for name in results])
        for score in ("f1", "f1_decision")
    )
    return f"{mean:.3f} (by thresholds {other:.3f})"


def _count(holds: dict[str, bool]) -> str:
    failing = [name for name, held in holds.items() if not held]
    return f"{len(holds) - len(failing)} of {len(holds)}" + (f" ({', '.join(failing)})" if failing else "")

"""What the unlabelled rows did: gains against the same classifier fitted to the labelled rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from safespn.experiments.comparison import compare
from safespn.experiments.outputs import ResultTable
from safespn.experiments.suite_results import complete, mean_by_table, name_of
from safespn.foundation.scoring import HARM
from safespn.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

COMPARED = ("safespn", "supervised", "plain_em")
EXPLAINED = {
    "supervised": (
        "Supervised members: the committee before its members are fitted to the unlabelled rows, which have shaped its "
        "components."
    ),
    "plain_em": "Plain EM: no guard.",
}
SEVERE_HARM = 0.03
PREDICTORS = {
    "rows_per_label": "unlabelled rows per label",
    "columns": "columns",
    "purity": "cluster purity above the base rate",
}
"""What might tell in advance where unlabelled rows help; the purity needs all labels and is for description only."""


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of a method over labels only with one number of labels.

    Parameters
    ----------
    tables : list of str
    accuracy : array of shape (n_tables,)
        Gain in accuracy, mean over trials.
    log_loss : array of shape (n_tables,)
        Fall of the log loss, mean over trials.
    base_log_loss : float
        Mean log loss of labels only.
    trial_accuracy : array of shape (n_trials,)
        Gain in accuracy of each trial.
    """

    tables: list[str]
    accuracy: FloatArray
    log_loss: FloatArray
    base_log_loss: float
    trial_accuracy: FloatArray

    @property
    def relative_log_loss(self) -> float:
        """Change of the mean log loss."""
        return float(-self.log_loss.mean() / self.base_log_loss)


def gains(of_budget: pd.DataFrame, method: str) -> Gains | None:
    """Compute the gains of a method; None where it was not run beside labels only."""
    finished = complete(of_budget, (method, "labels_only"))
    if finished.empty:
        return None
    accuracy, log_loss = (mean_by_table(finished, score) for score in ("accuracy", "log_loss"))
    by_trial = finished.pivot_table(index=["table", "trial"], columns="method", values="accuracy")
    return Gains(
        list(accuracy.index),
        (accuracy[method] - accuracy["labels_only"]).to_numpy(),
        (log_loss["labels_only"] - log_loss[method]).to_numpy(),
        float(log_loss["labels_only"].mean()),
        (by_trial[method] - by_trial["labels_only"]).to_numpy(),
    )


def gain_sentence(of_budget: pd.DataFrame, method: str) -> str:
    """Say in one sentence what the unlabelled rows did; empty where it is not known."""
    found = gains(of_budget, method)
    if found is None:
        return ""
    n_harmed, n_severe = (int((found.accuracy < -limit).sum()) for limit in (HARM, SEVERE_HARM))
    return (
        f"{100 * found.accuracy.mean():+.2f} points of accuracy (p = {_p(found.accuracy)}), "
        f"log loss {100 * found.relative_log_loss:+.1f} % (p = {_p(found.log_loss)}); worse by more than one point on "
        f"{n_harmed} of {len(found.tables)} tables, by more than three on {n_severe}"
    )


def gain_table(trials: pd.DataFrame) -> ResultTable:
    """Gains over labels only: means over tables, tests, and how often there was harm."""
    rows = []
    for method in COMPARED:
        for budget, of_budget in trials.groupby("budget"):
            if (found := gains(of_budget, method)) is not None:
                rows.append([name_of(method), str(budget), *_gain_cells(found)])
    note = (
        "Against the same classifier fitted to the labelled rows alone: gain in accuracy in points, change of the mean "
        "log loss, p-values of Wilcoxon's signed-rank test over tables; tables whose mean over trials, and trials "
        "whose accuracy, is worse by more than one and by more than three points."
    )
    shown = {row[0] for row in rows}
    note += "".join(f" {text}" for method, text in EXPLAINED.items() if name_of(method) in shown)
    harm = ["harmed tables, > 1 point", "> 3 points", "harmed trials, > 1 point", "> 3 points"]
    header = ["method", "labels", "tables", "accuracy", "p", "log loss", "p", *harm]
    return ResultTable("suite_gains", "What the unlabelled rows did", note, header, rows)


def _gain_cells(found: Gains) -> list[str]:
    tables = [str(int((found.accuracy < -limit).sum())) for limit in (HARM, SEVERE_HARM)]
    shares = [f"{100 * (found.trial_accuracy < -limit).mean():.0f} %" for limit in (HARM, SEVERE_HARM)]
    return [
        str(len(found.tables)),
        f"{100 * found.accuracy.mean():+.2f}",
        _p(found.accuracy),
        f"{100 * found.relative_log_loss:+.1f} %",
        _p(found.log_loss),
        *tables,
        *shares,
    ]


def _p(differences: FloatArray) -> str:
    return f"{compare(differences, np.zeros(len(differences))).p_value:.2g}"


def gains_by_table(trials: pd.DataFrame, descriptions: pd.DataFrame) -> pd.DataFrame:
    """One row per table and number of labels: gains of each method, and what might predict them.

    Parameters
    ----------
    descriptions : data frame
        From :func:`safespn.experiments.suite_description.describe`, one row per table, indexed by name.
    """
    import pandas as pd

    parts = []
    for budget, of_budget in trials.groupby("budget"):
        found = {method: gains(of_budget, method) for method in COMPARED}
        columns = {
            (method, score): pd.Series(getattr(each, score), each.tables)
            for method, each in found.items()
            if each is not None
            for score in ("accuracy", "log_loss")
        }
        if columns:
            part = pd.DataFrame({f"{method} {score}": values for (method, score), values in columns.items()})
            part.insert(0, "budget", budget)
            parts.append(part.rename_axis("table").reset_index())
    if not parts:
        return pd.DataFrame()
    joined = pd.concat(parts, ignore_index=True).join(descriptions, on="table")
    joined["rows_per_label"] = (joined["training_rows"] - joined["budget"]) / joined["budget"]
    return joined.sort_values(["table", "budget"], ignore_index=True)


def gain_by_table_table(by_table: pd.DataFrame) -> ResultTable:
    """Show the gains on each table."""
    methods = [method for method in COMPARED if f"{method} accuracy" in by_table]
    rows = []
    for _, row in by_table.iterrows():
        of_methods = [
            cell
            for method in methods
            for cell in (_signed(100 * row[f"{method} accuracy"], 1), _signed(row[f"{method} log_loss"], 3))
        ]
        predictors = [f"{row['rows_per_label']:.1f}", f"{row['columns']:.0f}", f"{row['purity']:.2f}"]
        rows.append([str(row["table"]), str(int(row["budget"])), *of_methods, *predictors])
    header = [f"{name_of(method)}, {score}" for method in methods for score in ("accuracy", "log loss")]
    note = (
        "Mean over trials of the gain against labels only on each table: points of accuracy, and fall of the log loss "
        "in nats (positive is better)."
    )
    title = "What the unlabelled rows did, by table"
    return ResultTable("suite_gains_by_table", title, note, ["table", "labels", *header, *PREDICTORS.values()], rows)


def _signed(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:+.{digits}f}"  # no -0


def prediction_table(by_table: pd.DataFrame) -> ResultTable:
    """Rank correlations of the default's gains with what might predict them."""
    rows = []
    for budget, part in by_table.groupby("budget"):
        for name, label in PREDICTORS.items():
            cells = [
                cell
                for score in ("accuracy", "log_loss")
                for cell in _correlation(part[name].to_numpy(), part[f"safespn {score}"].to_numpy())
            ]
            rows.append([label, str(budget), *cells])
    note = (
        "Spearman's correlation over tables of the gain of safespn against labels only with what might tell in advance "
        "where unlabelled rows help. Cluster purity: share of the training rows that are of the commonest class of "
        "their k-means cluster (as many clusters as classes), scaled: the base rate is 0 and pure clusters are 1; it "
        "needs all labels and describes the tables only."
    )
    header = ["predictor", "labels", "gain in accuracy", "p", "gain in log loss", "p"]
    return ResultTable("suite_predictors", "Where the unlabelled rows help", note, header, rows)


def _correlation(predictor: FloatArray, gain: FloatArray) -> tuple[str, str]:
    known = np.isfinite(predictor) & np.isfinite(gain)
    if known.sum() < 3 or np.ptp(predictor[known]) == 0 or np.ptp(gain[known]) == 0:
        return "-", "-"
    result = stats.spearmanr(predictor[known], gain[known])
    return f"{result.statistic:+.2f}", f"{result.pvalue:.2g}"

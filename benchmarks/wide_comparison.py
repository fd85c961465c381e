"""The classifier on many tables that nobody chose for it, beside what people would use instead.

OMP_NUM_THREADS=1 python benchmarks/wide_comparison.py run --data DIR --out ours.csv [--trials 3] [--budgets 20,100,300]
python benchmarks/wide_comparison.py show ours.csv comparators.csv

The protocol is that of `safespn.experiments.suite_protocol`. `run` fits the default classifier to all rows and to the
labelled rows alone, scores both and the committee of supervised members, and recomputes the worst case from the two
joint log-likelihoods. Rows are appended trial by trial: an interrupted run goes on. `show` prints means over tables and
average ranks beside the comparators' trials, read from a file of the same columns.

Settings are chosen on trials 100 and up, others are reported.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

from safespn import SafeSPNClassifier
from safespn.experiments.suite_protocol import draw_suite_trial, load_table, suite_scores, table_names

SCORES = ["accuracy", "macro_f1", "log_loss", "brier"]
FIELDS = ["table", "budget", "trial", "method", *SCORES, "seconds", "error", "worst_case", "calibration_error"]
OURS = ["safespn", "supervised", "labels_only"]


def run_one(folder, name, budget, number, out):
    warnings.simplefilter("ignore")
    trial = draw_suite_trial(load_table(folder, name), budget, number)
    if trial is None:
        return
    frame, known = trial.table.features, trial.labels >= 0
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in (trial.train, trial.test))
    lines = []

    def fit_and_score(method, rows, labels):
        started = time.process_time()
        model = SafeSPNClassifier(random_state=number, n_jobs=1).fit(rows, labels)
        model.predict_proba(test)
        note(method, model, time.process_time() - started)
        return model

    def note(method, model, seconds):
        scores = suite_scores(model.predict_proba(test), model.classes_, trial)
        values = [f"{scores[score]:.6f}" for score in SCORES]
        rest = [f"{seconds:.2f}", "", f"{model.safety_.worst_case:.6g}", f"{scores['calibration_error']:.5f}"]
        lines.append([name, budget, number, method, *values, *rest])

    classifier = fit_and_score("safespn", train, trial.labels)
    note("supervised", classifier.supervised_, 0.0)
    fit_and_score("labels_only", train[known], trial.labels[known])
    check_worst_case(classifier, train, trial.labels)
    with Path(out).open("a") as file:
        file.writelines(",".join(map(str, line)) + "\n" for line in lines)


def check_worst_case(classifier, rows, labels):
    gains = classifier.joint_log_likelihood(rows) - classifier.supervised_.joint_log_likelihood(rows)
    known = np.nonzero(labels >= 0)[0]
    worst = gains[known, labels[known]].sum() + gains[labels < 0].min(axis=1).sum()
    assert worst >= -1e-6, worst
    np.testing.assert_allclose(worst, classifier.safety_.worst_case, rtol=1e-6, atol=1e-6)


def run(options):
    if not Path(options.out).exists():
        Path(options.out).write_text(",".join(FIELDS) + "\n")
    done = set(pd.read_csv(options.out)[["table", "budget", "trial"]].itertuples(index=False, name=None))
    trials = range(options.first_trial, options.first_trial + options.trials)
    jobs = [
        (name, int(budget), trial)
        for trial in trials
        for budget in options.budgets.split(",")
        for name in table_names(options.data)
        if (name, int(budget), trial) not in done
    ]
    Parallel(options.jobs, batch_size=1)(delayed(run_one)(options.data, *job, options.out) for job in jobs)


def show(options):
    key = ["table", "budget", "trial"]
    data = pd.concat([pd.read_csv(path) for path in options.files])
    of_ours = pd.MultiIndex.from_frame(data.loc[data.method == "safespn", key])
    data = data[pd.MultiIndex.from_frame(data[key]).isin(of_ours)]
    fits = data[data.method == "safespn"]
    print(
        f"{len(fits)} fits, worst case negative in {(fits.worst_case < -1e-6).sum()}, {fits.seconds.mean():.1f} s each"
    )
    cells = data.groupby(["table", "budget", "method"])[SCORES].mean().reset_index()
    for budget, of_budget in cells.groupby("budget"):
        n_tables, n_trials = of_budget.table.nunique(), fits[fits.budget == budget].trial.nunique()
        print(f"\n{budget} labels, {n_tables} tables, {n_trials} trials")
        print(with_ranks(of_budget).round(3).to_string())
        print(gain(of_budget))
    print("\nranks over all budgets\n", with_ranks(cells)[["rank accuracy", "rank log_loss"]].round(2).to_string())


def with_ranks(cells):
    means = cells.groupby("method")[SCORES].mean()
    rivals = cells[~cells.method.isin(OURS[1:])]
    for score in ("accuracy", "log_loss"):
        wide = rivals.pivot_table(index=["table", "budget"], columns="method", values=score)
        means[f"rank {score}"] = wide.rank(axis=1, ascending=score == "log_loss").mean()
    return means.sort_values("log_loss")


def gain(cells):
    wide = {
        score: cells.pivot_table(index="table", columns="method", values=score) for score in ("accuracy", "log_loss")
    }
    points = 100 * (wide["accuracy"]["safespn"] - wide["accuracy"]["labels_only"])
    losses = wide["log_loss"]["safespn"] - wide["log_loss"]["labels_only"]
    share = wide["log_loss"]["safespn"].mean() / wide["log_loss"]["labels_only"].mean() - 1
    return (
        f"unlabelled rows: {points.mean():+.2f} points of accuracy (p = {wilcoxon(points).pvalue:.3f}), "
        f"log loss {share:+.1%} (p = {wilcoxon(losses).pvalue:.3f}); worse by more than one point on "
        f"{(points < -1).sum()} of {len(points)} tables, by more than three on {(points < -3).sum()}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    part = commands.add_parser("run")
    part.add_argument("--data", required=True)
    part.add_argument("--out", required=True)
    part.add_argument("--budgets", default="20,100,300")
    part.add_argument("--trials", type=int, default=3)
    part.add_argument("--first-trial", type=int, default=0)
    part.add_argument("--jobs", type=int, default=1)
    part.set_defaults(do=run)
    part = commands.add_parser("show")
    part.add_argument("files", nargs="+")
    part.set_defaults(do=show)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()

"""The default classifier on the paper's ten tables, by the protocol of its Table 3, beside what people would use.

SAFESPN_DATA=... OMP_NUM_THREADS=1 python benchmarks/paper_tables.py [--trials 20] [--jobs 2]

All methods see the labels of the labelled and the validation rows. "labels only" is the same classifier without the
unlabelled rows. The worst case is recomputed from the two joint log-likelihoods of every fit.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from safespn import SafeSPNClassifier, datasets
from safespn.experiments.methods import Rows
from safespn.experiments.protocol import draw_trial
from safespn.experiments.scores import certificate, score_model

COLUMNS = ["accuracy", "f1", "f1_decision", "log_loss"]


def run(name, number):
    warnings.simplefilter("ignore")
    table = datasets.load(name)
    trial = draw_trial(table.data, np.unique(table.target, return_inverse=True)[1], number)
    rows = Rows(trial, with_validation_labels=True)
    ours = SafeSPNClassifier(random_state=trial.seed, n_jobs=1).fit(rows.table, rows.codes)
    models = {
        "safespn": ours,
        "safespn, supervised members": ours.supervised_,
        "safespn, labels only": SafeSPNClassifier(random_state=trial.seed, n_jobs=1).fit(*rows.labelled),
        "logistic regression": LogisticRegression(max_iter=1000).fit(*rows.labelled),
        "random forest": RandomForestClassifier(300, random_state=trial.seed).fit(*rows.labelled),
        "extra trees": ExtraTreesClassifier(300, min_samples_leaf=2, random_state=trial.seed).fit(*rows.labelled),
        "base rate": DummyClassifier(strategy="prior").fit(*rows.labelled),
    }
    worst = certificate(ours, rows.table, rows.codes)["worst_case"]
    return [
        {"table": name, "method": label, "worst": worst, **score_model(each, trial)} for label, each in models.items()
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    jobs = [(name, number) for number in range(options.trials) for name in datasets.NAMES]
    runs = Parallel(options.jobs, batch_size=1)(delayed(run)(*job) for job in jobs)
    scores = pd.DataFrame([row for rows in runs for row in rows])
    worst = scores.loc[scores.method == "safespn", "worst"]
    print(f"{len(worst)} fits, worst case negative in {(worst < -1e-6).sum()}, zero in {(worst.abs() <= 1e-6).sum()}")
    print(scores.groupby("method")[COLUMNS].mean().sort_values("log_loss").round(3).to_string())
    for column in ("accuracy", "log_loss"):
        print(f"\n{column}\n", scores.pivot_table(index="table", columns="method", values=column).round(3).to_string())


if __name__ == "__main__":
    main()

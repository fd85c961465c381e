"""The wide comparison: one protocol for many tables with few labels and many unlabelled rows.

Classes with fewer than ten rows are dropped; 30 % of the rows, 2,000 at most, are the test rows, stratified; of the
rest 3,000 at most are used. The budget of labels is drawn stratified, at least two per class; the others are
unlabelled. A budget needs twice as many training rows. Every random choice depends on table, budget and trial only.
Probabilities are clipped at 0.001 and scaled to sum one for everyone.
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from safespn.exceptions import DatasetNotFoundError, TableError
from safespn.typing import FloatArray, IntArray

BUDGETS = (20, 100, 300)
FEWEST_ROWS_OF_CLASS = 10
TEST_SHARE = 0.3
MOST_TEST_ROWS = 2000
MOST_TRAINING_ROWS = 3000
CLIPPED_AT = 1e-3
N_CALIBRATION_BINS = 10
PROTOCOL = (
    f"Classes with fewer than {FEWEST_ROWS_OF_CLASS} rows are dropped; {100 * TEST_SHARE:.0f} % of the rows, "
    f"{MOST_TEST_ROWS:,} at most, are test rows, stratified; of the rest {MOST_TRAINING_ROWS:,} at most are used. The "
    "labels are drawn stratified, at least two per class; the other rows are unlabelled. A number of labels needs "
    f"twice as many training rows. Probabilities are clipped at {CLIPPED_AT} and scaled to sum one for "
    f"everyone; the calibration error is that of the most probable class in {N_CALIBRATION_BINS} equally wide bins. "
    "safespn sees the raw table, with its defaults; comparators see one-hot codes, medians for gaps and z-scores, with "
    "scikit-learn's settings except: 300 trees, two rows per leaf of extra trees, SVC calibrated by cross-validation, "
    "leaves of histogram gradient boosting that fit the number of labels, label spreading with ten neighbours, "
    "self-training of logistic regression at 0.9. Only label spreading and self-training see unlabelled rows. "
    "Settings of safespn were chosen on trials 100 and up."
)
"""The protocol in words, for people who read results."""


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """A table of the suite: a data frame of features, and class numbers."""

    name: str
    features: Any
    codes: IntArray

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1


@dataclass(frozen=True, eq=False)
class SuiteTrial:
    """Training rows with some labels (-1 elsewhere), and test rows."""

    table: SuiteTable
    train: IntArray
    test: IntArray
    labels: IntArray


def table_names(folder: str | Path) -> list[str]:
    """Names of the tables in a folder of files ``NAME.csv`` or ``NAME.csv.gz``, sorted."""
    names = sorted({path.name.split(".csv")[0] for path in Path(folder).glob("*.csv*")} - {"index"})
    if not names:
        raise DatasetNotFoundError(f"{folder} holds no table: expected files NAME.csv or NAME.csv.gz")
    return names


def load_table(folder: str | Path, name: str) -> SuiteTable:
    """Read a table: features first, the label in the column ``class``, empty cells missing."""
    import pandas as pd

    paths = [Path(folder, f"{name}{ending}") for ending in (".csv.gz", ".csv")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise DatasetNotFoundError(f"{folder} has neither {paths[0].name} nor {paths[1].name}")
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"class": str})
    except ValueError as error:
        raise TableError(f"{path} is no CSV table: {error}") from error
    if "class" not in frame:
        raise TableError(f"{path} has no column 'class'; name the column of labels so, or move the file away")
    counts = frame["class"].map(frame["class"].value_counts())
    frame = frame[counts >= FEWEST_ROWS_OF_CLASS].reset_index(drop=True)
    codes = np.unique(frame.pop("class").to_numpy(dtype=str), return_inverse=True)[1]
    if len(codes) == 0 or codes.max() == 0:
        raise TableError(f"{path}: fewer than two classes have {FEWEST_ROWS_OF_CLASS} rows or more")
    return SuiteTable(name, frame, codes)


def draw_suite_trial(table: SuiteTable, budget: int, trial: int) -> SuiteTrial | None:
    """Draw training rows, test rows and labels; None where the table is too small for the budget."""
    codes = table.codes
    generator = np.random.default_rng([zlib.crc32(table.name.encode()), budget, trial])
    order = generator.permutation(len(codes))
    n_test = min(MOST_TEST_ROWS, round(TEST_SHARE * len(codes)))
    test, train = [], []
    for code in np.unique(codes):
        rows = order[codes[order] == code]
        cut = max(2, round(n_test * len(rows) / len(codes)))
        test.extend(rows[:cut])
        train.extend(rows[cut:])
    training = generator.permutation(train)
    if len(training) > MOST_TRAINING_ROWS:
        shares = [(training[codes[training] == code], (codes[training] == code).mean()) for code in np.unique(codes)]
        kept = [rows[: max(6, round(MOST_TRAINING_ROWS * share))] for rows, share in shares]
        training = generator.permutation(np.concatenate(kept))
    if len(training) < 2 * budget:
        return None
    labels = np.full(len(training), -1)
    for code in np.unique(codes):
        rows = np.nonzero(codes[training] == code)[0]
        n_labelled = max(2, round(budget * len(rows) / len(training)))
        labels[generator.permutation(rows)[:n_labelled]] = code
    return SuiteTrial(table, training, np.array(test), labels)


def numbers_of(trial: SuiteTrial) -> FloatArray:
    """All rows as numbers: one-hot codes, medians for gaps, z-scores with the training rows."""
    import pandas as pd

    coded = pd.get_dummies(trial.table.features, dummy_na=False).astype(float).to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value in the training rows become zeros
        middle = np.nanmedian(coded[trial.train], axis=0)
    coded = np.where(np.isnan(coded), np.nan_to_num(middle), coded)
    spread = coded[trial.train].std(axis=0)
    kept = spread > 1e-12
    return np.asarray((coded[:, kept] - coded[trial.train][:, kept].mean(axis=0)) / spread[kept])


def suite_scores(probabilities: FloatArray, classes: IntArray, trial: SuiteTrial) -> dict[str, float]:
    """Scores on the test rows; ``classes`` names the columns of ``probabilities``."""
    codes, n_classes = trial.table.codes[trial.test], trial.table.n_classes
    full = np.zeros((len(codes), n_classes))
    full[:, np.asarray(classes, dtype=np.intp)] = np.nan_to_num(probabilities)
    full = np.clip(full, CLIPPED_AT, None)
    full /= full.sum(axis=1, keepdims=True)
    predicted = full.argmax(axis=1)
    return {
        "accuracy": float((predicted == codes).mean()),
        "macro_f1": float(f1_score(codes, predicted, average="macro")),
        "log_loss": float(-np.log(full[np.arange(len(codes)), codes]).mean()),
        "brier": float(((full - np.eye(n_classes)[codes]) ** 2).sum(axis=1).mean()),
        "calibration_error": _calibration_error(full.max(axis=1), predicted == codes),
    }


def _calibration_error(confidence: FloatArray, right: Any) -> float:
    """Expected calibration error of the most probable class, in equally wide bins."""
    bins = np.minimum((confidence * N_CALIBRATION_BINS).astype(np.intp), N_CALIBRATION_BINS - 1)
    difference = np.bincount(bins, confidence - right, minlength=N_CALIBRATION_BINS)
    return float(np.abs(difference).sum() / len(bins))

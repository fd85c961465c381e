"""How much each column matters on rows whose labels the model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from safespn.classifier import SafeSPNClassifier
from safespn.typing import FloatArray, IntArray

MOST_COLUMNS = 200
"""Columns beyond which measuring each would take too long."""
MOST_EVALUATIONS = 15_000
"""Rows that are evaluated with an exchanged cell, more or less."""
MOST_EXCHANGES = 5
MOST_OTHERS, FEWEST_OTHERS = 100, 20
LOWEST_LOG_PROBABILITY = float(np.log(1e-3))
"""Less probable classes count as this probable, so that no single row decides."""
ERROR_RATE = 0.05


@dataclass(frozen=True)
class Relevance:
    """Rise of the log loss on unseen rows, in nats per row, when the column's cells are exchanged between rows.

    Parameters
    ----------
    name : str
    loss : float
    error : float
        Its standard error.
    is_clear : bool
        Whether it is above zero beyond doubt: all columns that are called so really are, with 95 % confidence.
    """

    name: str
    loss: float
    error: float
    is_clear: bool


@dataclass(frozen=True, eq=False)
class ColumnEffects:
    """What exchanging cells did to one fit.

    Parameters
    ----------
    seen : array of shape (n_labelled, n_columns)
        Fall of log p(true class | row) of labelled rows that the fit has not seen.
    expected : array of shape (n_labelled, n_columns)
        What the fit itself would expect of these rows: the fall averaged over its class probabilities.
    elsewhere : array of shape (n_others, n_columns)
        The same of unlabelled rows.
    """

    seen: FloatArray
    expected: FloatArray
    elsewhere: FloatArray


def column_effects(
    classifier: SafeSPNClassifier,
    columns: Sequence[int],
    cells: FloatArray,
    codes: IntArray,
    others: FloatArray,
    generator: np.random.Generator,
) -> ColumnEffects:
    """Exchange the cells of one column after the other.

    Parameters
    ----------
    columns : sequence of int
        Columns to measure.
    cells : array of shape (n_labelled, n_features)
        Encoded labelled rows that the classifier has not seen.
    codes : array of shape (n_labelled,)
        Their classes.
    others : array of shape (n_others, n_features)
        Encoded unlabelled rows.
    """
    pool = np.concatenate([cells, others])
    n_exchanges = int(np.clip(MOST_EVALUATIONS // (5 * len(columns) * len(cells)), 1, MOST_EXCHANGES))
    rows = np.arange(len(cells))
    before, before_others = (
        _log_posterior(classifier, table) if len(table) else np.empty((0, 1)) for table in (cells, others)
    )
    seen, expected, elsewhere = [], [], []
    for column in columns:
        falls = before - _exchanged(classifier, cells, column, pool, n_exchanges, generator)
        seen.append(falls[:, rows, codes].mean(axis=0))
        expected.append((np.exp(before) * falls).sum(axis=2).mean(axis=0))
        if len(others):
            of_others = before_others - _exchanged(classifier, others, column, pool, 1, generator)
            elsewhere.append((np.exp(before_others) * of_others).sum(axis=2).mean(axis=0))
    return ColumnEffects(*(np.array(values).T for values in (seen, expected, elsewhere)))


def draw_others(rows: IntArray, n_columns: int, generator: np.random.Generator) -> IntArray:
    """Draw unlabelled rows whose cells are exchanged, fewer where there are many columns."""
    most = int(np.clip(MOST_EVALUATIONS // (5 * max(n_columns, 1)), FEWEST_OTHERS, MOST_OTHERS))
    return np.sort(generator.permutation(rows)[:most])


def by_class_difference(used: Sequence[str], names: Sequence[str], encoded: FloatArray, codes: IntArray) -> list[str]:
    """Columns in use by the share of their variance, over labelled rows, that lies between classes; largest first."""
    place = {name: at for at, name in enumerate(names)}
    table, labels = encoded[codes >= 0][:, [place[name] for name in used]], codes[codes >= 0]
    known = ~np.isnan(table)
    filled = np.where(known, table, 0.0)
    centred = np.where(known, table - filled.sum(axis=0) / np.maximum(known.sum(axis=0), 1), 0.0)
    between = sum(
        centred[labels == code].sum(axis=0) ** 2 / np.maximum(known[labels == code].sum(axis=0), 1)
        for code in np.unique(labels)
    )
    share = between / np.maximum((centred**2).sum(axis=0), np.finfo(float).tiny)
    return [used[at] for at in np.argsort(-share, kind="stable")]


def relevances(names: Sequence[str], effects: Sequence[ColumnEffects]) -> list[Relevance]:
    """Put the folds together; columns that matter most come first.

    Few labels tell little about each column. Fits expect something of every row, and of unlabelled ones there are many;
    the labels tell by which factor such expectations are off in general, and how far for each column. What they tell
    about single columns is drawn towards zero as far as it is noise (James and Stein). Whether an effect is clear is
    decided without that.
    """
    seen = np.concatenate([each.seen for each in effects])
    expected = np.concatenate([each.expected for each in effects])
    others = all(len(each.elsewhere) for each in effects)
    elsewhere = np.mean([each.elsewhere for each in effects], axis=0) if others else expected
    of_seen, of_expected = seen.mean(axis=0), expected.mean(axis=0)
    factor = max(0.0, float(of_seen @ of_expected) / max(float(of_expected @ of_expected), 1e-300))
    rest = seen - factor * expected
    noise = _squared_error(rest)
    kept = max(0.0, 1 - float(noise.mean()) / max(float((rest.mean(axis=0) ** 2).mean()), 1e-300))
    losses = factor * elsewhere.mean(axis=0) + kept * rest.mean(axis=0)
    unshrunk = factor * elsewhere.mean(axis=0) + rest.mean(axis=0)
    errors = np.sqrt(noise + factor**2 * _squared_error(elsewhere)) if others else np.sqrt(_squared_error(seen))
    limit = float(norm.ppf(1 - ERROR_RATE / len(names)))
    clear = (unshrunk > limit * errors) & (losses > 0)
    order = np.argsort(-losses, kind="stable").tolist()
    return [Relevance(names[at], float(losses[at]), float(errors[at]), bool(clear[at])) for at in order]


def _squared_error(values: FloatArray) -> FloatArray:
    return np.asarray(values.var(axis=0, ddof=1) / len(values)) if len(values) > 1 else np.full(values.shape[1], np.inf)


def _exchanged(
    classifier: SafeSPNClassifier,
    cells: FloatArray,
    column: int,
    pool: FloatArray,
    n_exchanges: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Log posteriors with the cells of a column taken from other rows, shape (n_exchanges, n_rows, n_classes)."""
    exchanged = np.tile(cells, (n_exchanges, 1))
    exchanged[:, column] = pool[generator.integers(len(pool), size=len(exchanged)), column]
    return _log_posterior(classifier, exchanged).reshape(n_exchanges, len(cells), -1)


def _log_posterior(classifier: SafeSPNClassifier, cells: FloatArray) -> FloatArray:
    return np.maximum(classifier._committee.evaluate(cells)[1], LOWEST_LOG_PROBABILITY)

"""Which leaf family models a column: as the caller says, or by a cautious look at the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
from scipy.special import gammaln, ndtr, xlogy

from safespn.typing import FloatArray

MOST_CODES = 10
ROWS_PER_CODE = 10.0


class LeafChoice(Enum):
    """The leaf family of a column, by the name that callers use."""

    GAUSSIAN = "gaussian"
    CATEGORICAL = "categorical"
    POISSON = "poisson"


def choose_leaves(
    table: FloatArray, weights: FloatArray, leaves: str | Sequence[str] | Mapping[int, str], names: Sequence[str]
) -> list[LeafChoice]:
    """Choose the leaf family of each column.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
        NaN marks a missing cell.
    leaves : str, sequence of str or mapping
        "auto", "gaussian", "categorical" or "poisson": for all columns, one per column, or by column number ("auto" for
        the columns that a mapping leaves out).
    names : sequence of str
        How messages call the columns.

    Raises
    ------
    ValueError
        If a name is unknown or a declared column holds values that its family cannot model.
    """
    types = []
    for column, declared in enumerate(_one_per_column(leaves, table.shape[1])):
        observed = ~np.isnan(table[:, column])
        values, mass = table[observed, column], weights[observed]
        if declared == "auto":
            types.append(guess_leaf(values, mass))
            continue
        try:
            kind = LeafChoice(str(declared).lower())
        except ValueError:
            raise ValueError(
                f"leaves: {names[column]} is declared {declared!r}; "
                "expected 'auto', 'gaussian', 'categorical' or 'poisson'"
            ) from None
        if kind is not LeafChoice.GAUSSIAN and not _are_counts(values):
            refused = values[(values < 0) | (values != np.floor(values))][0]
            raise ValueError(f"{names[column]} is declared {kind.value} but holds {refused:g}; expected 0, 1, 2, ...")
        types.append(kind)
    return types


def guess_leaf(values: FloatArray, weights: FloatArray) -> LeafChoice:
    """Guess the family of a column from its observed values; in doubt it is Gaussian.

    * Categorical: the values are codes that start at 0 or 1, at most 10 of them, at least two and more than half of
      the range occur, with ten rows or more per code. (A code that first occurs later would be refused, so rare codes
      must not be guessed at.)
    * Poisson: the values are counts and a Poisson distribution is at least as good as a Gaussian rounded to whole
      numbers, by BIC.
    * Gaussian: everything else, a constant column too.
    """
    if not len(values) or not _are_counts(values):
        return LeafChoice.GAUSSIAN
    codes = np.unique(values)
    if len(codes) < 2:
        return LeafChoice.GAUSSIAN
    n_codes = codes[-1] + 1
    if (
        codes[0] <= 1
        and n_codes <= MOST_CODES
        and 2 * len(codes) > n_codes
        and weights.sum() >= ROWS_PER_CODE * n_codes
    ):
        return LeafChoice.CATEGORICAL
    return LeafChoice.POISSON if _poisson_fits(values, weights) else LeafChoice.GAUSSIAN


def _poisson_fits(values: FloatArray, weights: FloatArray) -> bool:
    total = weights.sum()
    rate = weights @ values / total
    deviation = np.sqrt(weights @ (values - rate) ** 2 / total)
    poisson = weights @ (xlogy(values, rate) - rate - gammaln(values + 1))
    below, above = (values - 0.5 - rate) / deviation, (values + 0.5 - rate) / deviation
    flip = below > 0  # the difference of two upper tails keeps its digits where that of two lower ones does not
    probability = np.where(flip, ndtr(-below) - ndtr(-above), ndtr(above) - ndtr(below))
    gaussian = weights @ np.log(np.maximum(probability, 1e-300))
    return bool(poisson >= gaussian - 0.5 * np.log(max(total, 1.0)))


def _are_counts(values: FloatArray) -> bool:
    return bool((values >= 0).all() and (values == np.floor(values)).all())


def _one_per_column(leaves: str | Sequence[str] | Mapping[int, str], n_columns: int) -> list[str]:
    if isinstance(leaves, str):
        return [leaves] * n_columns
    if isinstance(leaves, Mapping):
        unknown = [column for column in leaves if column not in range(n_columns)]
        if unknown:
            raise ValueError(f"leaves names column {unknown[0]!r}, but the columns are 0 to {n_columns - 1}")
        return [leaves.get(column, "auto") for column in range(n_columns)]
    if len(leaves) != n_columns:
        raise ValueError(f"leaves has {len(leaves)} entries; expected one for each of {n_columns} columns")
    return list(leaves)

"""Cross-validation over labels: which labelled rows each fold leaves out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safespn.class_networks.labelled_table import LabelledTable, is_other_row
from safespn.typing import FloatArray, IntArray

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Folds:
    """A fold for every labelled row.

    Parameters
    ----------
    rows : array of shape (n_labelled,)
        Numbers of the labelled rows in the table.
    codes : array of shape (n_labelled,)
    weights : array of shape (n_labelled,)
    number : array of shape (n_labelled,)
        Fold that leaves the row out, -1 for a row that always stays.
    """

    rows: IntArray
    codes: IntArray
    weights: FloatArray
    number: IntArray

    @property
    def left_out(self) -> IntArray:
        """Positions, among the labelled rows, of those that some fold leaves out."""
        return np.nonzero(self.number >= 0)[0]

    def kept_weights(self, fold: int) -> FloatArray:
        """Weights of the labelled rows without those that a fold leaves out, shape (n_labelled,)."""
        return np.where(self.number == fold, 0.0, self.weights)


def draw_folds(table: LabelledTable, generator: np.random.Generator) -> Folds:
    """Divide the distinct labelled rows of each class evenly; a class with a single one never loses it.

    Rows with equal cells share a fold even where their classes differ: a row cannot vouch for itself.
    """
    rows, codes = table.labelled, table.codes[table.labelled]
    same = np.nan_to_num(table.cells[rows], nan=-np.inf)
    # Rows are sorted, so that equal ones are neighbours.
    group = np.cumsum(is_other_row(same)) - 1
    first = np.unique(group, return_index=True)[1]
    of_group = np.full(len(first), -1)
    start = 0
    for code in range(table.n_classes):
        members = np.nonzero(codes[first] == code)[0]
        if len(members) > 1:
            # Each class continues where the last one stopped, so that folds have about equally many rows.
            of_group[generator.permutation(members)] = (start + np.arange(len(members))) % N_FOLDS
            start += len(members)
    for code in range(table.n_classes):
        of_class = group[codes == code]
        if len(of_class) and (of_group[of_class] == of_group[of_class[0]]).all():
            # All rows of the class, shared with others, would be left out at once.
            of_group[of_class] = -1
    return Folds(rows, codes, table.weights[rows], of_group[group])

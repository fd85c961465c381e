"""Cross-validation that means something when most labels are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from safespn.foundation.labels import as_labels, is_unlabelled
from safespn.typing import ArrayLike, IntArray


class SemiSupervisedSplit:
    """A splitter that keeps unlabelled rows in every training fold and out of every test fold.

    scikit-learn's own splitters put unlabelled rows into test folds and score their marker as if it were a class.

    Parameters
    ----------
    cv : int, splitter or iterable
        How to split the labelled rows, as in scikit-learn; an int gives that many stratified folds.
    unlabeled : object
        What marks an unlabelled row.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.zeros((6, 1)), np.array([0, 1, 0, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2).split(X, y):
    ...     print(train.tolist(), test.tolist())
    [2, 3, 4, 5] [0, 1]
    [0, 1, 4, 5] [2, 3]
    """

    def __init__(self, cv: Any = 5, unlabeled: Any = -1) -> None:
        self.cv = cv
        self.unlabeled = unlabeled

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the numbers of the training and test rows of each fold."""
        if y is None:
            raise ValueError("SemiSupervisedSplit needs y, to tell labelled from unlabelled rows")
        labels = as_labels(y)
        unlabelled = is_unlabelled(labels, self.unlabeled)
        known, unknown = np.nonzero(~unlabelled)[0], np.nonzero(unlabelled)[0]
        if len(known) == 0:
            raise ValueError("y has no labelled row, so there is nothing to test on")
        of_known = labels[known]
        of_groups = None if groups is None else np.asarray(groups)[known]
        for train, test in check_cv(self.cv, of_known, classifier=True).split(known, of_known, of_groups):
            yield np.sort(np.concatenate([known[train], unknown])), known[test]

    def get_n_splits(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds."""
        return int(check_cv(self.cv, None if y is None else np.asarray(y), classifier=True).get_n_splits(X, y, groups))

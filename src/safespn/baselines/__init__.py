"""The paper's comparators: other semi-supervised classifiers, in scikit-learn's manner.

All take labels with gaps, ``unlabeled`` marking the rows without one, and expect features of comparable scale: put a
:class:`~sklearn.preprocessing.StandardScaler` in front of them.
"""

from __future__ import annotations

from safespn.baselines.entropy_regularized import EntropyRegularizedLR
from safespn.baselines.least_squares import ICLS, ProjectedLS
from safespn.baselines.mcplda import MCPLDA
from safespn.baselines.tsvm import TSVM

__all__ = ["ICLS", "MCPLDA", "TSVM", "EntropyRegularizedLR", "ProjectedLS"]

"""What to label next: rows whose class is uncertain, which stand for many others, and which differ from each other.

A batch B is worth ``sum over rows i of u_i max over j in B of s_ij``: u_i is the entropy of row i's class and s_ij how
similar rows i and j are. A row that resembles many uncertain ones is worth much; a second one like it adds little. The
sum is submodular, so that adding the best row again and again comes within 1 - 1/e of the best batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import entr

from safespn.network.columns import Domain
from safespn.typing import AnyArray, BoolArray, FloatArray, IntArray

MOST_COMPARED = 2_000
"""Rows that a batch is to stand for; of more, evenly spaced ones."""
LEAST_UNCERTAINTY = 0.5
"""Rows may be suggested if they are at least so uncertain, relative to the most uncertain one."""
MOST_CANDIDATES = 1_000
MOST_ROWS = 20_000
"""Rows of a table out of core that are looked at."""
OUTLIER_LEVEL = 0.01
N_DRAWS = 1_000


ALIKE = float(np.exp(-1))
"""Similarity from which a row stands for another."""


@dataclass(frozen=True, eq=False)
class Suggestions:
    """Rows to label next, the most useful first, with reasons; made by :meth:`SafeSPNClassifier.suggestions`.

    Parameters
    ----------
    rows : array of shape (n,)
        Row numbers.
    labels, second : array of shape (n,)
        The most probable class of each row, and the one that comes next.
    probabilities : array of shape (n,)
        Of the most probable class.
    stands_for : array of shape (n,)
        How many rows resemble it more than any other of the batch, itself included.
    is_outlier : array of shape (n,)
        Whether the model would hardly draw such a row.
    """

    rows: IntArray
    labels: AnyArray
    second: AnyArray
    probabilities: FloatArray
    stands_for: IntArray
    is_outlier: BoolArray

    @property
    def reasons(self) -> list[str]:
        """Why each row is suggested, in words."""
        return [self._reason(place) for place in range(len(self.rows))]

    def _reason(self, place: int) -> str:
        if self.is_outlier[place]:
            return "unlike the other rows"
        others = int(self.stands_for[place]) - 1
        alone = "resembles no other row" if not others else f"stands for {others} more row{'s' if others > 1 else ''}"
        return f"{self.labels[place]} ({self.probabilities[place]:.2f}) or {self.second[place]}; {alone}"


def suggest_rows(
    log_posterior: FloatArray, geometry: FloatArray, is_outlier: BoolArray, densities: FloatArray, n: int
) -> tuple[IntArray, IntArray]:
    """Choose ``n`` rows to label, the most useful first, and say how many rows each of them stands for.

    Outliers come only after all other rows, the likelier ones first.

    Parameters
    ----------
    log_posterior : array of shape (n_rows, n_classes)
    geometry : array of shape (n_rows, n_dimensions)
        Points whose distances say how different rows are.
    is_outlier : array of shape (n_rows,)
    densities : array of shape (n_rows,)
        Log densities.
    """
    uncertainty = entr(np.exp(log_posterior)).sum(axis=1)
    usual, unusual = np.flatnonzero(~is_outlier), np.flatnonzero(is_outlier)
    chosen, stands_for = usual, np.empty(0, dtype=np.intp)
    if len(usual) and n:
        places, stands_for = _greedy(uncertainty[usual], geometry[usual], min(n, len(usual)))
        chosen = usual[places]
    rest = unusual[np.argsort(-densities[unusual], kind="stable")]
    return np.concatenate([chosen, rest])[:n], np.append(stands_for, np.ones(len(rest), dtype=np.intp))[:n]


def _greedy(uncertainty: FloatArray, geometry: FloatArray, n: int) -> tuple[IntArray, IntArray]:
    """Add the row that is worth most to the batch, ``n`` times; count the rows that each stands for."""
    n_uncertain = int((uncertainty >= LEAST_UNCERTAINTY * uncertainty.max()).sum())
    n_candidates = max(n, min(n_uncertain, MOST_CANDIDATES))
    candidates = np.argsort(-uncertainty, kind="stable")[:n_candidates]
    compared = np.linspace(0, len(uncertainty) - 1, min(len(uncertainty), MOST_COMPARED)).astype(np.intp)
    distances = cdist(geometry[compared], geometry[candidates], "sqeuclidean")
    similarity = np.exp(-distances / _reach(distances, n))
    reached = np.zeros(len(compared))
    # What a row tells about itself counts too, also where few others are compared.
    own = uncertainty[candidates].copy()
    chosen: list[int] = []
    for _ in range(n):
        gains = uncertainty[compared] @ np.maximum(similarity - reached[:, None], 0.0) + own
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        reached = np.maximum(reached, similarity[:, best])
    best_of_batch = similarity[:, chosen].max(axis=1) >= ALIKE
    counts = np.bincount(similarity[best_of_batch][:, chosen].argmax(axis=1), minlength=n)
    return candidates[chosen], np.maximum(np.rint(counts * len(uncertainty) / len(compared)), 1).astype(np.intp)


def _reach(distances: FloatArray, n: int) -> float:
    """Squared distance at which rows count as alike: half of what one row of a batch of ``n`` has to stand for.

    Rows that were alike at a typical distance of any two would leave nothing to the second row of a batch.
    """
    neighbours = min(max(1, distances.shape[1] // (2 * n)), distances.shape[1] - 1)
    reach = float(np.median(np.partition(distances, neighbours, axis=1)[:, neighbours]))
    return reach if reach > 0 else float(np.median(distances)) or 1.0


def as_geometry(completed: FloatArray, domains: tuple[Domain | None, ...]) -> FloatArray:
    """Points whose Euclidean distances compare rows: columns in units of their spread, categories as indicators.

    Parameters
    ----------
    completed : array of shape (n_rows, n_columns)
        Cells, missing ones filled in.
    """
    parts = []
    for cells, domain in zip(completed.T, domains, strict=True):
        if domain is None:
            continue
        if domain.kind == "codes":
            parts.append((cells[:, None] == np.arange(domain.n_states)) / np.sqrt(2.0))
            continue
        # A few huge values must not make all other rows look alike.
        low, middle, high = np.quantile(cells, [0.1, 0.5, 0.9])
        spread = (high - low) / 2.56 or float(cells.std()) or 1.0
        parts.append(np.clip((cells[:, None] - middle) / spread, -4.0, 4.0))
    return np.hstack(parts) if parts else np.zeros((len(completed), 1))


def find_outliers(densities: FloatArray, drawn: FloatArray) -> BoolArray:
    """Say which rows are less likely than all but a share of what the model itself draws.

    Parameters
    ----------
    densities : array of shape (n_rows,)
        Log densities of rows without gaps: densities of fewer cells have another unit.
    drawn : array of shape (n_draws,)
        Those of rows drawn from the model.
    """
    return np.asarray(densities < np.quantile(drawn, OUTLIER_LEVEL))

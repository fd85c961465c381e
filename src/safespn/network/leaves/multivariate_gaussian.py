"""Multivariate Gaussian leaves: several columns of real numbers that depend on each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from safespn.foundation.distinct import distinct_rows
from safespn.network.columns import REAL, Domain
from safespn.network.leaves.family import Block, Gaussians, LeafFamily, LeafPrior, Leaves, Term
from safespn.network.leaves.gaussian import SMALLEST_VARIANCE
from safespn.network.nodes import Leaf, check_column
from safespn.typing import ArrayLike, BoolArray, FloatArray, IntArray

SMALLEST_CORRELATION_EIGENVALUE = 1e-9
"""Eigenvalues of a learned correlation matrix stay above this, floor or no floor, so that it can be factored."""
ROUNDING = 1e-12
"""A variance that falls below this share of its last value in one step is rounding error."""
ROWS_AT_ONCE, ELEMENTS_AT_ONCE = 2**11, 2**17
"""Complete rows are taken in parts of at most so many rows, and so many cells (a megabyte) of several leaves: what is
computed from them stays in the cache of one core, and threads need not share the way to memory."""
FEW_COLUMNS = 100
"""Up to here compiled loops were measured to be faster than linear algebra: four times or more with 20 columns, still
1.2 times with 100."""
MANY_LEAVES, FARTHEST_FROM_CENTRE = 8, 1e3
"""From so many leaves of one covariance on their moments are computed about a common centre, if all means are within so
many standard deviations of it: farther away too many digits would be lost."""


class MultivariateGaussianFamily(LeafFamily):
    """Parameters: mean, then covariance row by row. Unconstrained parameters: mean, Cholesky factor with log diagonal.

    Statistics, per leaf, are flow, flow times z and flow times z z', where ``z = inverse(C) (x - mean)`` and C is the
    Cholesky factor of the covariance. Missing cells enter by their conditional mean and covariance, so that EM and
    gradients are exact; a row without any of the leaf's cells adds nothing.
    """

    name = "MultivariateGaussian"

    def domains(self, parameters: FloatArray) -> tuple[Domain, ...]:
        return (REAL,) * self._n_columns(parameters.size)

    def node(self, columns: Sequence[int], parameters: FloatArray, tie: int | None = None) -> MultivariateGaussian:
        mean, covariance = self._split(parameters[None])
        return MultivariateGaussian(columns, mean=mean[0], covariance=covariance[0], tie=tie)

    def terms(self, parameters: FloatArray) -> Sequence[Term]:
        densities = _Densities(*self._split(parameters))
        return (Block(densities.log_density, densities.statistics, densities.for_compiled_code),)

    def update(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        mean, covariance = self._split(parameters)
        factor = np.linalg.cholesky(covariance)
        flow, first, second = self._moments(statistics[0])
        reached = flow > 0
        count = np.where(reached, flow, 1.0)
        shift = first / count[:, None]
        new_mean = mean + np.einsum("lij,lj->li", factor, shift)
        # Scatter about the new mean, summed over the leaves that share a covariance.
        scatter = factor @ (second - count[:, None, None] * shift[:, :, None] * shift[:, None, :]) @ factor.mT
        scatter, total = leaves.sum_over_ties(scatter), leaves.sum_over_ties(np.where(reached, flow, 0.0))
        target, strength = prior.covariance_target_of(leaves.columns), prior.covariance_prior
        mass = (total + strength)[:, None, None]
        new_covariance = np.divide(scatter + strength * target, mass, out=covariance.copy(), where=mass > 0)
        new_covariance = _floored(
            new_covariance, prior.min_variance_of(leaves.columns), ROUNDING * _variance(covariance)
        )
        new_covariance = np.where(mass > 0, new_covariance, covariance)
        return self._join(np.where(reached[:, None], new_mean, mean), new_covariance)

    def recentred(self, statistics: Sequence[FloatArray], old: FloatArray, new: FloatArray) -> Sequence[FloatArray]:
        (mean, covariance), (new_mean, new_covariance) = self._split(old), self._split(new)
        flow, first, second = self._moments(statistics[0])
        whitening = np.linalg.inv(np.linalg.cholesky(new_covariance))
        change = whitening @ np.linalg.cholesky(covariance)
        shift = np.einsum("lij,lj->li", whitening, mean - new_mean)
        moved = np.einsum("lij,lj->li", change, first)
        crossed = moved[:, :, None] * shift[:, None, :]
        spread = shift[:, :, None] * shift[:, None, :]
        new_second = change @ second @ change.mT + crossed + crossed.mT + flow[:, None, None] * spread
        new_first = moved + flow[:, None] * shift
        return (np.concatenate([flow[:, None], new_first, new_second.reshape(len(flow), -1)], axis=1),)

    def constrain(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        mean, covariance = self._split(parameters)
        return self._join(mean, _floored(covariance, prior.min_variance_of(leaves.columns)))

    def log_prior(self, parameters: FloatArray, leaves: Leaves, prior: LeafPrior) -> float:
        if prior.covariance_prior == 0:
            return 0.0
        _, covariance = self._split(parameters)
        covariance = covariance[leaves.first_of_tie]
        target = prior.covariance_target_of(leaves.columns[leaves.first_of_tie])
        trace = np.trace(np.linalg.solve(covariance, target), axis1=1, axis2=2)
        return float(-0.5 * prior.covariance_prior * (np.linalg.slogdet(covariance)[1] + trace).sum())

    def expected_statistics(self, source: FloatArray, parameters: FloatArray) -> Sequence[FloatArray]:
        (mean, covariance), (source_mean, source_covariance) = self._split(parameters), self._split(source)
        whitening = np.linalg.inv(np.linalg.cholesky(covariance))
        shift = np.einsum("lij,lj->li", whitening, source_mean - mean)
        second = whitening @ source_covariance @ whitening.mT + shift[:, :, None] * shift[:, None, :]
        return (np.concatenate([np.ones((len(source), 1)), shift, second.reshape(len(source), -1)], axis=1),)

    def expected_log_density(self, source: FloatArray, parameters: FloatArray) -> FloatArray:
        _, covariance = self._split(parameters)
        _, _, second = self._moments(self.expected_statistics(source, parameters)[0])
        return np.asarray(-0.5 * (np.linalg.slogdet(covariance)[1] + np.trace(second, axis1=1, axis2=2)))

    def to_unconstrained(self, parameters: FloatArray) -> FloatArray:
        mean, covariance = self._split(parameters)
        factor = np.linalg.cholesky(covariance)
        diagonal = np.arange(mean.shape[1])
        factor[:, diagonal, diagonal] = np.log(factor[:, diagonal, diagonal])
        return np.concatenate([mean, factor[_lower(mean.shape[1])]], axis=1)

    def from_unconstrained(self, free: FloatArray, origin: FloatArray) -> FloatArray:
        d = (math.isqrt(9 + 8 * free.shape[1]) - 3) // 2
        factor = np.zeros((len(free), d, d))
        factor[_lower(d)] = free[:, d:]
        diagonal = np.arange(d)
        factor[:, diagonal, diagonal] = np.exp(factor[:, diagonal, diagonal])
        return self._join(free[:, :d], _floored(factor @ factor.mT, np.zeros((len(free), d))))

    def unconstrained_scale(self, parameters: FloatArray) -> FloatArray:
        _, covariance = self._split(parameters)
        deviation = np.sqrt(_variance(covariance))
        row, column = np.tril_indices(deviation.shape[1])
        return np.concatenate([deviation, np.where(row == column, 1.0, deviation[:, row])], axis=1)

    def unconstrained_lower_bound(self, free: FloatArray, leaves: Leaves, prior: LeafPrior) -> FloatArray:
        # A bound on the diagonal of the factor bounds every conditional variance, a little less than the eigenvalues.
        floor = np.maximum(prior.min_variance_of(leaves.columns), np.finfo(np.float64).tiny)
        d = floor.shape[1]
        row, column = np.tril_indices(d)
        factor = np.where(row == column, 0.5 * np.log(floor[:, row]), -np.inf)
        return np.concatenate([np.full((len(free), d), -np.inf), factor], axis=1)

    def gradient(
        self, statistics: Sequence[FloatArray], parameters: FloatArray, leaves: Leaves, prior: LeafPrior
    ) -> FloatArray:
        _, covariance = self._split(parameters)
        factor = np.linalg.cholesky(covariance)
        flow, first, second = self._moments(statistics[0])
        d = first.shape[1]
        excess = second - flow[:, None, None] * np.eye(d)
        if prior.covariance_prior:
            inverse = np.linalg.inv(factor)
            share = prior.covariance_prior / leaves.size_of_tie
            target = inverse @ prior.covariance_target_of(leaves.columns) @ inverse.mT
            excess = excess + share[:, None, None] * (target - np.eye(d))
        of_mean = np.linalg.solve(factor.mT, first[:, :, None])[:, :, 0]
        of_factor = leaves.mean_over_ties(np.linalg.solve(factor.mT, excess))
        diagonal = np.arange(d)
        of_factor[:, diagonal, diagonal] *= factor[:, diagonal, diagonal]
        return np.concatenate([of_mean, of_factor[_lower(d)]], axis=1)

    def degrees_of_freedom(self, parameters: FloatArray, leaves: Leaves) -> int:
        d = self._n_columns(parameters.shape[1])
        return len(leaves.columns) * d + len(leaves.first_of_tie) * d * (d + 1) // 2

    def complete(
        self, parameters: FloatArray, which: IntArray, cells: FloatArray, generator: np.random.Generator | None
    ) -> FloatArray:
        densities = _Densities(*self._split(parameters))
        result = cells.copy()
        for leaf in np.unique(which):
            rows = np.nonzero(which == leaf)[0]
            for of_pattern, missing in _patterns(cells[rows]):
                result[rows[of_pattern]] = densities.complete(int(leaf), cells[rows[of_pattern]], missing, generator)
        return result

    def log_density(self, parameters: FloatArray, values: FloatArray) -> FloatArray:
        (block,) = self.terms(parameters)
        assert isinstance(block, Block)
        return block.log_density(values[:, None, :], False)[:, 0]

    def _n_columns(self, n_parameters: int) -> int:
        return (math.isqrt(4 * n_parameters + 1) - 1) // 2

    def _split(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        d = self._n_columns(parameters.shape[1])
        return parameters[:, :d], parameters[:, d:].reshape(-1, d, d)

    def _join(self, mean: FloatArray, covariance: FloatArray) -> FloatArray:
        symmetric = (covariance + covariance.mT) / 2
        return np.concatenate([mean, symmetric.reshape(len(mean), -1)], axis=1)

    def _moments(self, statistics: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        d = self._n_columns(statistics.shape[1] - 1)
        return statistics[:, 0], statistics[:, 1 : 1 + d], statistics[:, 1 + d :].reshape(-1, d, d)


class _Densities:
    """Gaussians with their Cholesky factors; ``cells`` has shape (n_leaves, n_rows, n_columns)."""

    def __init__(self, mean: FloatArray, covariance: FloatArray) -> None:
        self.mean, self.covariance = mean, covariance
        # Leaves of one covariance do its algebra once.
        self.is_tied = len(covariance) > 1 and bool((covariance == covariance[0]).all())
        factor = np.linalg.cholesky(covariance[:1] if self.is_tied else covariance)
        self.factor = np.broadcast_to(factor, covariance.shape)
        self.whitening = np.broadcast_to(np.linalg.inv(factor), covariance.shape)
        log_determinant = np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        self.constant = -0.5 * mean.shape[1] * math.log(2 * math.pi) - log_determinant

    @property
    def for_compiled_code(self) -> Gaussians | None:
        """What compiled code needs; None where linear algebra is faster: many columns, or leaves of one covariance."""
        n_leaves, d = self.mean.shape
        if d > FEW_COLUMNS or (self.is_tied and n_leaves >= MANY_LEAVES):
            return None
        return Gaussians(*map(np.array, (self.mean, self.whitening, self.constant)))

    def log_density(self, cells: FloatArray, complete_by_mode: bool) -> FloatArray:
        """Log density of the observed cells, shape (n_leaves, n_rows); missing cells marginalised or at their best."""
        if not np.isnan(cells).any():
            return self._of_complete(cells)
        value = np.empty(cells.shape[:2])
        # Leaves that read the same cells see the same patterns, and do their algebra together.
        is_shared = cells.strides[0] == 0
        for leaf in range(1 if is_shared else len(cells)):
            leaves = slice(None) if is_shared else slice(leaf, leaf + 1)
            for rows, missing in _patterns(cells[leaf]):
                value[leaves, rows] = self._marginal(leaves, cells[leaf][rows], missing, complete_by_mode)
        return value

    def _of_complete(self, cells: FloatArray) -> FloatArray:
        if self.is_tied and (len(cells) == 1 or cells.strides[0] == 0):
            # Leaves that share their covariance and read the same cells: whiten the rows once, not once per leaf.
            from scipy.spatial.distance import cdist  # takes a tenth of a second, which single networks can spare

            whitening = self.whitening[0].T
            rows, centres = (cells[0] - self.mean[0]) @ whitening, (self.mean - self.mean[0]) @ whitening
            return np.asarray(self.constant[:, None] - 0.5 * cdist(centres, rows, "sqeuclidean"))
        cells = np.broadcast_to(cells, (len(self.mean), *cells.shape[1:]))
        value = np.empty(cells.shape[:2])
        for leaves, rows in _parts(cells):
            z = (cells[leaves, rows] - self.mean[leaves, None]) @ self.whitening[leaves].mT
            with np.errstate(over="ignore"):  # a cell too far away for its square has density zero
                value[leaves, rows] = self.constant[leaves, None] - 0.5 * np.vecdot(z, z)
        return value

    def statistics(self, cells: FloatArray, flow: FloatArray) -> FloatArray:
        """Flow, flow times z and flow times z z' of each leaf; ``flow`` has shape (n_leaves, n_rows)."""
        if np.isnan(cells[0] if cells.strides[0] == 0 else cells).any():
            parts = [slice(leaf, leaf + 1) for leaf in range(len(cells))]
            return np.concatenate([self._of_incomplete(leaves, cells[leaves], flow[leaves]) for leaves in parts])
        if self._is_spread_out and cells.strides[0] == 0:
            return self._statistics_about_one_centre(cells[0], flow)
        d = cells.shape[2]
        total = np.zeros((len(cells), 1 + d + d * d))
        for leaves, rows in _parts(cells):
            deviation = cells[leaves, rows] - self.mean[leaves, None]
            total[leaves] += self._statistics(leaves, deviation, flow[leaves, rows])
        return total

    @cached_property
    def _is_spread_out(self) -> bool:
        """Whether many leaves share a covariance, with means close enough for moments about a common centre."""
        return (
            self.is_tied and len(self.mean) >= MANY_LEAVES and float(np.abs(self._centres).max()) < FARTHEST_FROM_CENTRE
        )

    @cached_property
    def _centres(self) -> FloatArray:
        """Whitened distances of the means from their average, where leaves share a covariance."""
        return np.asarray((self.mean - self.mean.mean(axis=0)) @ self.whitening[0].T)

    def _statistics_about_one_centre(self, cells: FloatArray, flow: FloatArray) -> FloatArray:
        """Moments of all leaves about the average mean, by one matrix product, moved to each leaf's own mean."""
        n_leaves, d = self.mean.shape
        row, column = np.triu_indices(d)
        z = (cells - self.mean.mean(axis=0)) @ self.whitening[0].T
        sums = np.zeros((n_leaves, 1 + d + len(row)))
        at_once = max(1, ELEMENTS_AT_ONCE // sums.shape[1])
        for first_row in range(0, len(z), at_once):
            part = z[first_row : first_row + at_once]
            moments = np.concatenate([np.ones((len(part), 1)), part, part[:, row] * part[:, column]], axis=1)
            sums += flow[:, first_row : first_row + at_once] @ moments
        total, about, centre = sums[:, :1], sums[:, 1 : 1 + d], self._centres
        second = np.empty((n_leaves, d, d))
        second[:, row, column] = second[:, column, row] = sums[:, 1 + d :]
        crossed = about[:, :, None] * centre[:, None, :]
        second += total[:, :, None] * centre[:, :, None] * centre[:, None, :] - crossed - crossed.mT
        return np.concatenate([total, about - total * centre, second.reshape(n_leaves, -1)], axis=1)

    def _of_incomplete(self, leaves: slice, cells: FloatArray, flow: FloatArray) -> FloatArray:
        """Statistics of one of the leaves, with missing cells at their conditional mean and covariance."""
        deviation = cells - self.mean[leaves, None]
        extra = np.zeros((1, cells.shape[2], cells.shape[2]))
        flow = np.where(np.isnan(cells).all(axis=2), 0.0, flow)
        for rows, missing in _patterns(cells[0]):
            if missing.any() and not missing.all():
                regression, rest = self._conditional(leaves.start, missing)
                deviation[0][np.ix_(rows, missing)] = deviation[0][np.ix_(rows, ~missing)] @ regression.T
                extra[0][np.ix_(missing, missing)] += flow[0, rows].sum() * rest
        statistics = self._statistics(leaves, np.nan_to_num(deviation, nan=0.0), flow)
        whitening = self.whitening[leaves]
        statistics[:, -extra[0].size :] += (whitening @ extra @ whitening.mT).reshape(1, -1)
        return statistics

    def _statistics(self, leaves: slice, deviation: FloatArray, flow: FloatArray) -> FloatArray:
        """Statistics of some of the leaves from deviations from their means, shape (n_leaves, n_rows, n_columns)."""
        z = deviation @ self.whitening[leaves].mT
        first, second = (flow[:, None] @ z)[:, 0], (z * flow[:, :, None]).mT @ z
        return np.concatenate([flow.sum(axis=1)[:, None], first, second.reshape(len(z), -1)], axis=1)

    def complete(
        self, leaf: int, cells: FloatArray, missing: BoolArray, generator: np.random.Generator | None
    ) -> FloatArray:
        """Fill the missing columns of rows that miss the same ones: by the conditional mean, or by draws."""
        result = cells.copy()
        regression, rest = self._conditional(leaf, missing)
        centre = (cells[:, ~missing] - self.mean[leaf, ~missing]) @ regression.T + self.mean[leaf, missing]
        if generator is not None and missing.any():
            noise = generator.standard_normal(centre.shape)
            centre = centre + noise @ np.linalg.cholesky(rest).T
        result[:, missing] = centre
        return result

    def _conditional(self, leaf: int, missing: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Regression of the missing on the observed columns, and the covariance that it leaves."""
        covariance = self.covariance[leaf]
        cross = covariance[np.ix_(missing, ~missing)]
        regression = np.linalg.solve(covariance[np.ix_(~missing, ~missing)], cross.T).T
        rest = covariance[np.ix_(missing, missing)] - regression @ cross.T
        return regression, (rest + rest.T) / 2

    def _marginal(self, leaves: slice, cells: FloatArray, missing: BoolArray, complete_by_mode: bool) -> FloatArray:
        """Log density of rows that miss the same columns under some leaves, shape (n_leaves, n_rows)."""
        mean, covariance = self.mean[leaves], self.covariance[leaves]
        known = np.flatnonzero(~missing)
        value = np.zeros((len(mean), len(cells)))
        if len(known):
            part = _Densities(mean[:, known], covariance[:, known[:, None], known])
            value += part._of_complete(cells[None, :, known])
        if complete_by_mode and missing.any():
            value += np.array([self._peak(leaf, missing) for leaf in np.arange(len(self.mean))[leaves]])[:, None]
        return value

    def _peak(self, leaf: int, missing: BoolArray) -> float:
        _, rest = self._conditional(leaf, missing)
        return float(-0.5 * (len(rest) * math.log(2 * math.pi) + np.linalg.slogdet(rest)[1]))


def _lower(d: int) -> tuple[slice, IntArray, IntArray]:
    """Index of the lower triangles of a stack of matrices."""
    return (slice(None), *np.tril_indices(d))


def _parts(cells: FloatArray) -> Iterator[tuple[slice, slice]]:
    """Yield leaves and rows of cells of shape (n_leaves, n_rows, n_columns), in parts that stay in cache."""
    n_leaves, n_rows, d = cells.shape
    rows_at_once = min(ROWS_AT_ONCE, max(1, ELEMENTS_AT_ONCE // d))
    leaves_at_once = max(1, ELEMENTS_AT_ONCE // (rows_at_once * d))
    for leaf in range(0, n_leaves, leaves_at_once):
        for row in range(0, n_rows, rows_at_once):
            yield slice(leaf, leaf + leaves_at_once), slice(row, row + rows_at_once)


def _patterns(cells: FloatArray) -> Iterator[tuple[IntArray, BoolArray]]:
    """Yield each pattern of missing columns and the rows that have it; ``cells`` has shape (n_rows, n_columns)."""
    patterns, number = distinct_rows(np.isnan(cells))
    order = np.argsort(number, kind="stable")
    yield from zip(np.split(order, np.searchsorted(number[order], np.arange(1, len(patterns)))), patterns, strict=True)


def _variance(covariance: FloatArray) -> FloatArray:
    return np.diagonal(covariance, axis1=1, axis2=2)


def _floored(covariance: FloatArray, min_variance: FloatArray, rounding: FloatArray | float = 0.0) -> FloatArray:
    """Nearest likely covariances above the floor: the constrained maximum of the likelihood for given scatter.

    In units of the floor's square roots every eigenvalue must be at least one; the maximum clips those that are not.
    Variances below ``rounding`` are rounding errors, and so are their covariances with other columns: in units of their
    own these would be beyond all bounds.
    """
    scale = np.maximum(np.maximum(_variance(covariance), rounding), SMALLEST_VARIANCE)
    least = np.maximum(min_variance, SMALLEST_CORRELATION_EIGENVALUE * scale)
    unit = np.sqrt(least)
    in_units = covariance / unit[:, :, None] / unit[:, None, :]
    try:
        np.linalg.cholesky(in_units - np.eye(unit.shape[1]))
        return covariance
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(in_units)
    clipped = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.mT
    return np.asarray(clipped * unit[:, :, None] * unit[:, None, :])


@dataclass(frozen=True, eq=False)
class MultivariateGaussian(Leaf):
    """A normal distribution of several columns together.

    Parameters
    ----------
    columns : sequence of int
    mean : array-like of shape (n_columns,)
    covariance : array-like of shape (n_columns, n_columns)
        Symmetric and positive definite.
    tie : int, optional
        Leaves with the same number share one covariance, and keep sharing it while they are learned.
    """

    columns: tuple[int, ...]
    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    tie: int | None
    family: ClassVar[MultivariateGaussianFamily] = MultivariateGaussianFamily()

    def __init__(self, columns: Sequence[int], mean: ArrayLike, covariance: ArrayLike, tie: int | None = None) -> None:
        names = tuple(check_column("MultivariateGaussian", column) for column in columns)
        where = f"MultivariateGaussian on columns {list(names)}"
        means, covariances = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        d = len(names)
        if d == 0 or len(set(names)) != d:
            raise ValueError(f"{where}: expected at least one column, each only once")
        if means.shape != (d,) or covariances.shape != (d, d):
            raise ValueError(
                f"{where}: expected a mean of shape ({d},) and a covariance of shape ({d}, {d}), "
                f"got {means.shape} and {covariances.shape}"
            )
        if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
            raise ValueError(f"{where}: mean and covariance must be finite")
        if not np.allclose(covariances, covariances.T, rtol=1e-8, atol=1e-8 * np.abs(covariances).max()):
            raise ValueError(f"{where}: the covariance must be symmetric")
        try:
            np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(covariances)[0]
            raise ValueError(
                f"{where}: the covariance must be positive definite, its smallest eigenvalue is {smallest:g}"
            ) from None
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "mean", tuple(means.tolist()))
        object.__setattr__(self, "covariance", tuple(tuple(row) for row in covariances.tolist()))
        object.__setattr__(self, "tie", None if tie is None else int(tie))

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.4g}" for value in self.mean[:6]) + (", ..." if len(self.mean) > 6 else "")
        return f"MultivariateGaussian({list(self.columns)}, mean=[{shown}])"

    @property
    def parameters(self) -> FloatArray:
        return np.concatenate([self.mean, np.ravel(self.covariance)])

"""Class networks with one Gaussian per class: naive Bayes, linear and quadratic discriminants as networks.

Regularised by Ledoit and Wolf's shrinkage and one or a few pseudo-rows of the whole table instead of a variance floor.
With many labelled rows they are scikit-learn's ``GaussianNB``, ``LinearDiscriminantAnalysis(shrinkage="auto")``, the
same with a covariance of its own for each class, and multinomial logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from safespn.learning.structure.blocks import floored_covariance
from safespn.learning.structure.describe import Describer
from safespn.learning.structure.floors import SMALLEST_FLOOR
from safespn.learning.structure.plan import Plan
from safespn.learning.structure.table import LearningTable
from safespn.learning.structure.univariate import SMALLEST_WEIGHT, Leaves, Regularisation, Slice, whole_table
from safespn.network.leaves import MultivariateGaussian
from safespn.network.nodes import Node, Product
from safespn.typing import FloatArray

GAUSSIAN_STRUCTURES = ("naive", "linear", "quadratic", "discriminative")


def ledoit_wolf(centred: FloatArray, weights: FloatArray, observed: FloatArray | None = None) -> FloatArray:
    """Covariance of weighted rows, shrunk towards uncorrelated columns by the amount of Ledoit and Wolf (2004).

    Columns are standardised before and scaled back after, as scikit-learn's discriminants do.

    Parameters
    ----------
    centred : array of shape (n_rows, n_columns)
        Deviations from the mean; zero where missing.
    weights : array of shape (n_rows,)
    observed : array of shape (n_rows, n_columns), optional
        One where a cell is observed; None if no cell is missing.

    Returns
    -------
    array of shape (n_columns, n_columns)
    """
    total, d = float(weights.sum()), centred.shape[1]
    mask = np.ones_like(centred) if observed is None else observed
    seen = np.maximum((mask * weights[:, None]).T @ mask, SMALLEST_WEIGHT)
    deviation = np.sqrt(weights @ centred**2 / np.diag(seen))
    deviation[deviation <= 0] = 1.0
    z = centred / deviation
    sample = (z * weights[:, None]).T @ z / seen
    level = np.trace(sample) / d
    spread = ((sample - level * np.eye(d)) ** 2).sum()
    noise = (float(weights @ (z**2).sum(axis=1) ** 2) / total - (sample**2).sum()) / total
    amount = min(max(noise / spread, 0.0), 1.0) if spread > 0 else 0.0
    shrunk = (1 - amount) * sample + amount * level * np.eye(d)
    return np.asarray(shrunk * np.outer(deviation, deviation))


def softmax_regression(
    rows: FloatArray, class_weights: FloatArray, offset: FloatArray, penalty: float
) -> tuple[FloatArray, FloatArray]:
    """Fit ``log p(k | row) = offset[k] + intercept[k] + row @ slope[k] + const`` by penalised likelihood.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
    class_weights : array of shape (n_classes, n_rows)
    offset : array of shape (n_rows, n_classes)
    penalty : float
        Half of it times the squared slopes is taken off the log-likelihood.

    Returns
    -------
    slope : array of shape (n_classes, n_columns)
    intercept : array of shape (n_classes,)
    """
    n_classes, d = len(class_weights), rows.shape[1]
    design = np.column_stack([rows, np.ones(len(rows))])
    target = class_weights.T
    total = target.sum(axis=1, keepdims=True)

    def negative(vector: FloatArray) -> tuple[float, FloatArray]:
        coefficients = vector.reshape(n_classes, d + 1)
        logits = offset + design @ coefficients.T
        log_posterior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        gradient = (total * np.exp(log_posterior) - target).T @ design
        gradient[:, :d] += penalty * coefficients[:, :d]
        value = 0.5 * penalty * (coefficients[:, :d] ** 2).sum() - (target * log_posterior).sum()
        return float(value), gradient.ravel()

    from scipy.optimize import minimize  # slow to import, and networks without classes need none of it

    result = minimize(negative, np.zeros(n_classes * (d + 1)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    coefficients = result.x.reshape(n_classes, d + 1)
    return coefficients[:, :d], coefficients[:, d]


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """Builds the children and weights of a root sum from labelled rows.

    Parameters
    ----------
    table : LearningTable
        All rows, labelled or not.
    class_weights : array of shape (n_classes, n_distinct_rows)
    regularisation : Regularisation
        Its pseudo-rows are drawn from the whole table; its variance floor is not used.
    weight_prior : float
        Pseudo-count of every class.
    penalty : float
        Of the slopes of "discriminative", in units of z-scores.
    """

    table: LearningTable
    class_weights: FloatArray
    regularisation: Regularisation
    weight_prior: float
    penalty: float = 1.0

    def learn(self, structure: str) -> tuple[list[Node], FloatArray]:
        """Return the class networks and their weights; ``structure`` is one of ``GAUSSIAN_STRUCTURES``."""
        part = whole_table(self.table)
        least = np.full(self.table.n_columns, SMALLEST_FLOOR)
        regularisation = replace(self.regularisation, variance_floor=least)
        everyone = part.fit(part.weights[:, None], regularisation)
        leaves = part.fit(self.class_weights.T, regularisation, everyone)
        prior = self.class_weights.sum(axis=1) + self.weight_prior
        prior = prior / prior.sum()
        if structure == "naive" or len(part.real_columns) == 0:
            return [self._node(part, leaves.of(k), None, None) for k in range(len(prior))], prior
        covariances, means = self._covariances(part, leaves, everyone, common=structure != "quadratic"), leaves.mean
        if structure == "discriminative":
            means, prior = self._discriminative(part, leaves, covariances[0], prior)
        tie = None if structure == "quadratic" else 0
        nodes = [
            self._node(
                part,
                replace(leaves.of(k), mean=means[k : k + 1]),
                floored_covariance(covariance, part.real_columns, least),
                tie,
            )
            for k, covariance in enumerate(covariances)
        ]
        return nodes, prior

    def _covariances(self, part: Slice, leaves: Leaves, everyone: Leaves, *, common: bool) -> list[FloatArray]:
        """Shrunk covariance of each class, or of all within classes, drawn towards the whole table by pseudo-rows."""
        of_all = self._covariance(part, part.weights, everyone.mean[0])
        own = np.array(
            [
                self._covariance(part, weights, mean)
                for weights, mean in zip(self.class_weights, leaves.mean, strict=True)
            ]
        )
        counts, pseudo = self.class_weights.sum(axis=1), self.regularisation.pseudo_rows
        if common:
            within = (np.tensordot(counts, own, axes=1) + pseudo * of_all) / (counts.sum() + pseudo)
            return [within] * len(counts)
        return [(n * matrix + pseudo * of_all) / (n + pseudo) for n, matrix in zip(counts, own, strict=True)]

    @staticmethod
    def _covariance(part: Slice, weights: FloatArray, mean: FloatArray) -> FloatArray:
        used = weights > 0
        observed = None if part.real_observed is None else part.real_observed[used]
        centred = part.real[used] - mean
        return ledoit_wolf(centred if observed is None else centred * observed, weights[used], observed)

    def _discriminative(
        self, part: Slice, leaves: Leaves, covariance: FloatArray, prior: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Means and class weights that make the posterior a softmax regression with the given common covariance.

        With slopes b_k, the means are ``covariance @ b_k`` plus a common shift. The shift is free: it is the smallest
        one that leaves the class weights at ``prior``, where there is one. Missing cells count as average in the
        regression alone; the network marginalises them.
        """
        used = self.class_weights.any(axis=0)
        others = part.part(np.concatenate([part.count_columns, part.code_columns])).take(np.nonzero(used)[0])
        offset = np.zeros((int(used.sum()), len(prior)))
        if others.n_columns:
            offset = others.log_density(part.part_of(leaves, others.columns))
        slope, intercept = softmax_regression(part.real[used], self.class_weights[:, used], offset, self.penalty)
        slope = slope - prior @ slope
        means = slope @ covariance
        log_weights = intercept + 0.5 * (means * slope).sum(axis=1)
        gap = np.log(prior) - log_weights
        contrast = slope[1:] - slope[0]
        shift = np.linalg.lstsq(contrast @ covariance, gap[1:] - gap[0], rcond=1e-10)[0] @ covariance
        log_weights = log_weights + slope @ shift
        return means + shift, np.exp(log_weights - np.logaddexp.reduce(log_weights))

    def _node(self, part: Slice, leaves: Leaves, covariance: FloatArray | None, tie: int | None) -> Node:
        """One class: univariate leaves, or a multivariate one for the real columns and univariate ones for the rest."""
        nodes: list[Node] = []
        rest = part
        if covariance is not None:
            columns = part.real_columns
            scale = self.table.scale[columns]
            mean = leaves.mean[0] * scale + self.table.shift[columns]
            nodes.append(MultivariateGaussian(columns.tolist(), mean, covariance * np.outer(scale, scale), tie=tie))
            rest = part.part(np.concatenate([part.count_columns, part.code_columns]))
        if rest.n_columns:
            own = part.part_of(leaves, rest.columns)
            n_real = len(rest.real_columns)
            plan = Plan(rest, 1.0, own, np.zeros(n_real), np.zeros(n_real, dtype=bool))
            describer = Describer(self.table, self.regularisation.variance_floor, self.weight_prior, 0.0)
            root = describer.describe(plan).root
            nodes.extend(root.children if isinstance(root, Product) else (root,))
        return nodes[0] if len(nodes) == 1 else Product(nodes)

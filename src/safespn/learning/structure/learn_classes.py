"""From a table with labels to a class network; the kind of structure fixed or chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from safespn.learning.structure.class_layer import STRUCTURES, ClassLayer
from safespn.learning.structure.floors import variance_floors
from safespn.learning.structure.learnspn import Settings
from safespn.learning.structure.plan import Plan
from safespn.learning.structure.table import LearningTable, prepare
from safespn.learning.structure.truncation import conditional_likelihood, depths_by_score
from safespn.learning.structure.univariate import Regularisation
from safespn.spn import SPN
from safespn.typing import ArrayLike, FloatArray, IntArray

CANDIDATES = ("copied", "per_class", "tied")


def learn_class_spn(
    X: ArrayLike,
    classes: ArrayLike,
    n_classes: int,
    *,
    structure: str = "copied",
    leaves: str | Sequence[str] | Mapping[int, str] = "auto",
    multivariate: bool = True,
    min_rows: float = 5,
    max_depth: int | None = None,
    alpha: float = 1e-4,
    dependence: str = "cosine",
    criterion: str = "bic",
    variance_floor: str | float | FloatArray = "squared distance",
    weight_prior: float = 0.5,
    category_prior: float = 0.1,
    pseudo_rows: float = 1.0,
    covariance_strength: float = 0.2,
    pooling: float = 1.0,
    refine_iterations: int = 10,
    n_folds: int = 5,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
) -> SPN:
    """Learn a class network: a root sum with one child per class, each a network over the columns.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Labelled and unlabelled rows; NaN marks a missing cell.
    classes : array-like of shape (n_rows,)
        Class of each row, 0 to ``n_classes - 1``, or -1 where it is unknown.
    structure : {"copied", "shared", "per_class", "tied", "auto"}
        * "copied": one structure, learned from all rows without labels, whose weights and leaves each class fits anew;
        * "shared": the same, but the classes share the leaves and differ in the weights only;
        * "per_class": a structure of its own for each class;
        * "tied": one multivariate Gaussian per class with a common covariance;
        * "auto": "copied", "per_class" or "tied", whichever predicts left-out labels best.
    pooling : float
        All rows count in each class with so much weight together.
    n_folds : int
        Folds of the cross-validation of "auto".
    validation : pair of array-likes, optional
        Rows and their classes: cut the structures at the depth that gives these classes the highest conditional
        likelihood. The structures are not learned again.
    seed : int
        Seeds the random functions of ``dependence="rdc"``.

    Other parameters are those of :func:`safespn.learn_spn`.

    Returns
    -------
    SPN
        ``spn.log_joint(X)`` has one column per class.
    """
    if structure not in (*STRUCTURES, "auto"):
        raise ValueError(f"structure must be 'auto' or one of {', '.join(map(repr, STRUCTURES))}, got {structure!r}")
    table = prepare(X, sample_weight, leaves)
    floors = variance_floors(table, variance_floor)
    layer = ClassLayer(
        table,
        Settings(min_rows, max_depth, alpha, dependence, criterion, seed, multivariate, covariance_strength),
        Regularisation(floors, pseudo_rows, category_prior),
        weight_prior,
        pooling,
        refine_iterations,
    )
    class_weights = _class_weights(table, np.asarray(classes), n_classes, sample_weight)
    plan = layer.pooled_plan() if structure in ("copied", "shared", "auto") or validation is not None else None
    if structure == "auto":
        structure = _best_structure(layer, class_weights, plan, n_folds)
    depth = None
    if validation is not None and plan is not None:
        rows, truth = validation[0], np.asarray(validation[1], dtype=np.intp)
        learn = partial(layer.learn, structure, class_weights, plan)
        depth, _ = depths_by_score(plan, conditional_likelihood(learn, rows, truth))
    return layer.learn(structure, class_weights, plan, depth)


def _class_weights(
    table: LearningTable, classes: IntArray, n_classes: int, sample_weight: ArrayLike | None
) -> FloatArray:
    """Weight of every distinct row in every class, shape (n_classes, n_distinct_rows)."""
    if classes.shape != table.row_of.shape or classes.dtype.kind not in "iu":
        raise ValueError(f"expected one integer class for each of {len(table.row_of)} rows, got shape {classes.shape}")
    if ((classes < -1) | (classes >= n_classes)).any():
        raise ValueError(f"classes must lie between 0 and {n_classes - 1}, or be -1 if unknown")
    weights = np.ones(len(classes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    labelled = (classes >= 0) & (table.row_of >= 0)
    result = np.zeros((n_classes, len(table.weights)))
    np.add.at(result, (classes[labelled], table.row_of[labelled]), weights[labelled])
    missing = np.nonzero(result.sum(axis=1) == 0)[0]
    if len(missing):
        raise ValueError(f"class {missing[0]} has no labelled row of positive weight")
    return result


def _best_structure(layer: ClassLayer, class_weights: FloatArray, plan: Plan | None, n_folds: int) -> str:
    """Compare structures by the accuracy on left-out labelled rows, ties by the conditional likelihood."""
    scores = {name: np.zeros(2) for name in CANDIDATES}
    fold_of = _folds(class_weights, n_folds)
    for fold in range(n_folds):
        held_out = np.where(fold_of == fold, class_weights, 0.0)
        kept = class_weights - held_out
        if not held_out.any() or not (kept.sum(axis=1) > 0).all():
            continue
        used = np.nonzero(held_out.any(axis=0))[0]
        rows = layer.table.own_units()[used]
        for name, score in scores.items():
            joint = layer.learn(name, kept, plan).log_joint(rows)
            log_posterior = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
            weights = held_out[:, used].T
            correct = np.arange(len(class_weights)) == log_posterior.argmax(axis=1)[:, None]
            score += (weights * correct).sum(), (weights * np.maximum(log_posterior, -30.0)).sum()
    return max(CANDIDATES, key=lambda name: tuple(scores[name]))


def _folds(class_weights: FloatArray, n_folds: int) -> IntArray:
    """Fold of every row in every class: in turn, along the order of the distinct rows."""
    return np.asarray((np.cumsum(class_weights > 0, axis=1) - 1) % n_folds, dtype=np.intp)

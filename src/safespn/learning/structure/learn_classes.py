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

CANDIDATES = ("copied", "per_class", "naive", "tied", "linear", "quadratic", "discriminative")
UNIVARIATE_CANDIDATES = ("copied", "per_class", "naive")
FOLDS_BEFORE_DROPPING = 3


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
    n_folds: int = 10,
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
    structure : str
        * "copied": one structure, learned from all rows without labels, whose weights and leaves each class fits anew;
        * "shared": the same, but the classes share the leaves and differ in the weights only;
        * "per_class": a structure of its own for each class;
        * "tied": one multivariate Gaussian per class with a common covariance, drawn towards that of all rows;
        * "naive": univariate leaves for each class (Gaussian naive Bayes);
        * "linear": as "tied", shrunk as Ledoit and Wolf say (a regularised linear discriminant);
        * "quadratic": the same with a covariance of its own for each class;
        * "discriminative": "linear" with means that maximise the conditional likelihood of the classes, penalised
          (logistic regression); a poorer density;
        * "auto": whichever of these but "shared" predicts left-out labels best. Without ``multivariate`` only those of
          univariate leaves.
    pooling : float
        All rows count in each class with so much weight together.
    n_folds : int
        Folds of the cross-validation of "auto".
    validation : pair of array-likes, optional
        Rows and their classes: cut the structures at the depth that gives these classes the highest conditional
        likelihood. The structures are not learned again.
    seed : int
        Seeds the random functions of ``dependence="rdc"``.

    Other parameters are those of :func:`safespn.learn_spn`. The default variance floor is broader: a class that
    happens to hold a frequent value must not win every row with it.

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
    """Compare structures by the accuracy on left-out labelled rows, ties by the conditional likelihood.

    A race: a structure that is behind by more than a standard error after a few folds is dropped.
    """
    names = CANDIDATES if layer.settings.multivariate else UNIVARIATE_CANDIDATES
    scores: dict[str, list[FloatArray]] = {name: [] for name in names}
    fold_of = _folds(class_weights, n_folds)
    for fold in range(n_folds):
        held_out = np.where(fold_of == fold, class_weights, 0.0)
        kept = class_weights - held_out
        if not held_out.any() or not (kept.sum(axis=1) > 0).all():
            continue
        for name, seen in scores.items():
            seen.append(_left_out_score(layer, name, held_out, kept, plan))
        if fold + 1 >= FOLDS_BEFORE_DROPPING:
            scores = _survivors(scores)
    return max(scores, key=lambda name: tuple(np.sum(scores[name], axis=0)))


def _left_out_score(
    layer: ClassLayer, structure: str, held_out: FloatArray, kept: FloatArray, plan: Plan | None
) -> FloatArray:
    """Weight of the left-out rows whose class is recognised, and the log probability given to the classes."""
    used = np.nonzero(held_out.any(axis=0))[0]
    joint = layer.learn(structure, kept, plan).log_joint(layer.table.own_units()[used])
    log_posterior = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    weights = held_out[:, used].T
    correct = np.arange(len(held_out)) == log_posterior.argmax(axis=1)[:, None]
    return np.array([(weights * correct).sum(), (weights * np.maximum(log_posterior, -30.0)).sum()])


def _survivors(scores: dict[str, list[FloatArray]]) -> dict[str, list[FloatArray]]:
    """Keep the structures within one standard error, over folds, of the one that is most often right."""
    right = {name: np.array(seen)[:, 0] for name, seen in scores.items()}
    best = max(right, key=lambda name: float(right[name].sum()))
    behind = {name: right[best] - own for name, own in right.items()}
    return {
        name: scores[name]
        for name, gap in behind.items()
        if gap.mean() <= gap.std(ddof=min(1, len(gap) - 1)) / np.sqrt(len(gap))
    }


def _folds(class_weights: FloatArray, n_folds: int) -> IntArray:
    """Fold of every row in every class: in turn, along the order of the distinct rows."""
    return np.asarray((np.cumsum(class_weights > 0, axis=1) - 1) % n_folds, dtype=np.intp)

"""The scikit-learn estimator: a classifier and a density, safe against its unlabelled rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from safespn.classifier_files import load_classifier, save_classifier
from safespn.intake import IntakeMixin
from safespn.network.nodes import Sum
from safespn.randomness import as_generator
from safespn.safety.fitting import Method
from safespn.safety.learn import Settings, learn_safely
from safespn.safety.report import supervised_promises
from safespn.safety.soft_labels import log_posterior
from safespn.spn import SPN
from safespn.table_encoder import is_lazy, meta_of
from safespn.typing import AnyArray, ArrayLike, FloatArray, RandomState

RELATIVE_FLOOR = 1e-4


class SafeSPNClassifier(IntakeMixin, BaseEstimator):  # type: ignore[misc]
    """A semi-supervised classifier and density model that knows what its unlabelled rows did.

    Each class is a sum-product network over the features. A supervised model is learned from the labels of the labelled
    rows; its structure, variance floors and prior come from the features of all rows. Then the unlabelled rows are
    added under a guard, and :attr:`safety_` says what is guaranteed.

    Parameters
    ----------
    objective : {"generative", "discriminative"}
        Learn the joint density of features and class, or the class posteriors.
    safety : {"auto", "certified", "mcp", "none"}
        How to guard against the unlabelled rows:

        * "certified": the model is at least as likely as the supervised one for every labelling of the unlabelled rows
          (generative), or for every labelling with plausible class proportions (discriminative); if no such model is
          found, the supervised one is returned;
        * "mcp": the paper's algorithm, which guarantees this at its final soft labels only;
        * "none": plain use of the unlabelled rows;
        * "auto": the strongest that applies, "certified".
    soft_label_init : {"auto", "optimistic", "dirichlet"}
        Where the soft labels of "mcp" start: at the supervised posteriors or at random; "auto" is random for the
        generative objective and optimistic for the discriminative one, as in the paper.
    max_depth : "auto" or int
        Depth of the structure that all rows are used to learn, without labels, and that is copied per class; 0 is a
        product of single columns. "auto" takes one block of all real columns, whose covariance the classes share: with
        few labels it did best. Without ``multivariate`` "auto" chooses the depth by Akaike's criterion, as in the
        paper.
    multivariate : bool
        Allow leaves of several real columns; the paper's networks have leaves of one column only.
    tuned_for : {"auto", "both", "density", "classes"}
        What the regularisation of the class networks serves. "density" keeps the correlations of the table; "classes"
        takes half of them back, which predicts classes better and densities less well; "both" lies in between. Each
        gives the classes covariances of their own if labels left out of the fit clearly ask for it. With "classes" a
        certified generative fit is also held to left-out labels: if the unlabelled rows do not make them more
        probable, the supervised model is returned. "auto" is "both" for the generative objective and "classes" for
        the discriminative one.
    pessimism : float between 0 and 1
        How far not to trust the model's own soft labels: 1 is the safe method, 0 is plain EM. Below 1 nothing is
        enforced, but the report still tells the exact worst case. Not used by "mcp".
    confidence : float
        Confidence that the class proportions of the unlabelled rows lie in the interval that the discriminative
        certificate covers.
    variance_floor : "auto" or float
        Lower bound of variances relative to a column's own variance.
    weight_prior : float
        Rows imagined per class from the network of all rows: a class with few labels stays near the whole table.
    max_iter : int
        Iterations of the semi-supervised fit; the last stage of the certified fit adds up to 28.
    tol : float
        It stops when the objective per row changes by less than this many nats.
    unlabeled : object
        What marks an unlabelled row in ``y``; None if all rows are labelled.
    validation_fraction : float, optional
        Share of the labelled rows to set aside as validation rows.
    random_state : int, RandomState instance or None
    verbose : int
        Write progress to standard error.
    n_jobs : int, optional
        Number of threads; None uses all cores for long tables, and one for short ones and inside workers of joblib.
    sample_size : int
        Rows that the structure is learned from, and choices are made with: a sample stratified by class where there
        are more. Everything else sees all rows.
    batch_size : int, optional
        Rows per mini-batch of stepwise EM, for certified generative fits where passes over all rows are too slow: one
        iteration is then one pass in mini-batches. The certificate is still that of all rows.
    persist : {"auto", "rows", "labels", "nothing"}
        What Dask workers hold between passes: the rows too, the soft labels and the supervised model's densities only
        (rows are read again), or nothing (all is computed again, and slow). "auto" holds rows that fit in half of the
        workers' memory.
    checkpoint : path, optional
        Folder where a certified generative fit writes its steps down. When the same fit was interrupted it goes on
        from there, with the same result; a complete fit removes them. Workers on other machines must see the folder.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    spn_ : SPN
        The safe model: a network whose root has one child per class.
    supervised_ : SafeSPNClassifier
        The supervised model, as a fitted classifier.
    soft_labels_ : array of shape (n_unlabelled, n_classes)
    safety_ : SafetyReport
    history_ : list of dict
        Per iteration: objective, contrast at the soft labels and worst case in nats, validation score if any.
    notes_ : dict
        Plain values of yours that are saved with the model, empty at first; the command line notes what marks missing
        cells.
    n_iter_ : int
    n_sampled_ : int
        Rows that the structure was learned from.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only if the features came with names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from safespn import SafeSPNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> partly = np.where(np.arange(150) % 10 == 0, y, -1)
    >>> clf = SafeSPNClassifier().fit(X, partly)
    >>> clf.safety_.certified
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "objective": [StrOptions({"generative", "discriminative"})],
        "safety": [StrOptions({"auto", "certified", "mcp", "none"})],
        "soft_label_init": [StrOptions({"auto", "optimistic", "dirichlet"})],
        "max_depth": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "multivariate": ["boolean"],
        "tuned_for": [StrOptions({"auto", "both", "density", "classes"})],
        "pessimism": [Interval(Real, 0, 1, closed="both")],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "variance_floor": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "weight_prior": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "sample_size": [Interval(Integral, 2, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "persist": [StrOptions({"auto", "rows", "labels", "nothing"})],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        objective: str = "generative",
        safety: str = "auto",
        soft_label_init: str = "auto",
        *,
        max_depth: str | int = "auto",
        multivariate: bool = True,
        tuned_for: str = "auto",
        pessimism: float = 1.0,
        confidence: float = 0.95,
        variance_floor: str | float = "auto",
        weight_prior: float = 0.3,
        max_iter: int = 75,
        tol: float = 1e-5,
        unlabeled: Any = -1,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        sample_size: int = 100_000,
        batch_size: int | None = None,
        persist: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.objective = objective
        self.safety = safety
        self.soft_label_init = soft_label_init
        self.max_depth = max_depth
        self.multivariate = multivariate
        self.tuned_for = tuned_for
        self.pessimism = pessimism
        self.confidence = confidence
        self.variance_floor = variance_floor
        self.weight_prior = weight_prior
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled = unlabeled
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.sample_size = sample_size
        self.batch_size = batch_size
        self.persist = persist
        self.checkpoint = checkpoint

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> SafeSPNClassifier:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like, data frame, or Dask array or data frame, of shape (n_rows, n_features)
            NaN marks a missing cell. Categorical, boolean and string columns of a frame become categorical.
        y : array-like of shape (n_rows,)
            Labels; the marker ``unlabeled`` for unlabelled rows.
        sample_weight : array-like of shape (n_rows,), optional
        validation : tuple of X and y, optional
            Labelled rows, for early stopping of "mcp", and for the record. Unless ``safety="none"``, a discriminative
            model is never worse than the supervised one on them.

        Returns
        -------
        SafeSPNClassifier
            Itself.
        """
        self._validate_params()
        before = {name: value for name, value in vars(self).items() if name in ("n_features_in_", "feature_names_in_")}
        try:
            return self._fit(X, y, sample_weight, validation)
        except BaseException:
            # What checking the table has noted belongs to no model: a failed fit leaves the classifier as it was.
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        validation: tuple[ArrayLike, ArrayLike] | None,
    ) -> SafeSPNClassifier:
        generator = as_generator(self.random_state)
        rows, encoder, classes, held_out = self._take_in(X, y, sample_weight, validation, generator)
        n_states = [0 if categories is None else len(categories) for categories in encoder.categories]
        learned = learn_safely(rows, n_states, self._settings(), self._method(), held_out, generator, self._say)
        self._encoder, self.classes_ = encoder, classes
        structure, fit = learned.problem.structure, learned.fit
        self.spn_ = SPN._from_parameters(structure, fit.parameters)
        self.soft_labels_ = learned.problem.soft_labels(fit.kept)
        self.history_, self.n_iter_ = fit.history, max(len(fit.history), 1)
        self.safety_, self.n_sampled_ = learned.report, learned.n_sampled
        self.notes_: dict[str, Any] = {}
        self.supervised_ = self._twin(SPN._from_parameters(structure, learned.supervised))
        return self

    def _twin(self, spn: SPN) -> SafeSPNClassifier:
        """Make a fitted classifier of the same kind from another network of the same table."""
        twin: SafeSPNClassifier = clone(self)
        for name in ("_encoder", "classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name))
        report = replace(self.safety_, n_unlabelled=0, worst_case=0.0, contrast=0.0, labelled_gain=0.0, certified=True)
        twin.safety_ = replace(report, fallback=False, disagreement=0.0, promises=supervised_promises())
        twin.spn_, twin.n_iter_, twin.history_, twin.notes_ = spn, 1, [], {}
        twin.soft_labels_ = np.empty((0, len(self.classes_)))
        twin.n_sampled_ = 0
        twin.supervised_ = twin
        return twin

    def _say(self, message: str) -> None:
        if self.verbose:
            sys.stderr.write(f"[{type(self).__name__}] {message}\n")

    def _settings(self) -> Settings:
        tuned_for = self.tuned_for
        if tuned_for == "auto":
            tuned_for = "classes" if self.objective == "discriminative" else "both"
        return Settings(
            max_depth=None if self.max_depth == "auto" else int(self.max_depth),
            multivariate=self.multivariate,
            relative_floor=RELATIVE_FLOOR if self.variance_floor == "auto" else float(self.variance_floor),
            rows_per_class=self.weight_prior,
            tuned_for=tuned_for,
            sample_size=self.sample_size,
            n_jobs=self.n_jobs,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
        )

    def _method(self) -> Method:
        return Method(
            safety="certified" if self.safety == "auto" else self.safety,
            objective=self.objective,
            soft_label_init=self.soft_label_init,
            pessimism=self.pessimism,
            confidence=self.confidence,
            max_iter=self.max_iter,
            tol=self.tol,
            batch_size=self.batch_size,
        )

    def joint_log_likelihood(self, X: ArrayLike) -> FloatArray:
        """Log density of each row together with each class, ``log p(x, y=k)``, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        if is_lazy(X):
            return self._lazily("joint_log_likelihood", X, len(self.classes_))
        table, _ = self._check_table(X, reset=False)
        return self.spn_.log_joint(table, n_jobs=self.n_jobs)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log density of each row, ``log p(x)``, shape (n_rows,)."""
        if is_lazy(X):
            return self._lazily("score_samples", X)
        return np.asarray(np.logaddexp.reduce(self.joint_log_likelihood(X), axis=1))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Log probability of each class given each row, shape (n_rows, n_classes).

        A row of zero density under every class gets the class proportions.
        """
        if is_lazy(X):
            return self._lazily("predict_log_proba", X, len(self.classes_))
        return self._log_posterior(self.joint_log_likelihood(X))

    def _log_posterior(self, joint: FloatArray) -> FloatArray:
        """Log probabilities of the classes from joint log densities, both of shape (n_rows, n_classes)."""
        impossible = np.isneginf(joint).all(axis=1, keepdims=True)
        return log_posterior(np.where(impossible, self.spn_._parameters.log_weights[-joint.shape[1] :], joint))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each class given each row, shape (n_rows, n_classes)."""
        if is_lazy(X):
            return self._lazily("predict_proba", X, len(self.classes_))
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> AnyArray:
        """Most probable class of each row."""
        if is_lazy(X):
            return self._lazily("predict", X, dtype=self.classes_.dtype)
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _lazily(self, method: str, X: Any, n_columns: int | None = None, dtype: Any = np.float64) -> AnyArray:
        """Promise what a method returns for the rows of a Dask collection, as a Dask array."""
        check_is_fitted(self)
        from safespn.rows.dask_predictions import predict_lazily

        validate_data(self, meta_of(X), reset=False, skip_check_array=True)
        # The twin goes to the workers: it carries no soft labels.
        promise: AnyArray = predict_lazily(self._twin(self.spn_), method, X, n_columns, dtype)
        return promise

    def sample(self, n: int = 1, random_state: RandomState = None) -> tuple[FloatArray, AnyArray]:
        """Draw ``n`` rows with their classes; categorical columns come as codes.

        Without a ``random_state`` of its own it takes the classifier's.
        """
        check_is_fitted(self)
        generator = as_generator(self.random_state if random_state is None else random_state)
        root = self.spn_.root
        weights = np.array(root.weights) if isinstance(root, Sum) else np.ones(1)
        codes = generator.choice(len(self.classes_), n, p=weights / weights.sum())
        cells = np.empty((n, self.n_features_in_))
        for code in np.unique(codes):
            rows = codes == code
            cells[rows] = SPN(root.children[code]).sample(int(rows.sum()), random_state=generator)
        return cells, self.classes_[codes]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier to a file that :meth:`load` reads without running any code from it."""
        check_is_fitted(self)
        save_classifier(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SafeSPNClassifier:
        """Read a classifier written by :meth:`save`.

        Raises
        ------
        ModelFileError
            A ValueError: the file is damaged, truncated, not a classifier, or written by a newer version.
        """
        return load_classifier(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

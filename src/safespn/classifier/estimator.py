"""The scikit-learn estimator: a classifier and a density, safe against its unlabelled rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from safespn.class_networks.committee import Committee
from safespn.classifier.answers import AnswersMixin
from safespn.classifier.decision_rules import learn_gains
from safespn.classifier.files import load_classifier, save_classifier
from safespn.classifier.input_validation import ColumnTypes
from safespn.classifier.members import Members
from safespn.classifier.parameters import CONSTRAINTS, method_of, settings_of
from safespn.decisions import gains_of
from safespn.foundation.class_weights import ClassWeight
from safespn.foundation.randomness import as_generator
from safespn.rows.blocks import released_if_it_fails
from safespn.safety.pipeline import learn_safely
from safespn.safety.progress import listening
from safespn.spn import SPN
from safespn.typing import ArrayLike, RandomState

if TYPE_CHECKING:
    from safespn.report.evaluation import Evaluation


class SafeSPNClassifier(AnswersMixin, BaseEstimator):  # type: ignore[misc]
    """A semi-supervised classifier and density model that certifies what unlabelled rows did to its likelihood.

    Each class is a sum-product network over the features. A supervised model is learned from the labels of the labelled
    rows; its structure, variance floors and prior come from the features of all rows. Then the unlabelled rows are
    added with a safeguard, and :attr:`safety_` says what is guaranteed.

    Parameters
    ----------
    objective : {"generative", "discriminative"}
        Learn the joint density of features and class, or the class posteriors.
    safety : {"auto", "certified", "mcp", "none"}
        How to guard against harm by the unlabelled rows:

        * "certified": the model is at least as likely as the supervised one for every labelling of the unlabelled rows
          (generative), or for every labelling with plausible class proportions (discriminative); if no such model is
          found, the supervised one is returned;
        * "mcp": the paper's algorithm, which guarantees this at its final soft labels only;
        * "none": plain use of the unlabelled rows;
        * "auto": the strongest that applies, "certified".
    soft_label_init : {"auto", "optimistic", "dirichlet"}
        Where the soft labels of "mcp" start: at the supervised posteriors or at random; "auto" is random for the
        generative objective and optimistic for the discriminative one, as in the paper.
    network : "auto", str or sequence of str
        What each class is made of. "auto" is a committee of all that follows but "deep"; a sequence of names is a
        committee of these families; one name is a single network without averaging:

        * "blocks": one Gaussian of all real columns per class, with shared or own covariances;
        * "components": a mixture of all rows whose components the classes share; the labels determine their classes;
        * "forest": decision trees grown on the labels, as networks;
        * "deep": LearnSPN on all rows, copied per class, as in the paper.

        Where only one network can be fitted (``safety="mcp"`` or ``objective="discriminative"``), "auto" is "blocks".
    decision : {"probable", "f1", "balanced"} or array-like of shape (n_classes, n_classes)
        What :meth:`predict` aims at; probabilities stay as they are:

        * "probable": the most probable class, best for accuracy;
        * "f1": the F1 score of the second of two classes, or the mean F1 of more classes;
        * "balanced": balanced accuracy, the mean recall of the classes;
        * a matrix of costs: rows are true classes, columns predicted ones, both in the order of :attr:`classes_`.

        Where a rule depends on how common the classes are, this is estimated from the unlabelled rows.
    class_weight : "balanced", dict or None
        Factor of the weight of labelled rows, by class; "balanced" gives every class the same total. It changes what is
        learned and so the probabilities, which then are those of a table with such class proportions.
    max_depth : "auto" or int
        Depth of deep networks; 0 is a product of single columns, "auto" the depth that Akaike's criterion prefers.
    univariate : bool
        Let deep networks end in leaves of one column only, as the paper's do.
    pessimism : float between 0 and 1
        How far not to trust the model's own soft labels: 1 is the safe method, 0 is plain EM. Below 1 nothing is
        enforced, but the exact worst case is still reported. Not used by "mcp".
    confidence : float
        Confidence that the class proportions of the unlabelled rows lie in the interval that the discriminative
        certificate covers.
    variance_floor : "auto" or float
        Lower bound of variances relative to a column's own variance.
    prior_rows : float
        Pseudo-rows per class from the network of all rows: a class with few labels stays near the whole table.
    max_iter : int
        Iterations of the semi-supervised fit, at most: each is one pass over the rows. The worst case of a certified
        fit rises from the first one, and the fit stops when its rise becomes negligible.
    tol : float
        It stops when the objective per row changes by less than this many nats.
    unlabeled : object
        What marks an unlabelled row in ``y``, besides labels that are missing (NaN, None, NA, masked or an empty text);
        None if all rows are labelled.
    validation_fraction : float, optional
        Share of the labelled rows to set aside as validation rows.
    random_state : int, RandomState instance or None
    verbose : int
        Write progress to standard error: one line per pass, with the worst case so far, speed and time left.
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
        Folder where a certified generative fit saves its steps. When the same fit was interrupted it resumes
        from there, with the same result; a complete fit removes them. Workers on other machines must see the folder.
    scratch : path, optional
        Folder on a disk, for Dask collections that do not fit in memory: rows are encoded once into files there, and
        soft labels and densities are files, too, so that workers hold nothing between passes. The files are removed at
        the end of the fit, those behind :attr:`soft_labels_` with it. All workers must see the folder.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    spn_ : SPN
        The density of the safe model as one network whose root has one child per class. Its columns are those of X,
        with codes 0, 1, ... in the place of categories, and 0 in ignored columns.
    members_ : tuple of Member
        The networks whose class posteriors are averaged: family, size, weight, temperature and held-out log loss.
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
    column_types_ : list of str
        Type of each column of X: "continuous", "categorical", "count" (only if declared) or "ignored". Ignored columns
        have no influence; their values in rows to predict do not matter.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS

    def __init__(
        self,
        objective: str = "generative",
        safety: str = "auto",
        soft_label_init: str = "auto",
        *,
        network: str | Sequence[str] = "auto",
        decision: str | ArrayLike = "probable",
        class_weight: ClassWeight = None,
        max_depth: str | int = "auto",
        univariate: bool = False,
        pessimism: float = 1.0,
        confidence: float = 0.95,
        variance_floor: str | float = "auto",
        prior_rows: float = 0.3,
        max_iter: int = 25,
        tol: float = 1e-5,
        unlabeled: Any = -1,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        sample_size: int = 20_000,
        batch_size: int | None = None,
        persist: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
        scratch: str | PathLike[str] | None = None,
    ) -> None:
        self.objective = objective
        self.safety = safety
        self.soft_label_init = soft_label_init
        self.network = network
        self.decision = decision
        self.class_weight = class_weight
        self.max_depth = max_depth
        self.univariate = univariate
        self.pessimism = pessimism
        self.confidence = confidence
        self.variance_floor = variance_floor
        self.prior_rows = prior_rows
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
        self.scratch = scratch

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        column_types: ColumnTypes = None,
    ) -> SafeSPNClassifier:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like, data frame, or Dask array or data frame, of shape (n_rows, n_features)
            NaN marks a missing cell. Booleans, texts, pandas categories, and numbers with exactly two different values
            are categorical; columns that are empty or always the same are ignored, and so are dates, texts that rarely
            repeat and, in data frames, whole numbers that differ in every row. All other numbers are continuous.
        y : array-like of shape (n_rows,)
            Labels; the marker ``unlabeled`` for unlabelled rows.
        sample_weight : array-like of shape (n_rows,), optional
        validation : tuple of X and y, optional
            Labelled rows, for early stopping of "mcp" and scores in :attr:`history_`. Unless ``safety="none"``, a
            discriminative model is never worse than the supervised one on them.
        column_types : mapping, optional
            From the name or number of a column to "continuous", "categorical", "count" or "ignored", where
            the decision should be another; see :attr:`column_types_`. Counts are checked to be 0, 1, 2, ..., and are
            modelled like continuous numbers.

        Returns
        -------
        SafeSPNClassifier
            Itself.
        """
        self._validate_params()
        with self._attributes_of_input_restored():
            generator = as_generator(self.random_state)
            rows, encoder, classes, held_out = self._validate_input(
                X, y, sample_weight, validation, column_types, generator
            )
            method, settings = method_of(self), settings_of(self)
            with released_if_it_fails(rows), listening(lambda record: self._log(str(record))):
                if not isinstance(self.decision, str):
                    gains_of(self.decision, np.eye(len(classes)))  # complain before the work
                learned = learn_safely(rows, encoder.n_states, settings, method, held_out, generator, self._log)
                gains = learn_gains(self.decision, learned.safe, rows, self.n_jobs)
        self._encoder, self.classes_, self._gains = encoder, classes, gains
        self._set_committee(learned.safe)
        self.soft_labels_ = learned.soft_labels
        self.history_, self.n_iter_ = learned.history, max(len(learned.history), 1)
        self.safety_, self.n_sampled_ = learned.report, learned.n_sampled
        if not (isinstance(self.decision, str) and self.decision == "probable"):
            self.safety_ = self.safety_.about_most_probable_classes()
        self.notes_: dict[str, Any] = {}
        self.supervised_ = self._with_committee(learned.supervised)
        return self

    def _set_committee(self, committee: Committee) -> None:
        self._committee = committee
        self._spn: SPN | None = None

    def _with_committee(self, committee: Committee) -> SafeSPNClassifier:
        """Make a fitted classifier of the same kind from other networks of the same table."""
        other: SafeSPNClassifier = clone(self)
        for name in ("_encoder", "_gains", "classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        other.safety_ = self.safety_.without_unlabelled_rows()
        other._set_committee(committee)
        other.n_iter_, other.history_, other.notes_ = 1, [], {}
        other.soft_labels_ = np.empty((0, len(self.classes_)))
        other.n_sampled_ = 0
        other.supervised_ = other
        return other

    @property
    def spn_(self) -> SPN:
        """The density as one network whose root has one child per class."""
        if getattr(self, "_committee", None) is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet, and has no network")
        if self._spn is None:
            self._spn = SPN(self._committee.describe())
        return self._spn

    @property
    def members_(self) -> Members:
        """The networks whose class posteriors are averaged."""
        if getattr(self, "_committee", None) is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet, and has no members")
        return Members(self._committee.members)

    @property
    def column_types_(self) -> list[str]:
        """Type of each column."""
        if getattr(self, "_encoder", None) is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet, and knows no columns")
        return list(self._encoder.types)

    def _log(self, message: str) -> None:
        if self.verbose:
            sys.stderr.write(f"[{type(self).__name__}] {message}\n")

    def report(self, path: str | PathLike[str], X: ArrayLike, y: ArrayLike, **settings: Any) -> None:
        """Write a report on this fit as one HTML page; see :func:`safespn.report.write_report`.

        Parameters
        ----------
        path : path
        X, y : array-like
            The features and labels of the fit.
        **settings
            Further arguments of :func:`safespn.report.write_report`.
        """
        check_is_fitted(self)
        from safespn.report import write_report

        write_report(self, X, y, path, **settings)

    def evaluate(self, X: ArrayLike, y: ArrayLike, **settings: Any) -> Evaluation:
        """Hide labels on purpose and see whether the unlabelled rows help; the classifier need not be fitted.

        Parameters
        ----------
        X, y : array-like
            Features, and labels with gaps.
        **settings
            ``labelled`` (numbers of labels to keep), ``trials`` and others of
            :func:`safespn.report.evaluate_classifier`.

        Returns
        -------
        Evaluation
            A learning curve beside those of other models (``to_frame()``, ``plot()``), and what follows from it
            (``verdict``, ``sentences``).
        """
        from safespn.report import evaluate_classifier

        return evaluate_classifier(self, X, y, **settings)

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

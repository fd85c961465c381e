"""The public face of a network: check it, evaluate it, query it, fit it, save it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from safespn.engine import passes
from safespn.engine.bound import BoundNetwork, bind
from safespn.engine.evidence import class_evidence
from safespn.exceptions import ModelFileError
from safespn.foundation.randomness import as_generator
from safespn.learning.em import FitResult, fit_em
from safespn.learning.gradient import fit_adam, fit_lbfgs
from safespn.learning.parameters import Prior, least_variances, n_parameters
from safespn.learning.statistics_source import TableSource
from safespn.network.columns import as_row_weights, as_table, check_scale, column_names
from safespn.network.compiler import compile_network
from safespn.network.files import network_of, network_tensors, read_model, write_model
from safespn.network.leaves.family import LeafPrior
from safespn.network.nodes import Node, format_network
from safespn.network.structure import Parameters, Structure, describe
from safespn.network.validity import check_network
from safespn.queries.completion import conditional_draws, most_probable_completion
from safespn.typing import AnyArray, ArrayLike, FloatArray, RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SPN:
    """A sum-product network: a density over the columns of a table, with exact marginals.

    Parameters
    ----------
    root : Node
        The network's description. It must be complete (children of a sum model the same columns), decomposable
        (children of a product model different columns) and have proper weights.

    Raises
    ------
    ValueError
        If the network is not valid; the message names the node and what is wrong with it.

    Examples
    --------
    >>> from safespn import SPN, Categorical, Gaussian, Product, Sum
    >>> spn = SPN(Sum([Product([Gaussian(0, mean=0, variance=1), Categorical(1, [0.9, 0.1])]),
    ...                Product([Gaussian(0, mean=3, variance=1), Categorical(1, [0.2, 0.8])])], weights=[0.5, 0.5]))
    >>> spn.log_likelihood([[0.0, 0], [3.0, 1], [3.0, float("nan")]]).round(3)
    array([-1.715, -1.834, -1.601])
    """

    def __init__(self, root: Node) -> None:
        order, domains = check_network(root)
        self._structure, self._parameters = compile_network(root, order, domains)
        self.__dict__["root"] = root

    @classmethod
    def _from_parameters(cls, structure: Structure, parameters: Parameters) -> SPN:
        spn = cls.__new__(cls)
        spn._structure, spn._parameters = structure, parameters
        return spn

    @cached_property
    def root(self) -> Node:
        """The network's description, with the present parameters."""
        return describe(self._structure, self._parameters)

    @cached_property
    def _network(self) -> BoundNetwork:
        return bind(self._structure, self._parameters)

    @property
    def n_columns(self) -> int:
        """Number of columns of the tables that the network takes."""
        return self._structure.n_columns

    @property
    def n_nodes(self) -> int:
        """Number of sums, products and leaves; a shared node counts once."""
        return len(self._structure.nodes)

    @cached_property
    def n_edges(self) -> int:
        """Number of edges from parents to children."""
        return sum(len(node.children) for node in self._structure.nodes)

    @cached_property
    def depth(self) -> int:
        """Number of edges on the longest path from the root to a leaf."""
        depth: dict[int, int] = {}
        for node in self._structure.nodes:
            depth[id(node)] = 1 + max((depth[id(child)] for child in node.children), default=-1)
        return depth[id(self._structure.root)]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: weights less one per sum, and those of the leaves."""
        return n_parameters(self._structure, self._parameters)

    def __repr__(self) -> str:
        return f"SPN({self.n_columns} columns, {self.n_nodes} nodes, {self.n_edges} edges, depth {self.depth})"

    def __str__(self) -> str:
        return f"{self!r}\n{format_network(self.root)}"

    def log_likelihood(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Log density of each row, in nats.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            NaN marks a missing cell, which is marginalised exactly.
        n_jobs : int or None
            Number of threads, -1 for one per core; None uses all cores for long tables and one for short ones.

        Returns
        -------
        array of shape (n_rows,)
        """
        return passes.log_likelihood(self._network, as_table(X, self.n_columns), n_jobs)

    def log_joint(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Log density of each row together with each child k of the root, ``log w_k + log S_k(x)``.

        Returns
        -------
        array of shape (n_rows, n_children_of_root)
            A single column if the root is not a sum.
        """
        return passes.log_joint(self._network, as_table(X, self.n_columns), n_jobs)

    def mpe(self, X: ArrayLike) -> FloatArray:
        """Replace NaN cells by a most probable completion; leave the others untouched.

        The completion is the best single tree's (max-product): the exact most probable explanation for selective
        networks, and the usual approximation for others, where the exact one is NP-hard.
        """
        return most_probable_completion(self._structure, self._parameters, as_table(X, self.n_columns))

    def sample(self, n: int, *, random_state: RandomState = None) -> FloatArray:
        """Draw ``n`` rows, shape (n, n_columns); a column that no leaf models stays NaN."""
        if n < 0:
            raise ValueError(f"expected a number of rows that is not negative, got {n}")
        missing = np.full((n, self.n_columns), np.nan)
        return conditional_draws(self._structure, self._parameters, missing, as_generator(random_state))

    def conditional_sample(self, X: ArrayLike, *, random_state: RandomState = None) -> FloatArray:
        """Replace the NaN cells of each row by a draw given the row's other cells."""
        table = as_table(X, self.n_columns)
        return conditional_draws(self._structure, self._parameters, table, as_generator(random_state))

    def fit_em(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        *,
        weight_prior: float = 0.0,
        min_variance: float | FloatArray = 0.0,
        category_prior: float = 0.0,
        hard: bool = False,
        n_jobs: int | None = None,
    ) -> SPN:
        """Learn all weights and leaf parameters by expectation-maximisation, from the present ones.

        The penalised likelihood never falls.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            NaN marks a missing cell.
        sample_weight : array-like of shape (n_rows,), optional
        max_iter : int
        tol : float
            Stop when the mean objective per row rises by less than this many nats; if negative, make all iterations.
        weight_prior : float
            Pseudo-count added to every edge of a sum.
        min_variance : float or array of shape (n_columns,)
            Lower bound of the variance of Gaussian leaves; a tiny share (1e-16) of its column's variance in any case.
        category_prior : float
            Pseudo-count added to every state of categorical leaves.
        hard : bool
            Let each row count for its best tree only (max-product).

        Returns
        -------
        SPN
            A new network; this one is not changed.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If ``max_iter`` iterations were not enough.
        """
        table = as_table(X, self.n_columns)
        weights = as_row_weights(sample_weight, len(table))
        check_scale(table, column_names(X, self.n_columns))
        result = fit_em(
            TableSource(self._structure, table, None, weights, hard, n_jobs),
            self._parameters,
            prior=Prior(weight_prior, LeafPrior(least_variances(table, weights, min_variance), category_prior)),
            max_iter=max_iter,
            tol=tol,
        )
        return self._from_parameters(self._structure, result.parameters)

    def fit_gradient(
        self,
        X: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        *,
        solver: str = "lbfgs",
        weight_prior: float = 0.0,
        min_variance: float | FloatArray = 0.0,
        category_prior: float = 0.0,
        hard: bool = False,
        batch_size: int = 1024,
        learning_rate: float = 0.02,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> SPN:
        """Learn all weights and leaf parameters by gradient ascent, from the present ones.

        Without ``classes`` the likelihood of the rows is maximised; with them the conditional likelihood of each row's
        class given its cells, where class k is child k of the root.

        Parameters
        ----------
        classes : array-like of shape (n_rows,), optional
            Number of the root's child that each row belongs to, -1 if unknown (such a row adds nothing).
        solver : {"lbfgs", "adam"}
            L-BFGS on all rows, or Adam on mini-batches for large tables.
        hard : bool
            Use max-product gradients (Gens and Domingos 2012): each row counts for its best tree only.
        batch_size, learning_rate, random_state
            For Adam: rows per step, size of the first steps in natural units, seed of the order of the rows.

        Returns
        -------
        SPN
            A new network; this one is not changed. The other parameters are those of :meth:`fit_em`.
        """
        if solver not in ("lbfgs", "adam"):
            raise ValueError(f'solver must be "lbfgs" or "adam", got {solver!r}')
        table = as_table(X, self.n_columns)
        evidence = None
        if classes is not None:
            evidence = class_evidence(classes, len(table), self._structure.n_root_edges, conditional=True)
        fit: Callable[..., FitResult] = fit_lbfgs
        if solver == "adam":
            fit = partial(
                fit_adam, batch_size=batch_size, learning_rate=learning_rate, generator=as_generator(random_state)
            )
        weights = as_row_weights(sample_weight, len(table))
        check_scale(table, column_names(X, self.n_columns))
        result = fit(
            TableSource(self._structure, table, evidence, weights, hard, n_jobs),
            self._parameters,
            prior=Prior(weight_prior, LeafPrior(least_variances(table, weights, min_variance), category_prior)),
            max_iter=max_iter,
            tol=tol,
        )
        return self._from_parameters(self._structure, result.parameters)

    def plot(self, ax: Axes | None = None, *, feature_names: Sequence[str] | None = None, max_nodes: int = 80) -> Axes:
        """Draw the network; see :func:`safespn.plotting.plot_structure` for the parameters.

        Returns
        -------
        matplotlib Axes
        """
        from safespn.plotting import plot_structure

        return plot_structure(self, ax, feature_names=feature_names, max_nodes=max_nodes)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the network to a file that :meth:`load` reads without running any code from it."""
        write_model(path, "network", network_tensors(self.root))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SPN:
        """Read a network written by :meth:`save`.

        Raises
        ------
        ModelFileError
            A ValueError: the file is damaged, truncated, not a network, or written by a newer version.
        """
        tensors, _ = read_model(path, "network")
        return cls._from_tensors(tensors, path)

    @classmethod
    def _from_tensors(cls, tensors: dict[str, AnyArray], path: str | PathLike[str]) -> SPN:
        """Rebuild and check a network read from the file ``path``."""
        root = network_of(tensors, path)
        try:
            return cls(root)
        except ValueError as error:
            raise ModelFileError(f"{path}: the file does not describe a valid network ({error})") from error

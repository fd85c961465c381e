"""A committee of class networks: a weighted average of their class posteriors over a mixture of their densities.

The joint density of a row and its class is ``p(x) p(k | x)`` with::

    p(x)     = sum_j density_weight_j * p_j(x)
    p(k | x) = (sum_j weight_j * p_j(k | x) ** (1 / temperature_j)) ** (1 / temperature)

where every power is normalised over the classes. Averaging posteriors predicts better than any one member, and better
than the posteriors of the mixture of densities, in which the member with the highest density would decide alone. An
average of well calibrated members that differ is too flat: the temperature of the whole sharpens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from scipy.special import logsumexp

from safespn.class_networks.candidate import compile_checked
from safespn.class_networks.copies import copy_network
from safespn.class_networks.weighing import log_tempered
from safespn.engine import passes
from safespn.engine.bound import BoundNetwork, bind
from safespn.foundation.posteriors import log_posterior
from safespn.network.nodes import Leaf, Node, Sum, walk
from safespn.network.structure import Parameters, Structure, describe
from safespn.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Member:
    """One class network of a committee.

    Parameters
    ----------
    family : {"blocks", "components", "forest", "deep"}
    size : str
        What distinguishes it from others of its family, in words.
    weight : float
        Its share in the class posteriors; the weights of a committee sum to one.
    temperature : float
        Its posteriors are flattened above one and sharpened below.
    log_loss : float
        Mean log loss, in nats, of held-out labels at that temperature; NaN where no label could be left out.
    density_weight : float
        Its share in the density.
    structure : Structure
        Of a network whose root has one child per class.
    parameters : Parameters
    votes : bool
        Whether each class is a sum over trees whose posteriors are averaged.
    """

    family: str
    size: str
    weight: float
    temperature: float
    log_loss: float
    density_weight: float
    structure: Structure
    parameters: Parameters
    votes: bool = False

    def __repr__(self) -> str:
        return (
            f"Member({self.family}: {self.size}, weight {self.weight:.2f}, temperature {self.temperature:.2f}, "
            f"held-out log loss {self.log_loss:.3f})"
        )

    @property
    def n_classes(self) -> int:
        return self.structure.n_root_edges

    def evaluate(self, table: AnyArray, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Log density, shape (n_rows,), and log posteriors at the member's temperature, shape (n_rows, n_classes)."""
        network = self._voting_network if self.votes else self._network
        values = passes.map_log_joint(self._density_and_posterior, 1 + self.n_classes, network, table, n_jobs)
        return values[:, 0], values[:, 1:]

    def _density_and_posterior(self, joint: FloatArray) -> FloatArray:
        """What :meth:`evaluate` returns as one array, of log values of the root's edges."""
        if self.votes:
            density, posterior = _average_of_votes(joint.reshape(len(joint), self.n_classes, -1))
        else:
            with np.errstate(invalid="ignore"):  # a NaN stays one
                density, posterior = np.logaddexp.reduce(joint, axis=1), log_posterior(joint)
        impossible = np.isneginf(density)
        if impossible.any():
            # A row that no class makes possible says nothing about them; one that is not a number stays so.
            posterior[impossible] = self.log_class_weights
        return np.column_stack([density, log_tempered(posterior, self.temperature)])

    def with_density_weight(self, density_weight: float) -> Member:
        """Return the member with another share in the density; what was bound for its passes is kept."""
        other = replace(self, density_weight=density_weight)
        other.__dict__.update({name: value for name, value in vars(self).items() if name in _BOUND})
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _BOUND}

    @property
    def log_class_weights(self) -> FloatArray:
        return self.parameters.log_weights[-self.n_classes :]

    @cached_property
    def _network(self) -> BoundNetwork:
        return bind(self.structure, self.parameters)

    @cached_property
    def _voting_network(self) -> BoundNetwork:
        """The network with an edge of the root for every class and tree, classes first."""
        root = describe(self.structure, self.parameters)
        assert isinstance(root, Sum)
        children: list[Node] = []
        weights: list[float] = []
        for of_class, class_weight in zip(root.children, root.weights, strict=True):
            assert isinstance(of_class, Sum)
            children += of_class.children
            weights += [class_weight * weight for weight in of_class.weights]
        return bind(*compile_checked(Sum(children, weights)))


_BOUND = ("_network", "_voting_network")


def _average_of_votes(by_voter: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log density, and log of the mean posterior over voters; ``by_voter`` has shape (n_rows, n_classes, n_voters)."""
    top = by_voter.max(axis=1)
    powers = by_voter - np.where(np.isfinite(top), top, 0.0)[:, None]
    np.exp(powers, out=powers)
    total = powers.sum(axis=1)
    with np.errstate(divide="ignore"):
        density = logsumexp(top + np.log(total), axis=1)
    powers /= np.where(total > 0, total, 1.0)[:, None]
    # A row that no tree makes possible has no posterior: the caller knows.
    return density, np.log(np.maximum(powers.mean(axis=2), 1e-300))


def _own_tie(first: int, leaf: Leaf) -> int | None:
    return None if leaf.tie is None else first + leaf.tie


def log_average(ours: FloatArray, theirs: FloatArray, share: float) -> FloatArray:
    """Log of the average of two log posteriors, with a share of the second."""
    if share in (0.0, 1.0):
        return theirs if share else ours
    return np.asarray(np.logaddexp(ours + np.log1p(-share), theirs + np.log(share)))


@dataclass(frozen=True, eq=False)
class Committee:
    """Members whose weights sum to one; a single member at temperature one is a plain class network.

    Parameters
    ----------
    members : tuple of Member
    reference : Committee or None
        The committee that posteriors are drawn back to.
    drawn_back : float
        Share of the reference's posteriors.
    temperature : float
        The average of the members' posteriors is flattened above one and sharpened below.
    """

    members: tuple[Member, ...]
    reference: Committee | None = None
    drawn_back: float = 0.0
    temperature: float = 1.0

    @property
    def n_classes(self) -> int:
        return self.members[0].n_classes

    def evaluate(self, table: AnyArray, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Log density, shape (n_rows,), and log class posteriors, shape (n_rows, n_classes)."""
        density, posterior = self.combine([member.evaluate(table, n_jobs) for member in self.members])
        if self.reference is not None:
            posterior = log_average(posterior, self.reference.evaluate(table, n_jobs)[1], self.drawn_back)
        return density, posterior

    def combine(self, of_members: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """Mix the densities and average the posteriors of the members, as they return them."""
        densities, posteriors = [], []
        for member, (density, posterior) in zip(self.members, of_members, strict=True):
            posteriors.append(posterior + np.log(member.weight))
            if member.density_weight > 0:
                densities.append(density + np.log(member.density_weight))
        with np.errstate(invalid="ignore"):  # a NaN stays one
            return reduce(np.logaddexp, densities), log_tempered(reduce(np.logaddexp, posteriors), self.temperature)

    def joint(self, table: AnyArray, n_jobs: int | None = None) -> FloatArray:
        """Log density of each row together with each class, shape (n_rows, n_classes)."""
        density, posterior = self.evaluate(table, n_jobs)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isneginf(density)[:, None], -np.inf, density[:, None] + posterior))

    def with_parameters(self, parameters: Sequence[Parameters]) -> Committee:
        """Return the committee whose members have other parameters."""
        members = [
            member if each is member.parameters else replace(member, parameters=each)
            for member, each in zip(self.members, parameters, strict=True)
        ]
        return replace(self, members=tuple(members))

    def describe(self) -> Node:
        """Describe the density as one network whose root has one child per class, a sum over the members."""
        members = [member for member in self.members if member.density_weight > 0]
        roots = [describe(member.structure, member.parameters) for member in members]
        joint = np.array([np.exp(member.log_class_weights) * member.density_weight for member in members])
        of_class = joint.sum(axis=0)
        if len(members) == 1:
            return roots[0]
        # Ties are those within a member.
        n_ties = 1 + max((leaf.tie or 0 for root in roots for leaf in walk(root) if isinstance(leaf, Leaf)), default=0)
        roots = [copy_network(root, partial(_own_tie, number * n_ties)) for number, root in enumerate(roots)]
        classes = [
            Sum([root.children[code] for root in roots], joint[:, code] / of_class[code])
            for code in range(self.n_classes)
        ]
        return Sum(classes, of_class / of_class.sum())

    def __str__(self) -> str:
        """Say in one line what the committee consists of."""
        if len(self.members) == 1:
            return f"{self.members[0].family} ({self.members[0].size})"
        share: dict[str, float] = {}
        for member in self.members:
            share[member.family] = share.get(member.family, 0.0) + member.weight
        parts = [
            f"{100 * weight:.0f} % {family}" for family, weight in sorted(share.items(), key=lambda each: -each[1])
        ]
        return f"{len(self.members)} networks: {', '.join(parts)}"

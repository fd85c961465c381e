"""What every family of class networks supplies: candidates for a committee, and the networks behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from safespn.learning.parameters import Prior
from safespn.network.compiler import compile_network
from safespn.network.nodes import Node
from safespn.network.structure import Parameters, Structure
from safespn.network.validity import check_network
from safespn.typing import FloatArray

CATEGORY_PRIOR = 0.1
"""Pseudo-count of every state of a categorical leaf."""


@dataclass(frozen=True)
class NetworkSettings:
    """What users decide about class networks; see :class:`safespn.SafeSPNClassifier`.

    Parameters
    ----------
    variance_floor : float
        Lower bound of variances relative to a column's own variance.
    prior_rows : float
        Pseudo-rows per class from the network of all rows.
    max_depth : int or None
        Depth of deep networks; None for the depth that Akaike's criterion prefers.
    univariate : bool
        Whether deep networks end in leaves of one column only.
    n_jobs : int or None
    """

    variance_floor: float
    prior_rows: float
    max_depth: int | None
    univariate: bool
    n_jobs: int | None


@dataclass(frozen=True, eq=False)
class ClassNetwork:
    """A network whose root has one child per class.

    Parameters
    ----------
    structure : Structure
    parameters : Parameters
        Learned from the labels; components, boxes and the prior may come from the features of all rows.
    prior : Prior
        What every further update of the parameters respects.
    votes : bool
        Whether each class is a sum over trees whose class posteriors are averaged, not their densities.
    for_density : bool
        Whether it may have a share in a committee's density.
    """

    structure: Structure
    parameters: Parameters
    prior: Prior
    votes: bool = False
    for_density: bool = True


@dataclass(frozen=True, eq=False)
class Candidate:
    """A class network that may join a committee.

    Parameters
    ----------
    family : {"blocks", "components", "forest", "deep"}
    group : str
        Candidates of one group are weighed among themselves first.
    size : str
        What distinguishes it from others of its family, in words.
    left_out : array of shape (n_left_out, n_classes)
        Log posteriors, or class joints, of the held-out labelled rows, each by a network that did not see its label.
    usual_temperature : float
        What the prior on its temperature is centred at: how over-confident such networks are as a rule.
    build : callable
        Makes the network from all labels; called for candidates that count only.
    """

    family: str
    group: str
    size: str
    left_out: FloatArray
    usual_temperature: float
    build: Callable[[], ClassNetwork]


def compile_checked(root: Node) -> tuple[Structure, Parameters]:
    """Compile a description after checking it."""
    return compile_network(root, *check_network(root))

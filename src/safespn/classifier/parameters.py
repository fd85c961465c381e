"""Parameters of the classifier: what they may be, and what they mean to a fit."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval, StrOptions

from safespn.class_networks.candidate import NetworkSettings
from safespn.class_networks.families import AUTO, FAMILIES
from safespn.decisions import RULES
from safespn.safety.method import Method
from safespn.safety.pipeline import FitSettings

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier

RELATIVE_FLOOR = 1e-4

CONSTRAINTS: dict[str, Any] = {
    "objective": [StrOptions({"generative", "discriminative"})],
    "safety": [StrOptions({"auto", "certified", "mcp", "none"})],
    "soft_label_init": [StrOptions({"auto", "optimistic", "dirichlet"})],
    "network": [StrOptions({"auto", *FAMILIES}), "array-like"],
    "decision": [StrOptions(set(RULES)), "array-like"],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "max_depth": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
    "univariate": ["boolean"],
    "pessimism": [Interval(Real, 0, 1, closed="both")],
    "confidence": [Interval(Real, 0, 1, closed="neither")],
    "variance_floor": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "prior_rows": [Interval(Real, 0, None, closed="neither")],
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
    "scratch": [str, PathLike, None],
}


def settings_of(classifier: SafeSPNClassifier) -> FitSettings:
    """What a fit with these parameters learns."""
    families, single = _families(classifier.network)
    if classifier.safety == "mcp" or classifier.objective == "discriminative":
        # The paper's algorithm and conditional likelihoods are those of one network.
        families, single = families if single else ("blocks",), True
    return FitSettings(
        families=families,
        single=single,
        networks=NetworkSettings(
            variance_floor=RELATIVE_FLOOR if classifier.variance_floor == "auto" else float(classifier.variance_floor),
            prior_rows=classifier.prior_rows,
            max_depth=None if classifier.max_depth == "auto" else int(classifier.max_depth),
            univariate=classifier.univariate,
            n_jobs=classifier.n_jobs,
        ),
        sample_size=classifier.sample_size,
        checkpoint=None if classifier.checkpoint is None else Path(classifier.checkpoint),
    )


def _families(network: str | Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Families by name, and whether one network of a single family is meant."""
    if isinstance(network, str):
        return (AUTO, False) if network == "auto" else ((network,), True)
    families = tuple(dict.fromkeys(map(str, network)))
    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        known = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"network: expected 'auto', or one or several of {known}, got {network!r}")
    return families, False


def method_of(classifier: SafeSPNClassifier) -> Method:
    """How a fit with these parameters guards against its unlabelled rows."""
    return Method(
        safety="certified" if classifier.safety == "auto" else classifier.safety,
        objective=classifier.objective,
        soft_label_init=classifier.soft_label_init,
        pessimism=classifier.pessimism,
        confidence=classifier.confidence,
        max_iter=classifier.max_iter,
        tol=classifier.tol,
        batch_size=classifier.batch_size,
    )

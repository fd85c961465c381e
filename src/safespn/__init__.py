"""Safe semi-supervised learning with sum-product networks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from safespn.exceptions import (
    AuditWarning,
    CheckpointError,
    CheckpointWarning,
    DatasetNotFoundError,
    DegenerateColumnWarning,
    EnoughLabelsWarning,
    FewLabelsWarning,
    IgnoredColumnWarning,
    LabelWarning,
    ModelFileError,
    ResultsMismatchError,
    ScratchError,
    SentinelWarning,
    TableError,
    UnseenCategoryWarning,
)

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier
    from safespn.engine.backends import use_engine
    from safespn.foundation.simplex import project_simplex
    from safespn.network.leaves import Categorical, DensityTree, Gaussian, MultivariateGaussian, Poisson
    from safespn.network.nodes import Product, Sum
    from safespn.safety.report import SafetyReport
    from safespn.spn import SPN
    from safespn.structure_learning import learn_spn

__version__ = "0.1.0.dev0"

__all__ = [
    "SPN",
    "AuditWarning",
    "Categorical",
    "CheckpointError",
    "CheckpointWarning",
    "DatasetNotFoundError",
    "DegenerateColumnWarning",
    "DensityTree",
    "EnoughLabelsWarning",
    "FewLabelsWarning",
    "Gaussian",
    "IgnoredColumnWarning",
    "LabelWarning",
    "ModelFileError",
    "MultivariateGaussian",
    "Poisson",
    "Product",
    "ResultsMismatchError",
    "SafeSPNClassifier",
    "SafetyReport",
    "ScratchError",
    "SentinelWarning",
    "Sum",
    "TableError",
    "UnseenCategoryWarning",
    "__version__",
    "learn_spn",
    "project_simplex",
    "use_engine",
]

_MODULES = {
    "SPN": "spn",
    "Categorical": "network.leaves",
    "DensityTree": "network.leaves",
    "Gaussian": "network.leaves",
    "MultivariateGaussian": "network.leaves",
    "Poisson": "network.leaves",
    "Product": "network.nodes",
    "SafeSPNClassifier": "classifier",
    "SafetyReport": "safety.report",
    "Sum": "network.nodes",
    "learn_spn": "structure_learning",
    "project_simplex": "foundation.simplex",
    "use_engine": "engine.backends",
}
"""Where the public names live that are imported on first use."""
_SUBMODULES = ("baselines", "datasets", "model_selection", "plotting")
"""Public modules, likewise."""


def __getattr__(name: str) -> Any:
    # scikit-learn takes longer to import than all the rest, and networks do without it; an interrupt while the command
    # imports numpy would end it with a traceback.
    if name in _SUBMODULES:
        return import_module(f"safespn.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"safespn.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])

"""Safe semi-supervised learning with sum-product networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safespn.learning.structure import learn_spn
from safespn.network.files import ModelFileError
from safespn.network.leaves import Categorical, Gaussian, MultivariateGaussian, Poisson
from safespn.network.nodes import Product, Sum
from safespn.safety.report import SafetyReport
from safespn.safety.soft_labels import project_simplex
from safespn.spn import SPN

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier

__version__ = "0.1.0.dev0"

__all__ = [
    "SPN",
    "Categorical",
    "Gaussian",
    "ModelFileError",
    "MultivariateGaussian",
    "Poisson",
    "Product",
    "SafeSPNClassifier",
    "SafetyReport",
    "Sum",
    "__version__",
    "learn_spn",
    "project_simplex",
]


def __getattr__(name: str) -> Any:
    # The estimator needs scikit-learn, which takes longer to import than all the rest; networks do without.
    if name == "SafeSPNClassifier":
        from safespn.classifier import SafeSPNClassifier

        return SafeSPNClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""The scikit-learn estimator, the checks of what users hand to it, and its files."""

from __future__ import annotations

from safespn.classifier.estimator import SafeSPNClassifier

__all__ = ["SafeSPNClassifier"]

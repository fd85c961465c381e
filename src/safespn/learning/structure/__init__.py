"""Structure learning: a table -> its columns' types -> a tree of splits -> a cut tree -> a network."""

from __future__ import annotations

from safespn.learning.structure.learn import learn_spn
from safespn.learning.structure.learn_classes import learn_class_spn
from safespn.learning.structure.table import DegenerateColumnWarning

__all__ = ["DegenerateColumnWarning", "learn_class_spn", "learn_spn"]

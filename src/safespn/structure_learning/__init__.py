"""Structure learning: a table -> its columns' types -> a tree of splits -> a cut tree -> a network."""

from __future__ import annotations

from safespn.exceptions import DegenerateColumnWarning
from safespn.structure_learning.learn import learn_spn

__all__ = ["DegenerateColumnWarning", "learn_spn"]

"""What is wrong with a table, said so that its owner can put it right."""

from __future__ import annotations


class TableError(ValueError):
    """A table that cannot be used: one line with what is wrong, where, and what to do."""

"""Distinct rows of tables of truth values."""

from __future__ import annotations

import numpy as np

from safespn.typing import BoolArray, IntArray


def distinct_rows(table: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the distinct rows, and which of them each row is."""
    n_words = max(1, -(-table.shape[1] // 64))
    octets = np.zeros((len(table), 8 * n_words), dtype=np.uint8)
    octets[:, : -(-table.shape[1] // 8)] = np.packbits(table, axis=1)
    # Whole words are sorted much faster than rows.
    keys = octets.view(np.uint64 if n_words == 1 else f"V{octets.shape[1]}").ravel()
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return table[first], number

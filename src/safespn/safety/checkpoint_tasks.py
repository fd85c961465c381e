"""What a checkpoint asks of the rows: a hash of each block, and soft labels to and from files beside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from safespn.exceptions import CheckpointError
from safespn.network.structure import Structure
from safespn.rows.blocks import RowBlock
from safespn.safety.tasks import RowState
from safespn.typing import FloatArray

TOLERANCE = 1e-6
"""Soft labels add up to one within this."""


class RowDigests:
    """A list with the number of the block and a hash of its rows, classes and weights."""

    def __call__(self, structure: Structure, block: RowBlock, state: Any) -> tuple[list[tuple[int, str]], Any]:
        digest = hashlib.blake2b(digest_size=16)
        for values in (block.table, block.codes, np.empty(0) if block.weights is None else block.weights):
            digest.update(f"{values.dtype.str} {values.shape} ".encode())
            digest.update(np.ascontiguousarray(values).data.cast("B") if values.size else b"")
        return [(block.number, digest.hexdigest())], state


@dataclass(frozen=True)
class WriteSoftLabels:
    """Write the soft labels of a block to a file in a folder."""

    folder: str
    reads_rows: ClassVar[bool] = False

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[None, RowState]:
        np.save(Path(self.folder) / f"{block.number}.npy", state.soft_labels)
        return None, state


@dataclass(frozen=True)
class ReadSoftLabels:
    """Read the soft labels of a block from its file in a folder."""

    folder: str

    def __call__(self, structure: Structure, block: RowBlock, state: RowState) -> tuple[None, RowState]:
        file = Path(self.folder) / f"{block.number}.npy"
        try:
            soft_labels: FloatArray = np.load(file)
        except Exception as error:  # a damaged header is parsed as Python, with errors of all kinds
            raise CheckpointError(f"{file} cannot be read ({error}); delete {Path(self.folder).parent}") from error
        is_array = isinstance(soft_labels, np.ndarray)  # an archive of arrays is none
        same_shape = is_array and soft_labels.shape == state.soft_labels.shape and soft_labels.dtype == np.float64
        if not same_shape or not self._are_soft_labels(soft_labels, block):
            raise CheckpointError(
                f"{file} holds no soft labels of block {block.number}: it is damaged; delete {Path(self.folder).parent}"
            )
        return None, RowState(state.reference, soft_labels)

    def _are_soft_labels(self, values: FloatArray, block: RowBlock) -> bool:
        """Whether rows lie on the simplex, those of known class at its corner."""
        known = ~block.is_unlabelled
        return bool(
            (values >= 0).all()
            and (np.abs(values.sum(axis=1) - 1) <= TOLERANCE).all()
            and (values[known, block.codes[known]] == 1).all()
        )

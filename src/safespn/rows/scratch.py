"""A folder on disk for what a fit needs in every pass and has no memory for: encoded rows, and what is kept with them.

Rows are encoded once. Cells take the fewest bytes that lose nothing: codes one, numbers four where single precision
holds them exactly, eight otherwise. Whoever holds the files of a pass removes them when nobody refers to them any more.
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safespn.exceptions import ScratchError
from safespn.rows.blocks import RowBlock
from safespn.typing import AnyArray, FloatArray, IntArray

SPARE_BYTES = 1 << 26
"""Left free on the disk whatever the fit needs."""


class Scratch:
    """A folder of its own inside one that the user named; it is removed with this object, at the latest at exit.

    Parameters
    ----------
    parent : Path
        An existing folder.

    Raises
    ------
    ScratchError
        If nothing can be written there.
    """

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        try:
            self.path = Path(tempfile.mkdtemp(prefix=".safespn-scratch-", dir=parent))
        except OSError as error:
            raise ScratchError(
                f"scratch {parent}: the folder cannot be written ({error.strerror}); choose another one"
            ) from error
        self._n_folders = 0
        self._remove = weakref.finalize(self, _remove, self.path)

    def check_space(self, n_bytes: int) -> None:
        """Refuse to start what cannot end for lack of space."""
        free = shutil.disk_usage(self.path).free
        if free < n_bytes + SPARE_BYTES:
            raise ScratchError(
                f"scratch {self.parent}: the fit needs about {n_bytes / 1e9:.3g} GB of disk, {free / 1e9:.3g} GB are "
                "free; choose a folder on a larger disk"
            )

    def explained(self, error: OSError) -> OSError | ScratchError:
        """Say what to do about an error of writing here; other files of the fit have errors of their own."""
        is_ours = str(error.filename or "").startswith(str(self.path))
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) and not is_ours:
            return error
        advice = "make room, or choose a folder on a larger disk" if error.errno == errno.ENOSPC else "choose another"
        return ScratchError(f"scratch {self.parent}: {error.strerror or error}; {advice}")

    def folder(self) -> ScratchFolder:
        """Make a new folder."""
        self._n_folders += 1
        return ScratchFolder(self, self.path / f"{self._n_folders}")

    def remove(self) -> None:
        """Remove everything at once, whoever refers to it."""
        self._remove()


class ScratchFolder:
    """A folder that is removed when nobody refers to it any more; copies sent to workers own nothing."""

    def __init__(self, scratch: Scratch, path: Path) -> None:
        path.mkdir()
        self.path = path
        self._scratch = scratch
        weakref.finalize(self, _remove, path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _ForeignFolder, (self.path,)


@dataclass(frozen=True)
class _ForeignFolder:
    """A folder that another process owns."""

    path: Path


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block of rows in a file.

    Parameters
    ----------
    folder : ScratchFolder
    number : int
        Which of the blocks this is.
    n_rows : int
    groups : tuple of (dtype, columns)
        Columns that are stored with the same type, in the order of the file; then come the classes and the weights.
    codes : dtype
    weighted : bool
    """

    folder: ScratchFolder | _ForeignFolder
    number: int
    n_rows: int
    groups: tuple[tuple[str, IntArray], ...]
    codes: str
    weighted: bool

    @classmethod
    def write(cls, folder: ScratchFolder | _ForeignFolder, block: RowBlock, n_states: Sequence[int]) -> StoredBlock:
        """Write a block; ``n_states`` has the number of states of each column of codes, 0 for real columns."""
        types = [_smallest_type(column, states) for column, states in zip(block.table.T, n_states, strict=True)]
        groups = tuple((kind, np.nonzero(np.array(types) == kind)[0]) for kind in sorted(set(types)))
        # Signed types reach one further below zero than above: this one holds -1 and the largest code.
        codes = np.min_scalar_type(-1 - int(block.codes.max(initial=0))).str
        with (folder.path / f"{block.number}.rows").open("wb") as file:
            for kind, columns in groups:
                _as_type(block.table[:, columns] if len(groups) > 1 else block.table, kind).tofile(file)
            block.codes.astype(codes).tofile(file)
            if block.weights is not None:
                block.weights.tofile(file)
        return cls(folder, block.number, len(block.codes), groups, codes, block.weights is not None)

    def read(self) -> RowBlock:
        """Read the block into memory, as it was."""
        offset = 0

        def take(kind: str, *shape: int) -> AnyArray:
            nonlocal offset
            start, offset = offset, offset + np.dtype(kind).itemsize * int(np.prod(shape))
            # Private, so that it may be written to, which compiled kernels ask for.
            return np.asarray(np.memmap(self.folder.path / f"{self.number}.rows", kind, "c", start, shape))

        stored = [(columns, take(kind, self.n_rows, len(columns))) for kind, columns in self.groups]
        table = stored[0][1]
        if [kind for kind, _ in self.groups] != [_DOUBLES]:
            table = np.empty((self.n_rows, sum(len(columns) for columns, _ in stored)))
            for columns, cells in stored:
                is_codes = cells.dtype == _CODES
                of_all = columns if len(stored) > 1 else slice(None)
                table[:, of_all] = np.where(cells < 0, np.nan, cells) if is_codes else cells
        codes = take(self.codes, self.n_rows).astype(np.intp)
        weights = np.array(take("<f8", self.n_rows)) if self.weighted else None
        return RowBlock(table, codes, weights, self.number)


_CODES, _SINGLES, _DOUBLES = "|i1", "<f4", "<f8"


def _smallest_type(column: FloatArray, n_states: int) -> str:
    if 0 < n_states <= np.iinfo(np.int8).max:
        return _CODES
    with np.errstate(over="ignore"):
        is_exact = np.array_equal(column.astype(np.float32), column, equal_nan=True)
    return _SINGLES if is_exact else _DOUBLES


def _as_type(cells: FloatArray, kind: str) -> AnyArray:
    return np.where(np.isnan(cells), -1, cells).astype(kind) if kind == _CODES else cells.astype(kind, copy=False)


class StoredStates(Sequence["StoredState"]):
    """The states of all blocks after a pass, in files of their own."""

    def __init__(self, folder: ScratchFolder, n_blocks: int) -> None:
        self.folder, self._n_blocks = folder, n_blocks

    def __len__(self) -> int:
        return self._n_blocks

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < self._n_blocks:
            raise IndexError(number)
        return StoredState(self.folder, number)


@dataclass(frozen=True, eq=False)
class StoredState:
    """The state of one block: a small file with whatever it is, and a file for each of its arrays."""

    folder: ScratchFolder | _ForeignFolder
    number: int

    def read(self) -> tuple[Any, dict[int, tuple[AnyArray, Path]]]:
        """Return the state, and the file that each of its arrays came from, by ``id``."""
        origins: dict[int, tuple[AnyArray, Path]] = {}
        with (self.folder.path / f"{self.number}.state").open("rb") as file:
            return _StateReader(file, self.folder.path, origins).load(), origins

    def write(self, state: Any, origins: dict[int, tuple[AnyArray, Path]]) -> None:
        """Write a state; an array that was read from another one is the same file under another name."""
        with (self.folder.path / f"{self.number}.state").open("wb") as file:
            _StateWriter(file, self.folder.path / f"{self.number}", origins).dump(state)


class _StateWriter(pickle.Pickler):
    def __init__(self, file: Any, stem: Path, origins: dict[int, tuple[AnyArray, Path]]) -> None:
        super().__init__(file, protocol=5)
        self._stem, self._origins, self._n_arrays = stem, origins, 0

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, np.ndarray):
            return None
        path = self._stem.with_name(f"{self._stem.name}-{self._n_arrays}.npy")
        self._n_arrays += 1
        # A pass that is repeated after the loss of a worker finds its own files.
        path.unlink(missing_ok=True)
        known = self._origins.get(id(value))
        if known is None or not _linked(known[1], path):
            np.save(path, value, allow_pickle=False)
        return path.name


class _StateReader(pickle.Unpickler):
    def __init__(self, file: Any, folder: Path, origins: dict[int, tuple[AnyArray, Path]]) -> None:
        super().__init__(file)
        self._folder, self._origins = folder, origins

    def persistent_load(self, name: str) -> AnyArray:
        path = self._folder / name
        # Private like the rows: whoever reads a state may write to it, and the file stays.
        array: AnyArray = np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
        self._origins[id(array)] = (array, path)
        return array


def _linked(old: Path, new: Path) -> bool:
    try:
        os.link(old, new)
    except OSError:
        return False  # not every file system has links
    return True

"""Temporary copies of tables that cannot be read where they are: from pipes, or in encodings other than UTF-8."""

from __future__ import annotations

import os
import stat
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from safespn.exceptions import TableError

_COPY_SIZE = 1 << 20


@dataclass(frozen=True, eq=False)
class TemporaryCopy:
    """A file that is deleted when the object that made it is gone, or when the process ends."""

    path: Path

    @classmethod
    def of_bytes(cls, blocks: Iterable[bytes]) -> TemporaryCopy:
        """Write blocks of bytes, in the folder for temporary files."""
        handle, name = tempfile.mkstemp(prefix="safespn-")
        copy = cls(Path(name))
        weakref.finalize(copy, copy.path.unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as file:
            for block in blocks:
                file.write(block)
        return copy


def copy_of_stream(path: Path) -> TemporaryCopy | None:
    """Copy what comes through a pipe, a socket or a terminal, which can be read only once; None for other files."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty()):
            return None
        return TemporaryCopy.of_bytes(iter(lambda: file.read(_COPY_SIZE), b""))


def copy_in_utf8(path: Path, encoding: str, name: Path) -> TemporaryCopy:
    """Copy a text file in UTF-8; ``name`` is named in errors."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            texts = iter(lambda: file.read(_COPY_SIZE), "")
            return TemporaryCopy.of_bytes(text.encode() for text in texts)
    except UnicodeError as error:
        raise TableError(
            f"{name}: letters that are not {encoding.upper()} ({error}); save the file as UTF-8"
        ) from error

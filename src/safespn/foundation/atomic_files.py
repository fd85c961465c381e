"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TEMPORARY_PREFIX = ".safespn-"
"""How files begin that are being written. The destination's name may be as long as names can be: it is not repeated."""


def atomic_write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with atomic_open(path) as file:
        file.write(content)


def check_place(path: str | os.PathLike[str]) -> None:
    """Do to the file system what :func:`atomic_open` will do, and leave nothing.

    Raises
    ------
    OSError
        If no file can be written beside the destination, or none can have its name.
    """
    path = Path(path).resolve()
    with suppress(FileNotFoundError):
        path.lstat()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX)
    os.close(handle)
    Path(name).unlink()


@contextmanager
def atomic_open(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to write beside its destination and rename it at the end, so that no half-written one is ever left.

    A destination that exists and is no regular file, such as a device or a pipe, is written to directly.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # through a symbolic link, which stays
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

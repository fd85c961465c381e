"""Places for results."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from safespn.exceptions import TableError
from safespn.foundation.atomic_files import check_place

BYTES_IN_MEMORY = 1 << 26
"""Results for standard output are held in memory up to this size, and in a temporary file beyond."""


def check_outputs(*outputs: Path | None, inputs: Sequence[Path] = ()) -> None:
    """Complain before the work, rather than after it, if a result cannot be written or would change an input.

    Every command also says something on standard output, so that must not go to an input either.
    """
    check_standard_output(inputs)
    given = [path for path in outputs if path is not None]
    for path in given:
        check_not_an_input(path, inputs)
        _check_writable(path)
    resolved = [path.resolve() for path in given]
    if len(set(resolved)) < len(resolved):
        raise TableError(f"{resolved[0]}: two results cannot go to one file; give them different names")


def check_standard_output(inputs: Sequence[Path], *, is_needed: bool = False) -> None:
    """Complain if standard output goes to a file that is to be read, or is closed and needed."""
    if sys.stdout is None or sys.__stdout__ is None:
        if is_needed:
            raise TableError("standard output is closed; write the result to a file with --output")
        return
    try:
        there = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return
    for source in inputs:
        if source.is_file() and os.path.samestat(there, source.stat()):
            raise TableError(f"{source}: standard output goes to this input; write the result to another file")


def check_not_an_input(path: Path, inputs: Sequence[Path], remedy: str = "give it another name") -> None:
    """Complain if a result would overwrite an input; the file need not exist, nor its folder."""
    for source in inputs:
        # A device, such as a terminal, can be read and written at the same time.
        if path.is_file() and source.is_file() and path.samefile(source):
            same = "is an input" if path == source else f"and the input {source} are the same file"
            raise TableError(f"{path}: the output {same}, which would be overwritten; {remedy}")


def _check_writable(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        try:
            path.resolve(strict=True)
        except FileNotFoundError:
            pass  # a link to a file that is to be created
        except (OSError, RuntimeError):
            raise TableError(f"{path}: a symbolic link that leads nowhere; give another name") from None
    if path.exists() and not path.is_dir() and not path.is_file():
        return
    if path.is_dir():
        raise TableError(f"{path}: this is a folder; give the name of a file to write")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise TableError(f"{path}: there is no folder {folder}; create it, or write elsewhere")
    check_place(path)


@contextmanager
def atomic_stdout() -> Iterator[IO[bytes]]:
    """Collect what goes to standard output, and write it at the end: all of it, or nothing after an error."""
    with tempfile.SpooledTemporaryFile(BYTES_IN_MEMORY) as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()

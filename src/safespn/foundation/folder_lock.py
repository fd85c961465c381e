"""A folder that only one process, and one part of it, uses at a time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = ".safespn-lock"
_LONGEST_NOTE = 16


class FolderLock:
    """Hold a folder; the system sets it free when the process ends, however it ends.

    The file that holds it carries a number, which the next one to hold the folder can read if the file is left there.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Raises
    ------
    BlockingIOError
        If it is held already.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._handle = self._open()

    def _open(self) -> int:
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(handle)
                # The process that held it before may have removed the file that was opened here.
                if os.path.samestat(os.fstat(handle), self.path.stat()):
                    return handle
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def note(self) -> int:
        """Return the number that was left here, 0 if there is none."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        note = os.read(self._handle, _LONGEST_NOTE)
        return int(note) if note.isdigit() else 0

    def set_note(self, number: int) -> None:
        """Leave a number; nothing where it cannot be written."""
        with suppress(OSError):
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, str(number).encode())

    def release(self, *, remove: bool) -> None:
        """Set the folder free, with or without the file that held it."""
        if remove:
            with suppress(OSError):
                self.path.unlink()
        os.close(self._handle)


def _lock(handle: int) -> None:
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError as error:  # what Windows says
        raise BlockingIOError(error.errno, error.strerror) from error

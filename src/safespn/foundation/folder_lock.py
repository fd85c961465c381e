"""A folder that only one process, and one part of it, uses at a time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = "lock"


class FolderLock:
    """Hold a folder; the system sets it free when the process ends, however it ends.

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

    def release(self) -> None:
        """Set the folder free."""
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

"""A folder that only one process, and one part of it, uses at a time."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

NAME = ".safespn-lock"
_OWN_TEXT = re.compile(rb"(?:safespn lock (\d{1,9}))?")
_LONGEST_TEXT = 32


class FolderLock:
    """Hold a folder; the system sets it free when the process ends, however it ends.

    The file that holds it carries a number, which the next one to hold the folder can read if the file is left there.
    Only a file that was made here, or an empty one, can hold the folder; links are not followed.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Raises
    ------
    BlockingIOError
        If it is held already.
    FileExistsError
        If something else has the name of the file; it is left as it is.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._handle = self._open()

    def _open(self) -> int:
        while True:
            self._refuse_other_than_file()
            # Windows has no such flags; there, only what is put here after the check above would be followed.
            flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o666)
            try:
                _lock(handle)
                # The process that held it before may have removed the file that was opened here.
                if os.path.samestat(os.fstat(handle), self.path.lstat()):
                    if os.fstat(handle).st_nlink > 1 or _text(handle) is None:
                        raise self._is_foreign("was not made by a fit")
                    return handle
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _refuse_other_than_file(self) -> None:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(self.path.lstat().st_mode):
                raise self._is_foreign("is a link, a folder or a device")

    def _is_foreign(self, reason: str) -> FileExistsError:
        return FileExistsError(errno.EEXIST, f"{self.path} {reason} and is left as it is", str(self.path))

    def note(self) -> int:
        """Return the number that was left here, 0 if there is none."""
        return _text(self._handle) or 0

    def set_note(self, number: int) -> None:
        """Leave a number; nothing where it cannot be written."""
        with suppress(OSError):
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, f"safespn lock {number}".encode())

    def release(self, *, remove: bool) -> None:
        """Set the folder free, with or without the file that held it."""
        if remove:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._handle), self.path.lstat()):
                    self.path.unlink()
        os.close(self._handle)


def _text(handle: int) -> int | None:
    """Return the number in a file, 0 if it is empty, None if the file was not made here."""
    os.lseek(handle, 0, os.SEEK_SET)
    own = _OWN_TEXT.fullmatch(os.read(handle, _LONGEST_TEXT))
    return None if own is None else int(own[1] or 0)


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

"""The folder of a checkpoint: one fit holds it at a time, and removes nothing but what fits have made there.

A folder that a fit makes holds a small file from the start, by which later fits know it: a name alone proves nothing.
Links are never followed.
"""

from __future__ import annotations

import errno
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

from safespn.exceptions import CheckpointError, CheckpointWarning
from safespn.foundation.folder_lock import NAME as LOCK_NAME
from safespn.foundation.folder_lock import FolderLock

STEPS_FILE = "steps.safetensors"
OWN_FOLDER = re.compile(r"(step|unfinished)-(\d{6,})(-\d+)?")
OWN_FILE = re.compile(r"\d+\.npy")
MARK = ".safespn-made"
MARK_TEXT = b"A SafeSPN fit made this folder for its checkpoint, and removes it when it is complete.\n"


class CheckpointFolder:
    """A folder in which a fit saves the steps of its networks; use it as a context, which holds the folder meanwhile.

    Parameters
    ----------
    path : Path
        Made if it does not exist, parents included; what was made is removed when it is empty in the end, also by a
        later fit that resumes this one.
    networks : sequence of str
        Name of the folder inside for each network; the empty name stands for the folder itself.

    Attributes
    ----------
    fails : bool
        Whether something could not be written: then no more steps are.

    Raises
    ------
    CheckpointError
        If the folder cannot be written or is in use.
    """

    def __init__(self, path: Path, networks: Sequence[str]) -> None:
        self.path, self.networks, self.fails, self._n_made = path, networks, False, 0
        self._made: set[Path] = set()
        try:
            self.path = _resolved(path)
            self._n_made = sum(not each.exists() for each in (self.path, *self.path.parents))
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.path)
        except BlockingIOError as error:
            raise CheckpointError(
                f"checkpoint {path}: another fit that still runs uses this folder; choose another one"
            ) from error
        except (OSError, ValueError, RuntimeError) as error:  # also of names that are none, and of links in a circle
            self._remove_folders()
            reason = error.strerror if isinstance(error, OSError) else error
            raise CheckpointError(
                f"checkpoint {path}: the folder cannot be written ({reason}); choose another one"
            ) from error
        self._places = {name: self._place(name) for name in networks}
        # The lock of an interrupted fit stays with its steps and knows which folders that fit made.
        self._n_made = self._n_made or self._lock.note()
        self._lock.set_note(self._n_made)
        try:
            self._warn_of_foreign_things()
        except OSError as error:
            self.__exit__()
            raise CheckpointError(
                f"checkpoint {path}: the folder cannot be read ({error.strerror}); choose another one"
            ) from error
        except BaseException:  # where warnings are errors
            self.__exit__()
            raise

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *error: object) -> None:
        for name in self.networks:
            for each in self.own_folders(name, "unfinished"):
                self.remove_step(each)
        has_steps = False
        for name, place in self._places.items():
            if self.own_folders(name):
                has_steps = True
            elif name and self._is_own(place):
                self._remove_own(place)
        self._lock.release(remove=not has_steps)
        self._remove_folders()

    def own_folders(self, network: str, kind: str = "") -> list[Path]:
        """Folders of steps of a network, the newest last."""
        place = self._places[network]
        if network and not self._is_own(place):
            return []
        return sorted((each for each in place.glob(f"{kind}*-*") if self._holds_step(each)), key=_number_of_step)

    def new_folder(self, network: str, name: str) -> Path:
        """Make a folder for a step of a network; it gets another name where something has this one."""
        place = self._places[network]
        if network and not self._is_own(place):
            self._make(place)
        folder = self._free_name(network, name)
        self._make(folder)
        return folder

    def rename(self, folder: Path, network: str, name: str) -> Path:
        """Give a new folder its final name, or that name with a number where something has it."""
        renamed = folder.rename(self._free_name(network, name))
        self._made.discard(folder)
        return renamed

    def _free_name(self, network: str, name: str) -> Path:
        return next(each for each in _numbered(self._places[network] / name) if not _exists(each))

    def remove_step(self, folder: Path) -> None:
        """Remove a folder of a step: the files that are written here, and folders that are empty then."""
        with suppress(OSError):
            # First, so that what is left after an interruption is not taken for a step.
            (folder / STEPS_FILE).unlink(missing_ok=True)
            for of_step in folder.iterdir():
                if of_step.name.isdigit() and _is_folder(of_step):
                    for file in of_step.iterdir():
                        if OWN_FILE.fullmatch(file.name) and not file.is_symlink():
                            file.unlink()
                    with suppress(OSError):
                        of_step.rmdir()
            self._remove_own(folder)

    def _place(self, network: str) -> Path:
        """Return where the steps of a network are or will be: no folder that somebody else has made."""
        if not network:
            return self.path
        return next(each for each in _numbered(self.path / network) if self._is_own(each) or not _exists(each))

    def _make(self, folder: Path) -> None:
        folder.mkdir()
        # Remembered, in case that the disk has no room for the file.
        self._made.add(folder)
        (folder / MARK).write_bytes(MARK_TEXT)

    def _is_own(self, folder: Path) -> bool:
        return _is_folder(folder) and (folder in self._made or _has_mark(folder))

    def _remove_own(self, folder: Path) -> None:
        with suppress(OSError):
            (folder / MARK).unlink(missing_ok=True)
            self._made.discard(folder)
            folder.rmdir()

    def _holds_step(self, path: Path) -> bool:
        return bool(OWN_FOLDER.fullmatch(path.name)) and self._is_own(path)

    def fail(self, step: int, error: Exception) -> None:
        """Note that a step could not be written, and say so once for all networks."""
        if not self.fails:
            warnings.warn(
                f"checkpoint {self.path}: step {step} cannot be written ({error}); the fit continues, but could not be "
                "resumed after this step",
                CheckpointWarning,
                stacklevel=2,
            )
        self.fails = True

    def _warn_of_foreign_things(self) -> None:
        foreign = sorted(self._foreign_things())
        if foreign:
            shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
            warnings.warn(
                f"checkpoint {self.path}: the folder holds other things ({shown}), which are left alone",
                CheckpointWarning,
                stacklevel=2,
            )

    def _foreign_things(self) -> Iterator[str]:
        folders = {self.path, *(place for place in self._places.values() if self._is_own(place))}
        for folder in folders:
            own = folders | {self.path / LOCK_NAME if folder == self.path else folder / MARK}
            may_hold_steps = folder != self.path or "" in self.networks
            for each in folder.iterdir():
                if each not in own and not (may_hold_steps and self._holds_step(each)):
                    yield str(each.relative_to(self.path))

    def _remove_folders(self) -> None:
        """Remove the folder, and the parents that were made with it, as far as they are empty."""
        for each in (self.path, *self.path.parents)[: self._n_made]:
            with suppress(OSError):  # also where only some of the parents could be made
                each.rmdir()


def _resolved(path: Path) -> Path:
    """Return the folder that a path means; a link to nowhere is refused, as nothing is made through links."""
    path = path.absolute()
    for each in (path, *path.parents):
        if each.is_symlink() and not each.exists():
            raise FileNotFoundError(errno.ENOENT, f"{each} is a link to nowhere")
    return path.resolve()


def _numbered(path: Path) -> Iterator[Path]:
    """A path, and then the same with numbers from 2 on."""
    return chain([path], (path.with_name(f"{path.name}-{number}") for number in count(2)))


def _number_of_step(folder: Path) -> int:
    name = OWN_FOLDER.fullmatch(folder.name)
    return int(name[2]) if name else 0


def _exists(path: Path) -> bool:
    """Whether anything has this name, also a link to nowhere."""
    return os.path.lexists(path)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _has_mark(folder: Path) -> bool:
    mark = folder / MARK
    try:
        return not mark.is_symlink() and mark.is_file() and mark.read_bytes() == MARK_TEXT
    except OSError:
        return False

"""The folder of a checkpoint: one fit holds it at a time, and removes nothing but what fits have made there."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from safespn.exceptions import CheckpointError, CheckpointWarning
from safespn.foundation.folder_lock import NAME as LOCK_NAME
from safespn.foundation.folder_lock import FolderLock

STEPS_FILE = "steps.safetensors"
OWN_FOLDER = re.compile(r"(step|unfinished)-\d{6,}")


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
        self.path, self.networks, self.fails = path, networks, False
        missing = [each for each in (path, *path.parents) if not each.exists()]
        self._n_made = len(missing)
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(path)
        except BlockingIOError as error:
            raise CheckpointError(
                f"checkpoint {path}: another fit that still runs uses this folder; choose another one"
            ) from error
        except OSError as error:
            self._remove_folders()
            raise CheckpointError(
                f"checkpoint {path}: the folder cannot be written ({error.strerror}); choose another one"
            ) from error
        # The lock of an interrupted fit stays with its steps and knows which folders that fit made.
        self._n_made = self._n_made or self._lock.note()
        self._lock.set_note(self._n_made)
        try:
            self._warn_of_foreign_things()
        except BaseException:  # where warnings are errors
            self.__exit__()
            raise

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *error: object) -> None:
        has_steps = any(any((self.path / name).glob(f"step-*/{STEPS_FILE}")) for name in self.networks)
        self._lock.release(remove=not has_steps)
        for name in filter(None, self.networks):
            with suppress(OSError):
                (self.path / name).rmdir()
        self._remove_folders()

    def own_folders(self, network: str, kind: str = "") -> list[Path]:
        """Folders of steps of a network."""
        return [each for each in (self.path / network).glob(f"{kind}*-*") if _holds_step(each)]

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
        folders = {self.path, *(self.path / name for name in self.networks)}
        for folder in folders:
            for each in folder.iterdir() if folder.is_dir() else ():
                is_own = each in folders or each == self.path / LOCK_NAME
                if not is_own and not (_holds_step(each) and (folder != self.path or "" in self.networks)):
                    yield str(each.relative_to(self.path))

    def _remove_folders(self) -> None:
        """Remove the folder, and the parents that were made with it, as far as they are empty."""
        with suppress(OSError):
            for each in (self.path, *self.path.parents)[: self._n_made]:
                each.rmdir()


def _holds_step(path: Path) -> bool:
    return bool(OWN_FOLDER.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()

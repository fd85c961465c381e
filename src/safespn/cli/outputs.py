"""Places for results."""

from __future__ import annotations

import tempfile
from pathlib import Path

from safespn.tables import TableError


def check_writable(*paths: Path | None) -> None:
    """Complain before the work, rather than after it, if a file cannot be written."""
    for path in paths:
        if path is None or (path.exists() and not path.is_dir() and not path.is_file()):
            continue
        if path.is_dir():
            raise TableError(f"{path}: this is a folder; give the name of a file to write")
        folder = path.resolve().parent
        if not folder.is_dir():
            raise TableError(f"{path}: there is no folder {folder}; create it, or write elsewhere")
        with tempfile.TemporaryFile(dir=folder):
            pass
    given = [path.resolve() for path in paths if path is not None]
    if len(set(given)) < len(given):
        raise TableError(f"{given[0]}: two results cannot go to one file; give them different names")

"""All trials of a data set in one file: method by method, a list over trials for each score."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safespn.exceptions import ResultsMismatchError
from safespn.experiments.runner import TrialSettings
from safespn.foundation.atomic_files import atomic_write

DIGITS = 6
"""Significant digits kept of a score."""


def gathered(name: str, trials: Sequence[Mapping[str, Any]], settings: TrialSettings) -> bytes:
    """Gather the trials of a data set in one text, JSON."""
    of_tables = {
        table: {
            method: {
                score: [float(f"{trial[table][method][score]:.{DIGITS}g}") for trial in trials] for score in scores
            }
            for method, scores in methods.items()
        }
        for table, methods in trials[0].items()
    }
    content = {"data": name, **asdict(settings), **of_tables}
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def unpack(path: Path, folder: Path) -> None:
    """Write the trials that a compressed file has gathered where the run that made them left them.

    Parameters
    ----------
    path : Path
        What :func:`gathered` has made, compressed with gzip.
    folder : Path
        Gets one file per trial; what it holds already stays as it is.
    """
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
        settings = {key: content[key] for key in asdict(TrialSettings())}
        of_tables = {key: value for key, value in content.items() if key not in ("data", *settings)}
        lists = [scores for methods in of_tables.values() for method in methods.values() for scores in method.values()]
    except (gzip.BadGzipFile, zlib.error, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ResultsMismatchError(f"{path} holds no recorded trials ({error}); delete it") from error
    folder.mkdir(parents=True, exist_ok=True)
    for trial in range(min(map(len, lists), default=0)):
        target = folder / f"{trial:04d}.json"
        if not target.exists():
            atomic_write(
                target,
                json.dumps({"settings": settings, "seconds": 0.0, "scores": _nth(of_tables, trial)}, indent=1).encode(),
            )


def _nth(value: Any, trial: int) -> Any:
    return {key: _nth(entry, trial) for key, entry in value.items()} if isinstance(value, dict) else value[trial]

"""Steps of a fit on disk, so that an interrupted fit goes on where it was, with the same result.

The folder holds one file with the parameters and the record of every step so far, and for the last and the best step
the soft labels of every part, each written by whoever has the part. A folder of a step is complete before it gets its
name. A fit that goes on makes the same decisions again from the record, and continues when the record ends.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from safespn.network.structure import Parameters, Structure
from safespn.rows.parts import Kept, Part
from safespn.safety.problem import Problem
from safespn.safety.tasks import RowState

SHARE_OF_TIME = 0.05
"""Share of its time that a fit spends on writing steps down, at most."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used for this fit."""


@dataclass(frozen=True)
class PastStep:
    """A step of the interrupted fit; soft labels only of the last and the best step."""

    parameters: Parameters
    entry: dict[str, Any]
    kept: Kept


class Journal:
    """Writes steps down in a folder, and knows those of an interrupted fit.

    Parameters
    ----------
    folder : Path
    supervised : Parameters
        The model that the fit starts from.
    identity : dict
        Plain values that tell this fit from others.
    """

    def __init__(self, folder: Path, supervised: Parameters, identity: dict[str, Any]) -> None:
        self.folder, self.supervised = folder, supervised
        self.identity = json.loads(json.dumps(identity))
        self._steps: list[tuple[Parameters, dict[str, Any]]] = []
        self._numbers: list[int] = []
        self._written, self._cost = time.monotonic(), 0.0
        newest = max(folder.glob("step-*"), default=None)
        if newest is not None:
            self._read(newest)

    def knows(self, number: int) -> bool:
        """Whether the interrupted fit made this step."""
        return number <= len(self._steps) and bool(self._numbers)

    def step(self, number: int, problem: Problem, start: Kept) -> PastStep:
        """Return a step of the interrupted fit."""
        parameters, entry = self._steps[number - 1]
        kept: Kept = start
        if number in self._numbers:
            _, kept = problem.run(_ReadSoftLabels(str(self._newest / f"{number}")), start)
        if number == len(self._steps):
            self._numbers = []
        return PastStep(parameters, entry, kept)

    def write(
        self, number: int, parameters: Parameters, entry: dict[str, Any], kept: dict[int, Kept], problem: Problem
    ) -> None:
        """Note a step, and write all of them down if it is time; ``kept`` has the soft labels that must survive."""
        self._steps.append((parameters, entry))
        started = time.monotonic()
        if started - self._written < self._cost / SHARE_OF_TIME:
            return
        target = self.folder / f"step-{number:06d}"
        unfinished = self.folder / f"unfinished-{number:06d}"
        shutil.rmtree(unfinished, ignore_errors=True)
        for which, of_step in kept.items():
            (unfinished / f"{which}").mkdir(parents=True)
            problem.run(_WriteSoftLabels(str(unfinished / f"{which}")), of_step)
        tensors = {
            f"{step}.{name}": array for step, (each, _) in enumerate(self._steps) for name, array in _arrays(each)
        }
        tensors |= {f"supervised.{name}": array for name, array in _arrays(self.supervised)}
        record = {
            "identity": self.identity,
            "entries": [entry for _, entry in self._steps],
            "numbers": [which for which in kept if which],
        }
        save_file(tensors, unfinished / "steps.safetensors", metadata={"record": json.dumps(record)})
        unfinished.rename(target)
        for older in self.folder.glob("*-*"):
            if older != target:
                shutil.rmtree(older, ignore_errors=True)
        self._written = time.monotonic()
        self._cost = self._written - started

    def close(self) -> None:
        """Remove what was written: the fit is complete."""
        for each in self.folder.glob("*-*"):
            shutil.rmtree(each, ignore_errors=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, newest: Path) -> None:
        file = newest / "steps.safetensors"
        try:
            tensors = load_file(file)
            record = json.loads(_metadata(file)["record"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(
                f"checkpoint {self.folder}: {file.name} cannot be read ({error}); delete it"
            ) from error
        if record["identity"] != self.identity or not self._starts_at(tensors):
            raise CheckpointError(
                f"checkpoint {self.folder} belongs to a fit of other rows or settings; delete it or choose another path"
            )
        n_leaves = len(self.supervised.leaves)
        self._steps = [
            (_parameters(tensors, f"{step}", n_leaves), entry) for step, entry in enumerate(record["entries"])
        ]
        self._numbers, self._newest = record["numbers"], newest

    def _starts_at(self, tensors: dict[str, Any]) -> bool:
        """Whether the interrupted fit started from the same supervised model, up to rounding."""
        return all(
            f"supervised.{name}" in tensors and np.allclose(tensors[f"supervised.{name}"], array, rtol=1e-6)
            for name, array in _arrays(self.supervised)
        )


def _metadata(file: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(file, "numpy") as opened:
        return dict(opened.metadata())


def _arrays(parameters: Parameters) -> list[tuple[str, Any]]:
    leaves = [(f"leaves.{index}", np.ascontiguousarray(values)) for index, values in enumerate(parameters.leaves)]
    return [("log_weights", np.ascontiguousarray(parameters.log_weights)), *leaves]


def _parameters(tensors: dict[str, Any], prefix: str, n_leaves: int) -> Parameters:
    leaves = tuple(tensors[f"{prefix}.leaves.{index}"] for index in range(n_leaves))
    return Parameters(tensors[f"{prefix}.log_weights"], leaves)


@dataclass(frozen=True)
class _WriteSoftLabels:
    folder: str

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[None, RowState]:
        np.save(Path(self.folder) / f"{part.number}.npy", kept.soft_labels)
        return None, kept


@dataclass(frozen=True)
class _ReadSoftLabels:
    folder: str

    def __call__(self, structure: Structure, part: Part, kept: RowState) -> tuple[None, RowState]:
        soft_labels = np.load(Path(self.folder) / f"{part.number}.npy")
        if soft_labels.shape != kept.soft_labels.shape:
            raise CheckpointError(f"soft labels in {self.folder} have another shape than part {part.number}; delete it")
        return None, RowState(kept.rival, soft_labels)

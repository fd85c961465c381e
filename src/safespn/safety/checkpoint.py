"""Steps of a fit on disk, so that an interrupted fit resumes where it stopped, with the same result.

The folder holds one file with the parameters and the record of every step so far, and for the last and the best step
the soft labels of every block, each written by the worker that has the block. A folder of a step is complete before it
gets its name. A resumed fit makes the same decisions again from the record, and continues when the record ends.

Nothing in the folder is trusted: what is read is checked, and the certificate is computed again from it. Nothing is
removed but what was made here.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from safespn.exceptions import CheckpointError
from safespn.network.structure import Parameters, Structure, describe
from safespn.rows.blocks import BlockStates
from safespn.rows.lockstep import Passes
from safespn.safety.checkpoint_folder import STEPS_FILE, CheckpointFolder
from safespn.safety.checkpoint_tasks import ReadSoftLabels, RowDigests, WriteSoftLabels
from safespn.safety.problem import Problem
from safespn.typing import AnyArray

SHARE_OF_TIME = 0.05
"""Largest share of its time that a fit spends on saving steps, unless more steps than these would be lost:"""
MOST_REPEATED = 2
"""Steps that are lost with an interruption, at most, whatever saving costs."""
FORMAT = 2
SAME = 1e-6
"""Relative difference up to which two models are the same: sums are rounded differently on other machines."""


@dataclass(frozen=True)
class PastStep:
    """A step of the interrupted fit; soft labels only of the last and the best step."""

    parameters: Parameters
    entry: dict[str, Any]
    states: BlockStates


class Journal:
    """Writes the steps of a network down in a folder, and knows those of an interrupted fit.

    Steps are removed by :meth:`close`.

    Parameters
    ----------
    holder : CheckpointFolder
    network : str
        Name of the network's folder inside.
    problem : Problem
    supervised : Parameters
        The model that the fit starts from.
    settings : dict
        Plain values that distinguish this fit from others of the same rows.
    digests : list
        Hashes of the rows, by :func:`row_digests`.

    Raises
    ------
    CheckpointError
        If the folder holds steps that are damaged or belong to another fit.
    """

    def __init__(
        self,
        holder: CheckpointFolder,
        network: str,
        problem: Problem,
        supervised: Parameters,
        settings: dict[str, Any],
        digests: list[tuple[int, str]],
    ) -> None:
        self.holder, self.network, self.problem, self.supervised = holder, network, problem, supervised
        self._origin = _origin(problem, supervised)
        self._steps: list[tuple[Parameters, dict[str, Any]]] = []
        self._numbers: list[int] = []
        self._written, self._cost, self._last = time.monotonic(), 0.0, 0
        self.identity = json.loads(json.dumps({"format": FORMAT, "rows": digests, "settings": settings}))
        steps = [each for each in holder.own_folders(network, "step") if (each / STEPS_FILE).exists()]
        if steps:
            self._read(steps[-1])

    def knows(self, number: int) -> bool:
        """Whether the interrupted fit made this step."""
        return number <= len(self._steps) and bool(self._numbers)

    def step(self, number: int, start: BlockStates) -> Passes[PastStep]:
        """Return a step of the interrupted fit, given the states that it started from."""
        parameters, entry = self._steps[number - 1]
        states: BlockStates = start
        if number in self._numbers:
            _, states = yield self.problem.request(ReadSoftLabels(str(self._newest / f"{number}")), start)
        if number == len(self._steps):
            self._numbers = []
        return PastStep(parameters, entry, states)

    def write(self, number: int, parameters: Parameters, entry: dict[str, Any], states: dict[int, BlockStates]) -> None:
        """Note a step, and write all of them down if it is time; ``states`` has the soft labels that must survive."""
        self._steps.append((parameters, entry))
        started = time.monotonic()
        is_soon = started - self._written < self._cost / SHARE_OF_TIME and number < self._last + MOST_REPEATED
        if self.holder.fails or is_soon:
            return
        unfinished = None
        try:
            unfinished = self.holder.new_folder(self.network, f"unfinished-{number:06d}")
            self._write(unfinished, states)
            target = self.holder.rename(unfinished, self.network, f"step-{number:06d}")
        except (OSError, SafetensorError) as error:
            if unfinished is not None:
                self.holder.remove_step(unfinished)
            self.holder.fail(number, error)
            return
        for older in self.holder.own_folders(self.network):
            if older != target:
                self.holder.remove_step(older)
        self._written = time.monotonic()
        self._cost, self._last = self._written - started, number

    def _write(self, folder: Path, states: dict[int, BlockStates]) -> None:
        for which, of_step in states.items():
            (folder / f"{which}").mkdir()
            self.problem.run(WriteSoftLabels(str(folder / f"{which}")), of_step)
        tensors = {f"origin.{name}": array for name, array in self._origin.items()}
        for number, (parameters, _) in enumerate(self._steps):
            tensors |= {f"{number}.{name}": array for name, array in _arrays(parameters).items()}
        record = {
            "identity": self.identity,
            "entries": [entry for _, entry in self._steps],
            "numbers": [which for which in states if which],
        }
        save_file(tensors, folder / STEPS_FILE, metadata={"record": json.dumps(record)})

    def close(self) -> None:
        """Remove what was written: the fit is complete."""
        for each in self.holder.own_folders(self.network):
            self.holder.remove_step(each)

    def _read(self, newest: Path) -> None:
        file = newest / STEPS_FILE
        try:
            tensors = load_file(file)
            record = json.loads(_metadata(file)["record"])
            identity, entries, numbers = record["identity"], record["entries"], record["numbers"]
            same = identity == self.identity and _same(tensors, self._origin)
        except Exception as error:  # a damaged header gives errors of all kinds, also of types that numpy lacks
            raise CheckpointError(f"checkpoint {newest}: {file.name} cannot be read ({error}); delete it") from error
        if not same:
            raise CheckpointError(
                f"checkpoint {newest} belongs to a fit of other rows or settings; delete it or choose another path"
            )
        try:
            self._steps = _checked_steps(self.problem.structure, self.supervised, tensors, entries, numbers)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise CheckpointError(f"checkpoint {newest}: {file.name} is damaged ({error}); delete it") from error
        self._numbers, self._newest = numbers, newest


def row_digests(problem: Problem) -> list[tuple[int, str]]:
    """Hash the rows, classes and weights of every block."""
    return sorted(problem.run(RowDigests())[0])


def _metadata(file: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(file, "numpy") as opened:
        return dict(opened.metadata())


def _arrays(parameters: Parameters) -> dict[str, AnyArray]:
    leaves = {f"leaves.{index}": np.ascontiguousarray(values) for index, values in enumerate(parameters.leaves)}
    return {"log_weights": np.ascontiguousarray(parameters.log_weights), **leaves}


def _origin(problem: Problem, supervised: Parameters) -> dict[str, AnyArray]:
    """What a fit starts from besides its rows: the supervised model and the prior."""
    prior = problem.prior
    arrays: dict[str, Any] = {
        **_arrays(supervised),
        "weight_prior": prior.weight_prior,
        "min_variance": prior.leaves.min_variance,
        "category_prior": prior.leaves.category_prior,
        "covariance_prior": prior.leaves.covariance_prior,
    }
    if prior.leaves.covariance_target is not None:
        arrays["covariance_target"] = prior.leaves.covariance_target
    if prior.pseudo_data is not None:
        arrays["edge_counts"] = prior.pseudo_data.edge_counts
        arrays |= {f"leaf_counts.{index}": counts for index, counts in enumerate(prior.pseudo_data.leaf_counts)}
    return {name: np.array(values, dtype=np.float64, ndmin=1) for name, values in arrays.items()}


def _same(tensors: dict[str, AnyArray], origin: dict[str, AnyArray]) -> bool:
    """Whether the interrupted fit started from the same models, up to rounding."""
    written = {name.removeprefix("origin."): values for name, values in tensors.items() if name.startswith("origin.")}
    return set(written) == set(origin) and all(
        written[name].shape == values.shape
        and np.allclose(
            written[name], values, rtol=SAME, atol=SAME**2 * np.abs(values[np.isfinite(values)]).max(initial=0)
        )
        for name, values in origin.items()
    )


def _checked_steps(
    structure: Structure, supervised: Parameters, tensors: dict[str, AnyArray], entries: Any, numbers: Any
) -> list[tuple[Parameters, dict[str, Any]]]:
    """Steps as they were written; a ValueError if they cannot have been."""
    if not isinstance(entries, list) or not entries or not isinstance(numbers, list) or len(entries) not in numbers:
        raise ValueError("it lists no steps, or no soft labels of the last one")
    if not all(type(number) is int and 0 < number <= len(entries) for number in numbers):
        raise ValueError(f"it lists soft labels of steps {numbers} of {len(entries)}")
    steps = []
    for position, entry in enumerate(entries):
        values = [entry[name] for name in ("objective", "contrast", "worst_case")]
        if not all(isinstance(value, (int, float)) and float(value) < np.inf for value in values):
            raise ValueError(f"step {position + 1} has a record that is not a number")
        arrays = {name: tensors[f"{position}.{name}"] for name in _arrays(supervised)}
        for name, like in _arrays(supervised).items():
            if arrays[name].shape != like.shape or arrays[name].dtype != like.dtype:
                raise ValueError(f"step {position + 1} has {name} of another shape than the network")
            if np.isnan(arrays[name]).any():
                raise ValueError(f"step {position + 1} has {name} that are not numbers")
        log_weights, *leaves = arrays.values()
        with np.errstate(over="ignore"):
            totals = structure.sum_over_edges(np.exp(log_weights))
        if not (np.abs(totals - 1) <= SAME).all():
            raise ValueError(f"step {position + 1} has weights that do not add up to one")
        parameters = Parameters(log_weights, tuple(leaves))
        describe(structure, parameters)  # refuses variances, covariances and probabilities that are none
        steps.append((parameters, entry))
    return steps

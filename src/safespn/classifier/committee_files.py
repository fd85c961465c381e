"""Committees as tensors and plain values: each member's network, supervised and safe."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from safespn.class_networks.committee import Committee, Member
from safespn.class_networks.families import FAMILIES
from safespn.exceptions import ModelFileError
from safespn.network.files import network_tensors
from safespn.network.nodes import Node, Sum
from safespn.network.structure import describe
from safespn.spn import SPN
from safespn.typing import AnyArray

PLAIN_FIELDS = ("family", "size", "weight", "temperature", "log_loss", "density_weight", "votes")


def committee_tensors(safe: Committee, supervised: Committee) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Tensors and plain values of two committees of the same members; networks that are the same are written once."""
    tensors: dict[str, AnyArray] = {}
    members = []
    for number, (ours, theirs) in enumerate(zip(safe.members, supervised.members, strict=True)):
        is_changed = ours.parameters is not theirs.parameters
        for name, member in {"supervised": theirs, **({"safe": ours} if is_changed else {})}.items():
            root = describe(member.structure, member.parameters)
            tensors |= {f"{name}.{number}.{part}": values for part, values in network_tensors(root).items()}
        plain = {field: getattr(ours, field) for field in PLAIN_FIELDS}
        # JSON has no NaN.
        plain["log_loss"] = None if np.isnan(ours.log_loss) else ours.log_loss
        members.append({**plain, "is_changed": is_changed})
    return tensors, {"members": members, "drawn_back": safe.drawn_back, "temperature": safe.temperature}


def committees_of(
    tensors: dict[str, AnyArray],
    plain: dict[str, Any],
    shape: tuple[int, int],
    categories: Sequence[list[Any] | None],
    path: str | os.PathLike[str],
) -> tuple[Committee, Committee]:
    """Rebuild and check the safe and the supervised committee.

    Parameters
    ----------
    shape : tuple of int
        Number of columns and of classes that every network must have.
    categories : sequence
        Categories of each column, None for a column of numbers.
    """
    safe, supervised = [], []
    for number, entry in enumerate(plain["members"]):
        theirs = _member(tensors, entry, f"supervised.{number}.", shape, path)
        supervised.append(theirs)
        safe.append(_member(tensors, entry, f"safe.{number}.", shape, path) if entry["is_changed"] else theirs)
    for member in {id(each): each for each in safe + supervised}.values():
        _check_domains(member, categories, path)
    weights = np.array([[member.weight, member.density_weight] for member in safe])
    drawn_back, temperature = float(plain["drawn_back"]), float(plain["temperature"])
    if not len(safe) or not np.allclose(weights.sum(axis=0), 1) or not (weights >= 0).all() or not 0 <= drawn_back <= 1:
        raise ModelFileError(f"{path}: the weights of the committee are not valid")
    if not 0 < temperature < np.inf:
        raise ModelFileError(f"{path}: the temperature of the committee is not valid")
    reference = Committee(tuple(supervised), temperature=temperature)
    return Committee(tuple(safe), reference if drawn_back else None, drawn_back, temperature), reference


def _check_domains(member: Member, categories: Sequence[list[Any] | None], path: str | os.PathLike[str]) -> None:
    for column, (domain, known) in enumerate(zip(member.structure.domains, categories, strict=True)):
        if known is not None and not (domain and domain.kind == "codes" and domain.n_states <= max(1, len(known))):
            raise ModelFileError(f"{path}: the categories of column {column} do not fit the networks")


def _member(
    tensors: dict[str, AnyArray], entry: dict[str, Any], prefix: str, shape: tuple[int, int], path: Any
) -> Member:
    own = {key.removeprefix(prefix): values for key, values in tensors.items() if key.startswith(prefix)}
    spn = SPN._from_tensors(own, path)
    if (spn.n_columns, spn._structure.n_root_edges) != shape:
        raise ModelFileError(f"{path}: the networks do not fit {shape[1]} classes and {shape[0]} features")
    values = {field: entry[field] for field in PLAIN_FIELDS}
    values["log_loss"] = float("nan") if values["log_loss"] is None else values["log_loss"]
    for field in ("weight", "temperature", "log_loss", "density_weight"):
        values[field] = _number(values[field], field)
    if (
        values["family"] not in FAMILIES
        or not isinstance(values["size"], str)
        or not 0 < values["temperature"] < np.inf
    ):
        raise ModelFileError(f"{path}: a member of the committee is not valid")
    if not isinstance(values["votes"], bool):
        raise ModelFileError(f"{path}: whether a member is a vote of trees is {values['votes']!r}, not true or false")
    member = Member(**values, structure=spn._structure, parameters=spn._parameters)
    if member.votes and not _has_voters(describe(member.structure, member.parameters)):
        raise ModelFileError(f"{path}: a member is to be a vote of trees, but its classes are not sums over trees")
    return member


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"the {name} of a member is {value!r}, not a number")
    return float(value)


def _has_voters(root: Node) -> bool:
    """Whether every class is a sum over equally many parts, which vote with their likes of other classes."""
    classes = root.children if isinstance(root, Sum) else ()
    return all(isinstance(each, Sum) for each in classes) and len({len(each.children) for each in classes}) == 1

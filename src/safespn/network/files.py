"""Models as files: safetensors (numbers only, loading runs no code) with a version and a checksum.

A network is written as its nodes, children first: the kind of each node, the numbers of its children, the weights of
its sums, and the columns and parameters of its leaves. Loading rebuilds the description and checks it like any other.
The checksum detects damage, not tampering: it is not a signature, so that everything in a file is checked before use.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as format_tensors

from safespn.exceptions import ModelFileError
from safespn.foundation.atomic_files import atomic_write
from safespn.network.leaves import LEAF_TYPES
from safespn.network.nodes import Leaf, Node, Product, Sum, walk
from safespn.typing import AnyArray

FORMAT = "safespn"
VERSION = 1
MOST_GAPS = 1_000_000
"""Columns that a network in a file may leave out: each costs some bytes when the network is rebuilt."""
LONGEST_HEADER = 100_000_000
"""Bytes of metadata, the most that safetensors reads."""
BYTES_AT_ONCE = 16_000_000
_SUM, _PRODUCT, _FIRST_LEAF = 0, 1, 2
_NETWORK_TENSORS = ("kind", "size", "children", "weights", "columns", "ties", "parameters")


def write_model(
    path: str | os.PathLike[str], kind: str, tensors: dict[str, AnyArray], header: dict[str, Any] | None = None
) -> None:
    """Write arrays and a header of plain values to a file, which appears whole or not at all.

    Parameters
    ----------
    kind : str
        What the file holds, such as "network".
    """
    content = {"kind": kind, "version": VERSION, **(header or {})}
    content["sha256"] = _checksum(tensors, content)
    # A single entry, because safetensors writes several in no fixed order: equal models make equal files.
    atomic_write(path, format_tensors(tensors, metadata={FORMAT: json.dumps(content)}))


def read_model(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read arrays and header of a file written by :func:`write_model`.

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, of another kind, or written by a newer version, or if it is a device.
    """
    with Path(path).open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise ModelFileError(f"{path}: neither a file nor a pipe; a model is read from one of them")
        # What is no model may have no end either.
        metadata, start = _read_metadata(path, file)
        header = _checked_header(path, metadata, kind)
        content = BytesIO()
        content.write(start)
        # One byte too many is left for safetensors to refuse.
        _copy(file, content, _length_of_tensors(path, metadata) + 1)
    try:
        tensors = parse_tensors(content.getvalue())
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path}: the file is damaged or truncated ({error})") from error
    if _checksum(tensors, {name: value for name, value in header.items() if name != "sha256"}) != header.get("sha256"):
        raise ModelFileError(f"{path}: the checksum does not match: the file was damaged or changed after it was saved")
    return tensors, header


def network_tensors(root: Node) -> dict[str, AnyArray]:
    """Write a network as arrays."""
    nodes = walk(root)
    number = {id(node): position for position, node in enumerate(nodes)}
    leaves = [node for node in nodes if isinstance(node, Leaf)]
    sizes = [node.parameters.size if isinstance(node, Leaf) else len(node.children) for node in nodes]
    return {
        "kind": np.array([_kind(node) for node in nodes], dtype=np.int64),
        "size": np.array(sizes, dtype=np.int64),
        "children": np.array([number[id(child)] for node in nodes for child in node.children], dtype=np.int64),
        "weights": np.array([w for node in nodes if isinstance(node, Sum) for w in node.weights], dtype=np.float64),
        "columns": np.array([column for leaf in leaves for column in leaf.columns], dtype=np.int64),
        "ties": np.array([-1 if leaf.tie is None else leaf.tie for leaf in leaves], dtype=np.int64),
        "parameters": np.concatenate([leaf.parameters for leaf in leaves]),
    }


def network_of(tensors: dict[str, AnyArray], path: str | os.PathLike[str]) -> Node:
    """Rebuild the root of a network from its arrays; ``path`` is named in errors."""
    if set(tensors) != set(_NETWORK_TENSORS) or any(values.ndim != 1 for values in tensors.values()):
        raise ModelFileError(f"{path}: the file does not hold the arrays of a network")
    try:
        return _build(tensors)
    except (ValueError, IndexError, OverflowError, StopIteration, RuntimeError, TypeError, MemoryError) as error:
        raise ModelFileError(f"{path}: the file does not describe a network ({error})") from error


def _kind(node: Node) -> int:
    if isinstance(node, Leaf):
        return _FIRST_LEAF + LEAF_TYPES.index(type(node))
    return _SUM if isinstance(node, Sum) else _PRODUCT


def _read_metadata(path: str | os.PathLike[str], file: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """Read the metadata in front of the tensors, and nothing else; also return their bytes."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    text = file.read(length) if 0 < length <= LONGEST_HEADER else b""
    try:
        return dict(json.loads(text)), start + text
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a model saved by safespn, or a damaged one") from error


def _length_of_tensors(path: str | os.PathLike[str], metadata: dict[str, Any]) -> int:
    """How many bytes should follow the metadata."""
    try:
        ends = [int(entry["data_offsets"][1]) for name, entry in metadata.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{path}: the file is damaged or truncated ({error!r})") from error
    return max(ends, default=0)


def _copy(source: IO[bytes], target: IO[bytes], length: int) -> None:
    """Copy so many bytes, or all if there are fewer: what metadata claim costs no memory before it is there."""
    while length > 0 and (part := source.read(min(length, BYTES_AT_ONCE))):
        target.write(part)
        length -= len(part)


def _checked_header(path: str | os.PathLike[str], metadata: dict[str, Any], kind: str) -> dict[str, Any]:
    """Check what safespn wrote into the metadata."""
    try:
        header = dict(json.loads(metadata["__metadata__"][FORMAT]))
        version = int(header["version"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a model saved by safespn, or a damaged one") from error
    if version != VERSION:
        raise ModelFileError(f"{path}: format version {version}; this safespn reads version {VERSION}: upgrade safespn")
    if header.get("kind") != kind:
        raise ModelFileError(f"{path}: the file holds a {header.get('kind')}, not a {kind}")
    return header


def _checksum(tensors: dict[str, AnyArray], header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {values.dtype.str} {values.shape} ".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _build(tensors: dict[str, AnyArray]) -> Node:
    """Rebuild the description; every node may refer to earlier nodes only, so there is no cycle."""
    children, weights = iter(tensors["children"].tolist()), iter(tensors["weights"].tolist())
    columns, ties = iter(tensors["columns"].tolist()), iter(tensors["ties"].tolist())
    parameters, start = tensors["parameters"], 0
    _check_columns(tensors["columns"])
    nodes: list[Node] = []
    for kind, size in zip(tensors["kind"].tolist(), tensors["size"].tolist(), strict=True):
        if kind >= _FIRST_LEAF:
            family, tie = LEAF_TYPES[kind - _FIRST_LEAF].family, next(ties)
            values = parameters[start : start + size]
            if len(values) != size:
                raise ValueError(f"node {len(nodes)} has {size} parameters, of which {len(values)} are in the file")
            where = [next(columns) for _ in family.domains(values)]
            nodes.append(family.node(where, values, None if tie < 0 else tie))
            start += size
            continue
        below = []
        for _ in range(size):
            number = next(children)
            if not 0 <= number < len(nodes):
                raise ValueError(f"node {len(nodes)} has child {number}, which does not come before it")
            below.append(nodes[number])
        if kind not in (_SUM, _PRODUCT):
            raise ValueError(f"node {len(nodes)} is of an unknown kind, {kind}")
        nodes.append(Sum(below, [next(weights) for _ in below]) if kind == _SUM else Product(below))
    if not nodes:
        raise ValueError("it has no nodes")
    if start != len(parameters) or any(next(rest, None) is not None for rest in (children, weights, columns, ties)):
        raise ValueError("its arrays hold more than its nodes need")
    return nodes[-1]


def _check_columns(columns: AnyArray) -> None:
    """Check column numbers before anything is made for each column up to the largest."""
    largest = int(columns.max(initial=0))
    if largest >= len(columns) + MOST_GAPS:
        raise ValueError(f"it models {len(columns)} columns, one of them with the number {largest}")

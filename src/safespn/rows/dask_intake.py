"""From Dask collections to rows in partitions: what each partition holds is looked at once, then encoded lazily."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed

from safespn.labels import encode_labels, is_unlabelled
from safespn.rows.dask_rows import DaskRows, compute
from safespn.rows.parts import Part
from safespn.rows.unread import Unread, graphs_apart
from safespn.table_encoder import TableEncoder, is_frame
from safespn.typing import AnyArray, FloatArray

SHARE_OF_MEMORY = 0.5
"""Rows stay in the workers' memory between passes if they fill at most this share of it."""


@dataclass(frozen=True, eq=False)
class BlockSummary:
    """What one partition holds.

    Parameters
    ----------
    n_rows, n_labels : int
    counts, weights : dict
        Rows, and their weight, of each label; under None those without one. Rows of weight zero are left out.
    categories : tuple
        For each column its categories, or None for a column of numbers; an empty list if all its cells are missing.
    """

    n_rows: int
    n_labels: int
    counts: dict[Any, int]
    weights: dict[Any, float]
    categories: tuple[list[Any] | None, ...]


@dataclass(frozen=True, eq=False)
class Intake:
    """Rows of Dask collections, and how they were encoded."""

    rows: DaskRows
    encoder: TableEncoder
    classes: AnyArray


def take_in(X: Any, y: Any, sample_weight: Any, unlabeled: Any, persist: str) -> Intake:
    """Look at all partitions of a table, its labels and weights, and promise their rows as parts.

    Parameters
    ----------
    X : Dask array or data frame
    y, sample_weight : Dask array, series, or array-like of the same length; the latter may be None
    unlabeled : object
        What marks an unlabelled row.
    persist : {"auto", "rows", "labels", "nothing"}
        What stays in the memory of the workers between passes.
    """
    # When Dask optimises a single column of a file, it may join partitions: then none is optimised.
    frames = [each for each in (X, y, sample_weight) if _has_partitions(each)]
    optimise = all(len(each.to_delayed()) == each.npartitions for each in frames)
    tables = blocks_of_table(X, optimise)
    labels = _blocks(y, X, tables, "y", optimise)
    weights: list[Any] = [None] * len(tables)
    if sample_weight is not None:
        weights = _blocks(sample_weight, X, tables, "sample_weight", optimise)
    blocks = [[each for each in block if each is not None] for block in zip(tables, labels, weights, strict=True)]
    summaries: list[BlockSummary] = compute(
        [
            (f"block {number}", delayed(_summarise)(unlabeled, f"block {number}", *block))
            for number, block in enumerate(blocks)
        ]
    )
    for number, summary in enumerate(summaries):
        if summary.n_rows != summary.n_labels:
            raise ValueError(f"block {number} has {summary.n_rows} rows but {summary.n_labels} labels in y")
    if not sum(summary.n_rows for summary in summaries):
        raise ValueError(f"X has no rows in any of its {len(summaries)} blocks")
    classes = _classes(summaries, unlabeled)
    encoder = TableEncoder(_union([summary.categories for summary in summaries], _names(X)))
    used = [number for number, summary in enumerate(summaries) if sum(summary.counts.values())]
    names = [f"block {number}" for number in used]
    order = [*classes.tolist(), None]
    counts = np.array([[summaries[number].counts.get(label, 0) for label in order] for number in used])
    totals = np.array([[summaries[number].weights.get(label, 0.0) for label in order] for number in used])
    n_bytes = 8 * int(counts.sum()) * len(encoder.categories)
    in_memory = persist == "rows" or (persist == "auto" and n_bytes <= SHARE_OF_MEMORY * _memory())
    parts = _parts([blocks[number] for number in used], names, _Recipe(encoder, classes, unlabeled), in_memory)
    return Intake(DaskRows(parts, counts, totals, names, persist != "nothing"), encoder, classes)


def _parts(blocks: list[list[Any]], names: list[str], recipe: _Recipe, in_memory: bool) -> list[Delayed]:
    """Promise the parts: held by Dask, or made again in every pass."""
    graphs = None if in_memory else graphs_apart(blocks)
    if graphs is not None:
        keys = [[promise.key for promise in block] for block in blocks]
        each = enumerate(zip(graphs, keys, names, strict=True))
        unread = [Unread(graph, of_block, partial(_make_part, recipe, n, name)) for n, (graph, of_block, name) in each]
        return list(dask.persist(*[delayed(part, traverse=False) for part in unread]))
    shared = delayed(recipe, traverse=False)
    parts = [
        delayed(_make_part)(shared, position, name, *block)
        for position, (name, block) in enumerate(zip(names, blocks, strict=True))
    ]
    return list(dask.persist(*parts)) if in_memory else parts


@dataclass(frozen=True, eq=False)
class _Recipe:
    encoder: TableEncoder
    classes: AnyArray
    unlabeled: Any


def _has_partitions(collection: Any) -> bool:
    """Whether it is a Dask data frame or series."""
    return hasattr(collection, "npartitions") and not hasattr(collection, "chunks")


def blocks_of_table(X: Any, optimise: bool = True) -> list[Any]:
    """Promise each partition of a table, with all its columns."""
    if _has_partitions(X):
        return list(X.to_delayed(optimize_graph=optimise))
    if X.ndim != 2:
        raise ValueError(f"expected a table with rows and columns, got a Dask array of {X.ndim} dimensions")
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def _blocks(values: Any, X: Any, tables: list[Any], name: str, optimise: bool) -> list[Any]:
    """Promise the partition of labels or weights that belongs to each partition of the table."""
    if dask.is_dask_collection(values):
        lengths = [*getattr(X, "chunks", [[np.nan]])[0], *getattr(values, "chunks", [[np.nan]])[0]]
        if not np.isnan(lengths).any() and len(values) == len(X):
            values = values.rechunk({0: X.chunks[0]})
        blocks = list(np.ravel(values.to_delayed(optimize_graph=optimise)))
        if len(blocks) != len(tables):
            raise ValueError(
                f"X has {len(tables)} blocks but {name} has {len(blocks)}; give both the same partitions or chunks"
            )
        return blocks
    whole = np.asarray(values)
    lengths = compute([(f"block {number}", delayed(len)(table)) for number, table in enumerate(tables)])
    if sum(lengths) != len(whole):
        raise ValueError(f"X has {sum(lengths)} rows but {name} has {len(whole)} entries")
    # Held by Dask, so that they do not travel with every pass.
    return list(dask.persist(*[delayed(block) for block in np.split(whole, np.cumsum(lengths)[:-1])]))


def _summarise(unlabeled: Any, name: str, table: Any, labels: Any, weights: Any = None) -> BlockSummary:
    labels = np.asarray(labels)
    each = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (each >= 0).all() or np.isinf(each).any():
        row = int(np.argmax(~(each >= 0) | np.isinf(each)))
        raise ValueError(f"{name}, row {row}: weight {each[row]:g}; expected a finite number of at least zero")
    free = is_unlabelled(labels, unlabeled)
    used = each > 0
    known = ~free & used
    values, place = np.unique(np.array(labels[known].tolist()), return_inverse=True)
    counts: dict[Any, int] = dict(zip(values.tolist(), np.bincount(place).tolist(), strict=True))
    totals: dict[Any, float] = dict(zip(values.tolist(), np.bincount(place, each[known]).tolist(), strict=True))
    counts[None], totals[None] = int((free & used).sum()), float(each[free & used].sum())
    try:
        categories = TableEncoder.fit(table).categories
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if is_frame(table):
        empty = [table.iloc[:, column].isna().all() for column in range(table.shape[1])]
        categories = tuple([] if gone else known for gone, known in zip(empty, categories, strict=True))
    return BlockSummary(len(table), len(labels), counts, totals, categories)


def _classes(summaries: Sequence[BlockSummary], unlabeled: Any) -> AnyArray:
    """All classes of all blocks, sorted, without the marker."""
    present = {label: None for summary in summaries for label in summary.counts if label is not None}
    labels = np.empty(len(present), dtype=object)
    labels[:] = list(present)
    if len(labels) == 0:
        n_rows = sum(summary.n_rows for summary in summaries)
        raise ValueError(f"y has no labelled row: all {n_rows} entries are the marker {unlabeled!r}")
    return encode_labels(labels, None)[0]


def _union(of_blocks: Sequence[tuple[list[Any] | None, ...]], names: Sequence[Any]) -> tuple[list[Any] | None, ...]:
    """All categories of each column; a column of numbers in one block must be one in all blocks."""
    result: list[list[Any] | None] = []
    for column, name in enumerate(names):
        known = {number: block[column] for number, block in enumerate(of_blocks) if block[column] != []}
        numbers = [number for number, categories in known.items() if categories is None]
        if not known or len(numbers) == len(known):
            result.append(None)
        elif numbers:
            other = next(number for number, categories in known.items() if categories is not None)
            raise ValueError(
                f"column {name!r} holds numbers in block {numbers[0]} and categories in block {other}; "
                "make it the same type everywhere"
            )
        else:
            values = {value: None for categories in known.values() for value in categories or ()}
            kinds = sorted({type(value).__name__ for value in values})
            if len(kinds) > 1:
                raise ValueError(f"column {name!r} mixes types between blocks ({', '.join(kinds)})")
            result.append(sorted(values))
    return tuple(result)


def _names(X: Any) -> Sequence[Any]:
    return list(X.columns) if hasattr(X, "columns") else range(X.shape[1])


def _make_part(recipe: _Recipe, position: int, name: str, table: Any, labels: Any, weights: Any = None) -> Part:
    """Encode one partition; rows of weight zero act as if they were not there."""
    try:
        cells = np.ascontiguousarray(recipe.encoder.encode(table), dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    infinite = np.isinf(cells)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ValueError(
            f"{name}, row {row}, column {column} is infinite; expected finite numbers, or NaN where missing"
        )
    labels = np.asarray(labels)
    free = is_unlabelled(labels, recipe.unlabeled)
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[~free] = np.searchsorted(recipe.classes, labels[~free].astype(recipe.classes.dtype))
    each: FloatArray | None = None if weights is None else np.asarray(weights, dtype=np.float64)
    part = Part(cells, codes, each, position)
    return part if each is None else part.take(each > 0)


def _memory() -> float:
    """Memory of all workers of the present cluster, or what is free here, in bytes."""
    try:
        from distributed import default_client

        workers = default_client().scheduler_info(n_workers=-1)["workers"].values()
        return float(sum(map(operator.itemgetter("memory_limit"), workers)))
    except (ImportError, ValueError):
        import psutil

        return float(psutil.virtual_memory().available)

"""From Dask collections to rows in partitions: what each partition holds is looked at once, then encoded lazily."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from sklearn.utils import check_array

from safespn.foundation.class_weights import ClassWeight, class_factors, times_factors
from safespn.foundation.column_types import (
    ColumnSummary,
    declared_types,
    merge_summaries,
    names_of,
    summarise_columns,
)
from safespn.foundation.labels import as_labels, check_several_classes, encode_labels, is_unlabelled
from safespn.foundation.lazy_frames import is_frame
from safespn.foundation.other_frames import as_table
from safespn.foundation.table_encoder import TableEncoder
from safespn.network.columns import check_magnitudes, check_ranges, column_names, column_ranges
from safespn.rows.blocks import RowBlock, Validation
from safespn.rows.dask_rows import DaskRows, compute, places_in_blocks
from safespn.rows.lazy_block import CollectionBlock, LazyBlock, graphs_apart, read
from safespn.rows.scratch import Scratch, StoredBlock
from safespn.rows.scratch_rows import ScratchRows
from safespn.typing import AnyArray, FloatArray, IntArray

SHARE_OF_MEMORY = 0.5
"""Rows stay in the workers' memory between passes if they fill at most this share of it."""


@dataclass(frozen=True, eq=False)
class PartitionSummary:
    """What one partition holds.

    Parameters
    ----------
    n_rows, n_labels : int
    counts, weights : dict
        Rows, and their weight, of each label; under None those without one. Rows of weight zero are left out.
    columns : tuple of ColumnSummary
        What each column holds in these rows.
    lowest, highest : array of shape (n_columns,)
        Ends of the range of each column of numbers.
    """

    n_rows: int
    n_labels: int
    counts: dict[Any, int]
    weights: dict[Any, float]
    columns: tuple[ColumnSummary, ...]
    lowest: FloatArray
    highest: FloatArray


@dataclass(frozen=True, eq=False)
class DaskInput:
    """Rows of Dask collections, how they were encoded, and labelled rows that were set aside, if any."""

    rows: DaskRows
    encoder: TableEncoder
    classes: AnyArray
    validation: Validation | None = None


DrawValidation = Callable[[IntArray], list[IntArray]]
"""From the number of labelled rows of each class to numbers, among the rows of each, of those to set aside."""


def read_collections(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    unlabeled: Any,
    persist: str,
    column_types: Mapping[Any, str] | None = None,
    class_weight: ClassWeight = None,
    scratch: Path | None = None,
    draw_validation: DrawValidation | None = None,
) -> DaskInput:
    """Look at all partitions of a table, its labels and weights, and promise their rows as blocks.

    Parameters
    ----------
    X : Dask array or data frame
    y, sample_weight : Dask array, series, or array-like of the same length; the latter may be None
    unlabeled : object
        What marks an unlabelled row.
    persist : {"auto", "rows", "labels", "nothing"}
        What stays in the memory of the workers between passes.
    column_types : mapping, optional
        Types that the caller declares, by name or number of the column.
    class_weight : None, "balanced" or mapping
        Factors of the weights of labelled rows.
    scratch : Path, optional
        Folder for encoded rows and what is kept with them: then workers hold nothing between passes.
    draw_validation : callable, optional
        Draws labelled rows to set aside.
    """
    # When Dask optimises a single column of a file, it may join partitions: then none is optimised.
    frames = [each for each in (X, y, sample_weight) if _has_partitions(each)]
    optimise = all(len(each.to_delayed()) == each.npartitions for each in frames)
    tables = partitions_of_table(X, optimise)
    declared = declared_types(column_types, names_of(X))
    labels = _partitions(y, X, tables, "y", optimise)
    weights: list[Any] = [None] * len(tables)
    if sample_weight is not None:
        weights = _partitions(sample_weight, X, tables, "sample_weight", optimise)
    partitions = [
        [each for each in partition if each is not None] for partition in zip(tables, labels, weights, strict=True)
    ]
    summaries: list[PartitionSummary] = compute(
        [
            (f"block {number}", delayed(_summarise)(unlabeled, declared, f"block {number}", *partition))
            for number, partition in enumerate(partitions)
        ]
    )
    for number, summary in enumerate(summaries):
        if summary.n_rows != summary.n_labels:
            raise ValueError(f"block {number} has {summary.n_rows} rows but {summary.n_labels} labels in y")
    if not sum(summary.n_rows for summary in summaries):
        raise ValueError(f"X has no rows in any of its {len(summaries)} blocks")
    classes = _classes(summaries, unlabeled)
    encoder = TableEncoder.decide(
        names_of(X), _merged([summary.columns for summary in summaries], names_of(X)), declared
    )
    _check_ranges(summaries, encoder, column_names(X, len(encoder.types)))
    used = [number for number, summary in enumerate(summaries) if sum(summary.counts.values())]
    names = [f"block {number}" for number in used]
    order = [*classes.tolist(), None]
    counts = np.array([[summaries[number].counts.get(label, 0) for label in order] for number in used])
    totals = np.array([[summaries[number].weights.get(label, 0.0) for label in order] for number in used])
    factors = class_factors(class_weight, classes, counts[:, :-1].sum(axis=0))
    totals[:, :-1] *= 1.0 if factors is None else factors
    recipe = _Recipe(encoder, classes, unlabeled, factors, counts)
    used_partitions = [partitions[number] for number in used]
    validation = None
    if draw_validation is not None:
        whole = DaskRows(_blocks(used_partitions, names, recipe, in_memory=False), counts, totals, names, True)
        places = [*draw_validation(counts.sum(axis=0)[:-1]), np.arange(0)]
        set_aside, held = places_in_blocks(places, counts), whole.fetch(places)
        recipe, validation = replace(recipe, set_aside=set_aside), (held.table, held.codes)
        counts, totals = _without(counts, totals, set_aside, held)
    if scratch is not None:
        rows: DaskRows = _stored_rows(scratch, used_partitions, names, recipe, counts, totals)
    else:
        n_bytes = 8 * int(counts.sum()) * len(encoder.categories)
        in_memory = persist == "rows" or (persist == "auto" and n_bytes <= SHARE_OF_MEMORY * _memory())
        blocks = _blocks(used_partitions, names, recipe, in_memory)
        rows = DaskRows(blocks, counts, totals, names, persist != "nothing")
    return DaskInput(rows, encoder, classes, validation)


def _without(
    counts: IntArray, totals: FloatArray, set_aside: list[list[IntArray]], held: RowBlock
) -> tuple[IntArray, FloatArray]:
    """Count what is left in each block when some rows, which are at hand, are set aside."""
    gone = np.array([[len(of_class) for of_class in of_block] for of_block in set_aside])
    block = np.repeat(np.arange(len(gone)), gone.sum(axis=1))
    weights = np.zeros_like(totals)
    np.add.at(weights, (block, held.codes), np.ones(len(block)) if held.weights is None else held.weights)
    if (counts.sum(axis=1) == gone.sum(axis=1)).any():
        number = int(np.argmin(counts.sum(axis=1) - gone.sum(axis=1)))
        raise ValueError(
            f"validation_fraction takes all {counts[number].sum()} rows of a block away; use larger partitions"
        )
    return counts - gone, totals - weights


def _stored_rows(
    folder: Path, partitions: list[list[Any]], names: list[str], recipe: _Recipe, counts: IntArray, totals: FloatArray
) -> ScratchRows:
    """Encode all rows into files of a scratch folder."""
    scratch = Scratch(folder)
    try:
        # Cells, classes and weights; for one network, densities of the supervised model and three sets of soft labels.
        n_values = len(recipe.encoder.categories) + 2 + 4 * len(recipe.classes)
        scratch.check_space(8 * int(counts.sum()) * n_values)
        target = scratch.folder()
        blocks = _blocks(partitions, names, recipe, in_memory=False)
        promises = [delayed(_store_block)(target, recipe.encoder.n_states, block) for block in blocks]
        stored: list[StoredBlock] = compute(list(zip(names, promises, strict=True)))
    except OSError as error:
        scratch.remove()
        raise scratch.explained(error) from error
    except BaseException:
        scratch.remove()
        raise
    # What workers send back names the folder, and does not own it.
    stored = [replace(each, folder=target) for each in stored]
    return ScratchRows(scratch, stored, counts, totals, names)


def _store_block(folder: Any, n_states: Sequence[int], block: RowBlock | LazyBlock) -> StoredBlock:
    return StoredBlock.write(folder, read(block), n_states)


def _blocks(partitions: list[list[Any]], names: list[str], recipe: _Recipe, in_memory: bool) -> list[Delayed]:
    """Promise the blocks: held by Dask, or made again in every pass."""
    graphs = None if in_memory else graphs_apart(partitions)
    if graphs is not None:
        keys = [[promise.key for promise in partition] for partition in partitions]
        each = enumerate(zip(graphs, keys, names, strict=True))
        lazy = [
            CollectionBlock(graph, of_block, partial(_make_block, recipe, n, name), n)
            for n, (graph, of_block, name) in each
        ]
        return list(dask.persist(*[delayed(block, traverse=False) for block in lazy]))
    shared = delayed(recipe, traverse=False)
    blocks = [
        delayed(_make_block)(shared, position, name, *partition)
        for position, (name, partition) in enumerate(zip(names, partitions, strict=True))
    ]
    return list(dask.persist(*blocks)) if in_memory else blocks


@dataclass(frozen=True, eq=False)
class _Recipe:
    encoder: TableEncoder
    classes: AnyArray
    unlabeled: Any
    factors: FloatArray | None
    counts: IntArray
    set_aside: list[list[IntArray]] | None = None


def _has_partitions(collection: Any) -> bool:
    """Whether it is a Dask data frame or series."""
    return hasattr(collection, "npartitions") and not hasattr(collection, "chunks")


def partitions_of_table(X: Any, optimise: bool = True) -> list[Any]:
    """Promise each partition of a table, with all its columns."""
    if _has_partitions(X):
        return list(X.to_delayed(optimize_graph=optimise))
    if X.ndim != 2:
        raise ValueError(f"expected a table with rows and columns, got a Dask array of {X.ndim} dimensions")
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def _partitions(values: Any, X: Any, tables: list[Any], name: str, optimise: bool) -> list[Any]:
    """Promise the partition of labels or weights that belongs to each partition of the table."""
    if dask.is_dask_collection(values):
        lengths = [*getattr(X, "chunks", [[np.nan]])[0], *getattr(values, "chunks", [[np.nan]])[0]]
        if not np.isnan(lengths).any() and len(values) == len(X):
            values = values.rechunk({0: X.chunks[0]})
        partitions = list(np.ravel(values.to_delayed(optimize_graph=optimise)))
        if len(partitions) != len(tables):
            raise ValueError(
                f"X has {len(tables)} blocks but {name} has {len(partitions)}; give both the same partitions or chunks"
            )
        return partitions
    whole = as_labels(values) if name == "y" else np.asarray(values)
    lengths = compute([(f"block {number}", delayed(len)(table)) for number, table in enumerate(tables)])
    if sum(lengths) != len(whole):
        raise ValueError(f"X has {sum(lengths)} rows but {name} has {len(whole)} entries")
    # Held by Dask, so that they do not travel with every pass.
    return list(dask.persist(*[delayed(partition) for partition in np.split(whole, np.cumsum(lengths)[:-1])]))


def _summarise(
    unlabeled: Any, declared: Sequence[str | None], name: str, table: Any, labels: Any, weights: Any = None
) -> PartitionSummary:
    labels = as_labels(labels)
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
        table = _checked(table)
        of_used = table if len(used) != len(table) or used.all() else table[used]
        columns = summarise_columns(of_used, declared)
        ranges = column_ranges(_numbers(of_used, columns))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return PartitionSummary(len(table), len(labels), counts, totals, columns, *ranges)


def _checked(table: Any) -> Any:
    """Return a partition as the fit in memory takes a table: a frame, or real numbers with NaN in masked cells."""
    table = as_table(table)
    if is_frame(table):
        return table
    return check_array(table, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)


def _numbers(table: Any, columns: Sequence[ColumnSummary]) -> FloatArray:
    """Return the columns of a partition that hold numbers only, and NaN for all others."""
    if not is_frame(table):
        return np.asarray(table)
    places = [place for place, column in enumerate(columns) if column.holds != "nothing" and column.is_of_numbers]
    cells = np.full(table.shape, np.nan)
    cells[:, places] = table.iloc[:, places].to_numpy(dtype=np.float64, na_value=np.nan)
    return cells


def _check_ranges(summaries: Sequence[PartitionSummary], encoder: TableEncoder, names: Sequence[str]) -> None:
    """Refuse columns of numbers whose values in all partitions are too close together."""
    lowest = np.min([summary.lowest for summary in summaries], axis=0)
    highest = np.max([summary.highest for summary in summaries], axis=0)
    is_coded = [categories is not None for categories in encoder.categories]
    check_ranges(np.where(is_coded, np.inf, lowest), np.where(is_coded, -np.inf, highest), names)


def _classes(summaries: Sequence[PartitionSummary], unlabeled: Any) -> AnyArray:
    """All classes of all partitions, sorted, without the marker."""
    present = {label: None for summary in summaries for label in summary.counts if label is not None}
    labels = np.empty(len(present), dtype=object)
    labels[:] = list(present)
    if len(labels) == 0:
        n_rows = sum(summary.n_rows for summary in summaries)
        raise ValueError(f"y has no labelled row: all {n_rows} entries are the marker {unlabeled!r}")
    check_several_classes(list(present), unlabeled, sum(summary.counts[None] for summary in summaries))
    return encode_labels(labels, None)[0]


def _merged(of_partitions: Sequence[tuple[ColumnSummary, ...]], names: Sequence[Any]) -> list[ColumnSummary]:
    """What each column holds in all partitions."""
    result = []
    for name, of_column in zip(names, zip(*of_partitions, strict=True), strict=True):
        try:
            result.append(merge_summaries(of_column))
        except ValueError as error:
            raise ValueError(f"column {name!r} {error}") from error
    return result


def _make_block(recipe: _Recipe, position: int, name: str, table: Any, labels: Any, weights: Any = None) -> RowBlock:
    """Encode one partition; rows of weight zero act as if they were not there."""
    try:
        table = _checked(table)
        cells = np.ascontiguousarray(recipe.encoder.encode(table), dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    try:
        check_magnitudes(cells, column_names(table, cells.shape[1]))
    except ValueError as error:
        raise ValueError(f"{name}, {error}") from error
    labels = as_labels(labels)
    free = is_unlabelled(labels, recipe.unlabeled)
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[~free] = np.searchsorted(recipe.classes, labels[~free].astype(recipe.classes.dtype))
    each: FloatArray | None = None if weights is None else np.asarray(weights, dtype=np.float64)
    each = times_factors(each, codes, recipe.factors)
    block = RowBlock(cells, codes, each, position)
    block = block if each is None else block.take(each > 0)
    expected = recipe.counts[position]
    found = np.bincount(np.where(block.is_unlabelled, len(expected) - 1, block.codes), minlength=len(expected))
    if not np.array_equal(found, expected):
        raise ValueError(
            f"{name} has {found[:-1].sum()} labelled and {found[-1]} unlabelled rows, but {expected[:-1].sum()} and "
            f"{expected[-1]} when it was first read: the table changed during the fit; fit again when it is complete"
        )
    if recipe.set_aside is not None:
        gone = block.rows_at(recipe.set_aside[position])
        block = block.take(np.setdiff1d(np.arange(len(block.codes)), gone))
    return block


def _memory() -> float:
    """Memory of all workers of the present cluster, or what is free here, in bytes."""
    try:
        from distributed import default_client

        workers = default_client().scheduler_info(n_workers=-1)["workers"].values()
        return float(sum(map(operator.itemgetter("memory_limit"), workers)))
    except (ImportError, ValueError):
        import psutil

        return float(psutil.virtual_memory().available)

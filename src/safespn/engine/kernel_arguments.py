"""The arrays that the compiled kernels read and write, by name."""

from __future__ import annotations

from typing import NamedTuple

from safespn.typing import BoolArray, FloatArray, IntArray


class Wiring(NamedTuple):
    """The arrays of :class:`safespn.network.structure.Structure` and :class:`safespn.engine.schedule.Schedule`."""

    edge_start: IntArray
    edge_unit: IntArray
    child_start: IntArray
    child: IntArray
    """Row of working memory of each child of a unit, not the child's number."""
    sum_row: IntArray
    renormalise: BoolArray
    sum_order: IntArray
    unit_order: IntArray
    unit_start: IntArray
    unit_row: IntArray
    square_start: IntArray
    square_feature: IntArray
    """Feature of each entry of ``Structure.square.slot``; the numbers of square terms are in that order, too."""
    linear_start: IntArray
    linear_slot: IntArray
    linear_feature: IntArray
    table_start: IntArray
    table_slot: IntArray
    table_feature: IntArray
    table_offset: IntArray
    block_start: IntArray
    block_slot: IntArray
    block_feature: IntArray


class Numbers(NamedTuple):
    """The float arrays of a bound network, as in :class:`safespn.engine.bound.BoundNetwork`."""

    log_weights: FloatArray
    unit_constant: FloatArray
    square_centre: FloatArray
    square_scale: FloatArray
    square_missing: FloatArray
    linear_slope: FloatArray
    linear_missing: FloatArray
    table_values: FloatArray


class Totals(NamedTuple):
    """The arrays of :class:`safespn.engine.statistics.Statistics`, added to in place.

    Those for edges, units and squares keep each sum in ``LANES`` parts, next to each other.
    """

    objective: FloatArray
    edge_flow: FloatArray
    unit_flow: FloatArray
    """Flow that arrives at units with square terms, in blocks of rows without missing cells."""
    square_flow: FloatArray
    """Flow of the rows whose cell is observed, for each entry of ``Wiring.square_feature``, in all other blocks."""
    square: FloatArray
    """Flow times the distance from cell to centre, and times its square, for each such entry."""
    linear: FloatArray
    table: FloatArray
    block_flow: FloatArray
    """Flow of each row through each block slot, shape (n_slots, n_rows)."""


class UpdateArguments(NamedTuple):
    """Fields of :class:`safespn.engine.evidence.SoftLabelUpdate`; soft labels change in place. Empty if not used."""

    reference: FloatArray
    soft_labels: FloatArray
    is_free: BoolArray
    pessimism: float
    temperature: float
    rate: float

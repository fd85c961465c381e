"""A structure and its parameters, bound together into the arrays that a pass over rows reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from safespn.engine.threads import single_threaded_blas
from safespn.network.leaves.family import Block, Linear, Square, UnivariateFamily
from safespn.network.structure import LeafGroup, Parameters, Structure
from safespn.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Features:
    """What the terms of a network read of some rows: their features, in the numbering of the structure.

    Parameters
    ----------
    cells : array of shape (n_rows, n_cells)
        The table's columns and those derived from them, row by row.
    blocks : array of shape (n_block_slots, n_rows)
        Values of the leaves that families compute themselves, leaf by leaf.
    """

    cells: FloatArray
    blocks: FloatArray

    def __len__(self) -> int:
        return len(self.cells)

    def columns(self) -> FloatArray:
        """Return all of them, shape (n_features, n_rows)."""
        return np.concatenate([self.cells.T, self.blocks])


@dataclass(frozen=True, eq=False)
class BoundNetwork:
    """What a pass needs: the wiring, the log weights, and the numbers in every leaf slot.

    A leaf's log normaliser is part of ``unit_constant``; ``*_missing`` is what a slot adds when its cell is missing:
    the negative of that normaliser for a marginal, so that the leaf's value is one.
    """

    structure: Structure
    log_weights: FloatArray
    unit_constant: FloatArray
    square_centre: FloatArray
    square_scale: FloatArray
    square_missing: FloatArray
    linear_slope: FloatArray
    linear_missing: FloatArray
    table_values: FloatArray
    blocks: tuple[tuple[LeafGroup, Block], ...]
    complete_by_mode: bool

    def features(self, cells: FloatArray, *, compiled: bool = False) -> Features:
        """Compute what the terms read of some rows besides their cells: derived features and values of blocks.

        Parameters
        ----------
        compiled : bool
            Whether compiled code may be used.
        """
        derived = [derive(cells[:, column])[:, None] for column, derive in self.structure.derived_features]
        blocks = [self._log_density(group, block, cells, compiled) for group, block in self.blocks]
        return Features(
            np.concatenate([cells, *derived], axis=1) if derived else cells,
            concatenate(blocks) if blocks else np.empty((0, len(cells))),
        )

    def _log_density(self, group: LeafGroup, block: Block, cells: FloatArray, compiled: bool) -> FloatArray:
        """Log density of each row under each leaf of a block, shape (n_leaves, n_rows)."""
        if compiled and block.gaussians is not None:
            from safespn.engine import gaussian_kernel

            values = gaussian_kernel.log_density(block.gaussians, group.leaves.columns, cells)
            if values is not None:
                return values
        with single_threaded_blas():
            return block.log_density(_cells_of_leaves(cells, group), self.complete_by_mode)

    def block_statistics(
        self, features: Features, flow: FloatArray, *, compiled: bool = False
    ) -> tuple[FloatArray, ...]:
        """Statistics of the blocks' leaves for some rows; ``flow`` has shape (n_block_slots, n_rows)."""
        return tuple(
            _statistics(group, block, features.cells, flow[group.slots[0]], compiled) for group, block in self.blocks
        )


def concatenate(arrays: Sequence[FloatArray]) -> FloatArray:
    """Join arrays along their first axis; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _statistics(group: LeafGroup, block: Block, cells: FloatArray, flow: FloatArray, compiled: bool) -> FloatArray:
    if compiled and block.gaussians is not None:
        from safespn.engine import gaussian_kernel

        values = gaussian_kernel.statistics(block.gaussians, group.leaves.columns, cells, flow)
        if values is not None:
            return values
    with single_threaded_blas():
        return block.statistics(_cells_of_leaves(cells, group), flow)


def _cells_of_leaves(cells: FloatArray, group: LeafGroup) -> FloatArray:
    """Pick each leaf's columns, shape (n_leaves, n_rows, n_columns); leaves with the same columns share one copy."""
    columns = group.leaves.columns
    if (columns == columns[0]).all():
        return np.broadcast_to(cells[:, columns[0]], (len(columns), len(cells), columns.shape[1]))
    return np.ascontiguousarray(cells[:, columns].transpose(1, 0, 2))


def bind(structure: Structure, parameters: Parameters, *, complete_by_mode: bool = False) -> BoundNetwork:
    """Bind parameters to their structure.

    Parameters
    ----------
    complete_by_mode : bool
        Let a missing cell take its leaf's most probable value (for max-product queries) instead of being marginalised.
    """
    _check_shapes(structure, parameters)
    n_square, n_linear = structure.square.n_slots, structure.linear.n_slots
    square_centre, square_scale, square_constant, square_missing = np.zeros((4, n_square))
    linear_slope, linear_constant, linear_missing = np.zeros((3, n_linear))
    table_values = np.zeros(structure.table_offset[-1])
    blocks: list[tuple[LeafGroup, Block]] = []
    for group, values in zip(structure.groups, parameters.leaves, strict=True):
        modes = None
        if complete_by_mode and isinstance(group.family, UnivariateFamily):
            modes = group.family.mode(values)
        for term, slots in zip(group.family.terms(values), group.slots, strict=True):
            if isinstance(term, Block):
                blocks.append((group, term))
                continue
            derive = group.family.features[term.feature]
            completion = modes if modes is None or derive is None else derive(modes)
            if isinstance(term, Square):
                square_centre[slots], square_scale[slots] = term.centre, term.scale
                square_constant[slots] = term.constant
                square_missing[slots] = (
                    -term.constant if completion is None else -0.5 * ((completion - term.centre) * term.scale) ** 2
                )
            elif isinstance(term, Linear):
                linear_slope[slots], linear_constant[slots] = term.slope, term.constant
                linear_missing[slots] = -term.constant if completion is None else term.slope * completion
            else:
                missing = np.zeros(len(values)) if completion is None else term.values.max(axis=1)
                start, stop = structure.table_offset[slots.start], structure.table_offset[slots.stop]
                table_values[start:stop] = np.column_stack([term.values, missing]).ravel()
    unit_constant = np.zeros(structure.n_units)
    for terms, constant in ((structure.square, square_constant), (structure.linear, linear_constant)):
        unit_constant += np.bincount(terms.unit, weights=constant[terms.slot], minlength=structure.n_units)
    return BoundNetwork(
        structure=structure,
        log_weights=_without_hidden_nan(parameters),
        unit_constant=unit_constant,
        square_centre=square_centre,
        square_scale=square_scale,
        square_missing=square_missing,
        linear_slope=linear_slope,
        linear_missing=linear_missing,
        table_values=table_values,
        blocks=tuple(blocks),
        complete_by_mode=complete_by_mode,
    )


def _check_shapes(structure: Structure, parameters: Parameters) -> None:
    """Compiled code does not look where arrays end: parameters of another structure must not get there."""
    if parameters.log_weights.shape != (structure.n_edges,):
        raise ValueError(f"expected {structure.n_edges} log weights, got an array of {parameters.log_weights.shape}")
    for group, values in zip(structure.groups, parameters.leaves, strict=True):
        if values.ndim != 2 or len(values) != group.n_leaves:
            raise ValueError(f"expected parameters of {group.n_leaves} {group.family.name} leaves, got {values.shape}")


def _without_hidden_nan(parameters: Parameters) -> FloatArray:
    """Log weights, all NaN if any parameter is: then so is every class joint, whatever an engine makes of NaN."""
    if any(np.isnan(values).any() for values in (parameters.log_weights, *parameters.leaves)):
        return np.full_like(parameters.log_weights, np.nan)
    return parameters.log_weights

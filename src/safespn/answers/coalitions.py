"""Log class posteriors given subsets of the cells of rows: what sets of columns are worth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from safespn.answers.mixtures import MixturePosteriors, mixture_of
from safespn.answers.votes import votes_of
from safespn.class_networks.committee import Committee, Member, log_average
from safespn.class_networks.weighing import log_tempered
from safespn.typing import BoolArray, FloatArray

SubsetPosteriors = Callable[[FloatArray, BoolArray], FloatArray]
"""From cells, shape (n_rows, n_columns), NaN where missing, and subsets of columns, shape (n_subsets, n_columns), to
log class posteriors given the cells of each subset alone, shape (n_subsets, n_rows, n_classes)."""

SMALLEST_POSTERIOR = 1e-290
CELLS_AT_ONCE = 8_000_000
"""Rows times subsets times columns that are evaluated at a time."""


class RowPosteriors:
    """Posteriors of any model of rows with missing cells.

    Parameters
    ----------
    log_posterior : callable
        From cells to log class posteriors, shape (n_rows, n_classes).
    """

    def __init__(self, log_posterior: Callable[[FloatArray], FloatArray]) -> None:
        self._log_posterior = log_posterior

    def __call__(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        return _in_pieces(self._of_piece, cells, subsets)

    def _of_piece(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        return self._log_posterior(_known(cells, subsets)).reshape(len(subsets), len(cells), -1)


def _in_pieces(evaluate: SubsetPosteriors, cells: FloatArray, subsets: BoolArray) -> FloatArray:
    """Evaluate some subsets at a time."""
    at_once = max(1, CELLS_AT_ONCE // max(cells.size, 1))
    pieces = [evaluate(cells, subsets[start : start + at_once]) for start in range(0, len(subsets), at_once)]
    return np.concatenate(pieces)


def _known(cells: FloatArray, subsets: BoolArray) -> FloatArray:
    """Rows with only the cells of each subset, shape (n_subsets * n_rows, n_columns).

    Equal patterns of missing cells come one after the other, which multivariate leaves do at once.
    """
    return np.where(subsets[:, None], cells, np.nan).reshape(len(subsets) * len(cells), -1)


class CommitteePosteriors:
    """Posteriors of a committee: forests by their boxes, mixtures by chains of subsets, others by passes over rows."""

    def __init__(self, committee: Committee, n_jobs: int | None = None) -> None:
        self._committee, self._n_jobs = committee, n_jobs

    def __call__(self, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        members = list(zip(self._committee.members, self._members, strict=True))
        result = members[0][1](cells, subsets)
        if len(members) > 1:
            result = np.exp(result) * members[0][0].weight
            for member, posteriors in members[1:]:
                result += np.exp(posteriors(cells, subsets)) * member.weight
            result = self._log(result, cells, subsets)
        elif self._committee.temperature != 1:
            result = log_tempered(result, self._committee.temperature)
        if self._reference is not None:
            result = log_average(result, self._reference(cells, subsets), self._committee.drawn_back)
        return np.asarray(result)

    def _log(self, posterior: FloatArray, cells: FloatArray, subsets: BoolArray) -> FloatArray:
        """Log of averaged posteriors, tempered; those that are too small for numbers are averaged as logs."""
        is_small = (posterior < SMALLEST_POSTERIOR).any(axis=2)
        result = log_tempered(np.log(np.maximum(posterior, SMALLEST_POSTERIOR)), self._committee.temperature)
        if is_small.any():
            subset, row = np.nonzero(is_small)
            known = np.where(subsets[subset], cells[row], np.nan)
            of_members = [member.evaluate(known, self._n_jobs) for member in self._committee.members]
            result[is_small] = self._committee.combine(of_members)[1]
        return result

    @cached_property
    def _members(self) -> list[SubsetPosteriors]:
        return [self._of_member(member) for member in self._committee.members]

    def _of_member(self, member: Member) -> SubsetPosteriors:
        mixture = mixture_of(member)
        if mixture is not None:
            return MixturePosteriors(member, mixture, self._n_jobs)
        return votes_of(member, self._n_jobs) or RowPosteriors(lambda cells: member.evaluate(cells, self._n_jobs)[1])

    @cached_property
    def _reference(self) -> CommitteePosteriors | None:
        reference = self._committee.reference
        return None if reference is None else CommitteePosteriors(reference, self._n_jobs)

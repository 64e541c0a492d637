"""Scored rows without their details, in columns: all that figures rest on, in little room.

A row is some four kilobytes as an object and about a hundred bytes here, so that a leaderboard can
hold those of a thousand runs.  What is read back is exactly what was put in: a whole number stays
one, and a row that lacks a sum still lacks it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .metric import sliced
from .scored_row import ScoredRow, totals

Number = int | float
_EXACT = 2**53
"""Above it a fraction's type cannot hold every whole number."""

_NONE, _WHOLE, _FRACTION = range(3)
_KINDS = {type(None): _NONE, int: _WHOLE, float: _FRACTION}


class Column(NamedTuple):
    """One number of every row: its value (0 where there is none), and which kind of one it is."""

    values: NDArray[Any]
    kinds: NDArray[np.uint8]

    def said(self) -> list[Number | None]:
        """The numbers as they were put in."""
        made: list[Any] = self.values.tolist()
        first = self.kinds[0] if made else _NONE
        if first != _NONE and (self.kinds == first).all():
            return made
        of: tuple[Callable[[Any], Number | None], ...] = (lambda _: None, int, float)
        return [of[kind](one) for one, kind in zip(made, self.kinds.tolist(), strict=True)]


def column(said: Sequence[Number | None]) -> Column:
    """A column of the smallest type that holds its numbers exactly."""
    kinds = np.array([_KINDS[type(one)] for one in said], dtype=np.uint8)
    numbers = [0 if one is None else one for one in said]
    whole = [one for one in numbers if isinstance(one, int)]
    lowest, highest = min(whole, default=0), max(whole, default=0)
    kind: Any = object
    if not (kinds == _FRACTION).any():
        kind = np.result_type(np.min_scalar_type(lowest), np.min_scalar_type(highest))
        # What holds both -1 and 2**63 is a fraction to numpy.
        kind = object if kind == np.float64 else kind
    elif max(-lowest, highest) <= _EXACT:
        kind = np.float64
    if len(kinds) and (kinds == kinds[0]).all():
        kinds = np.broadcast_to(kinds[:1].copy(), kinds.shape)
    return Column(np.array(numbers, dtype=kind), kinds)


class Texts(NamedTuple):
    """One text of every row: the values in alphabetical order, and the place of each row's
    (-1: it has none)."""

    values: tuple[str, ...]
    of: NDArray[np.signedinteger[Any]]

    def said(self) -> list[str | None]:
        """The texts as they were put in."""
        values = (*self.values, None)
        return [values[at] for at in self.of.tolist()]


def texts(said: Sequence[str | None]) -> Texts:
    """The texts of rows; runs that have the same ones share them."""
    values = tuple(sorted({sys.intern(one) for one in said if one is not None}))
    place: dict[str | None, int] = {one: at for at, one in enumerate(values)}
    kind = np.result_type(np.int8, np.min_scalar_type(-len(values) - 1))
    return Texts(values, np.array([place.get(one, -1) for one in said], dtype=kind))


def _column_where(one: Column, inside: NDArray[np.bool_]) -> Column:
    return Column(one.values[inside], one.kinds[inside])


def _texts_where(one: Texts, inside: NDArray[np.bool_]) -> Texts:
    """The texts of some rows, without values that none of them has."""
    of = one.of[inside]
    used = np.unique(of[of >= 0])
    # The last one is what -1 finds: a row without a text still has none.
    place = np.full(len(one.values) + 1, -1, dtype=one.of.dtype)
    place[used] = np.arange(len(used))
    return Texts(tuple(one.values[at] for at in used.tolist()), place[of])


@dataclass(frozen=True, slots=True, eq=False)
class RowTable(Sequence[ScoredRow]):
    """Rows without details; sums and slices are by their names.

    ``counted`` are the sums once the events of an anatomy are counted (None: they are the same).
    ``goodness`` is how good every answer is, in percent (None: that was not kept).
    """

    indices: Column
    source: Texts
    failed: NDArray[np.bool_]
    reason: Texts
    sums: Mapping[str, Column]
    slices: Mapping[str, Texts]
    counted: Mapping[str, Column] | None = None
    goodness: NDArray[np.float64] | None = None

    def with_events(self) -> RowTable:
        """The rows with their events counted."""
        return replace(self, sums=self.sums if self.counted is None else self.counted)

    def where(self, inside: NDArray[np.bool_]) -> RowTable:
        """Some of the rows, by one truth value a row."""
        counted = self.counted
        return RowTable(
            indices=_column_where(self.indices, inside),
            source=_texts_where(self.source, inside),
            failed=self.failed[inside],
            reason=_texts_where(self.reason, inside),
            sums={name: _column_where(one, inside) for name, one in self.sums.items()},
            slices={kind: _texts_where(one, inside) for kind, one in self.slices.items()},
            counted=counted and {n: _column_where(one, inside) for n, one in counted.items()},
            goodness=None if self.goodness is None else self.goodness[inside],
        )

    def __len__(self) -> int:
        return len(self.failed)

    @overload
    def __getitem__(self, at: int) -> ScoredRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ScoredRow]: ...
    def __getitem__(self, at: int | slice) -> ScoredRow | Sequence[ScoredRow]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[ScoredRow]:
        sums = {name: one.said() for name, one in self.sums.items()}
        slices = {kind: one.said() for kind, one in self.slices.items()}
        known: list[Sequence[Any]] = [self.indices.said(), self.source.said()]
        known += [self.failed.tolist(), self.reason.said()]
        for at, (index, source, failed, reason) in enumerate(zip(*known, strict=True)):
            yield ScoredRow(index, source, _at(sums, at), failed, reason, _at(slices, at))


def table_of(
    rows: Sequence[ScoredRow],
    counted: Sequence[ScoredRow],
    goodness: Sequence[float] | None = None,
) -> RowTable:
    """Rows as a table; ``counted`` are the same rows with the events of their anatomy counted."""
    more = any(one.sums != row.sums for one, row in zip(counted, rows, strict=True))
    kinds = dict.fromkeys(kind for row in rows for kind in row.slices)
    return RowTable(
        indices=column([row.index for row in rows]),
        source=texts([row.source for row in rows]),
        failed=np.array([row.failed for row in rows], dtype=bool),
        reason=texts([row.reason for row in rows]),
        sums=_columns(rows),
        slices={sys.intern(kind): texts([row.slices.get(kind) for row in rows]) for kind in kinds},
        counted=_columns(counted) if more else None,
        goodness=None if goodness is None else np.array(goodness, dtype=float),
    )


def _columns(rows: Sequence[ScoredRow]) -> dict[str, Column]:
    names = dict.fromkeys(name for row in rows for name in row.sums)
    return {sys.intern(name): column([row.sums.get(name) for row in rows]) for name in names}


def _at(columns: Mapping[str, Sequence[Any]], at: int) -> dict[str, Any]:
    return {name: said[at] for name, said in columns.items() if said[at] is not None}


# --- what is asked of rows, whether they are a table or not --------------------------------------


def totals_of(rows: Sequence[ScoredRow]) -> dict[str, float]:
    """:func:`.scored_row.totals`, to the last bit: added up row by row."""
    if not isinstance(rows, RowTable):
        return totals(rows)
    found: dict[str, float] = {}
    for name, one in rows.sums.items():
        said = one.said()
        found |= _added_up(said, [0] * len(said), [name])
        for kind, slicing in rows.slices.items():
            keys = [sys.intern(sliced(name, kind, value)) for value in slicing.values]
            found |= _added_up(said, slicing.of.tolist(), keys)
    return found


def _added_up(
    said: Sequence[Number | None], places: Sequence[int], keys: Sequence[str]
) -> dict[str, float]:
    """The sum at each place by its key; without one where no row there has such a number."""
    found: list[Number | None] = [None] * len(keys)
    for value, at in zip(said, places, strict=True):
        if value is not None and at >= 0:
            before = found[at]
            found[at] = (0 if before is None else before) + value
    return {key: total for key, total in zip(keys, found, strict=True) if total is not None}


def indices(rows: Sequence[ScoredRow]) -> list[int]:
    """The indices of rows, in their order."""
    if isinstance(rows, RowTable):
        return [int(index) for index in rows.indices.values.tolist()]
    return [row.index for row in rows]


def failures(rows: Sequence[ScoredRow]) -> int:
    """How many calls failed."""
    if isinstance(rows, RowTable):
        return int(rows.failed.sum())
    return sum(row.failed for row in rows)


def sources(rows: Sequence[ScoredRow]) -> int:
    """How many pictures or videos rows show."""
    if isinstance(rows, RowTable):
        return len(rows.source.values)
    return len({row.source for row in rows})

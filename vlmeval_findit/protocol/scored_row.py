"""Scored queries of a run, as rows and as tables of columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..core import LARGEST_NUMBER, quoted_value
from .metric import SumKey, SumName

Sums = Mapping[str, float]

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A scored query."""

    index: int
    source: str  # Its query's cluster
    sums: Sums  # Without those of slices, which :func:`sum_rows` makes
    failed: bool = False  # The call failed
    reason: str | None = None  # Why the answer could not be read
    slices: Mapping[str, str] = field(default_factory=dict)  # Value by kind
    details: Mapping[str, Any] = field(default_factory=dict)  # For the details file
    # Sums by (kind, value), all of one kind: an image's classes, say
    parts: Mapping[tuple[str, str], Sums] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be added up or stored, with a ValueError that names row and key."""
        for sums in (self.sums, *self.parts.values()):
            for name, value in sums.items():
                is_finite = type(value) is int or (type(value) is float and isfinite(value))
                if not is_finite or abs(value) > LARGEST_NUMBER:
                    raise self._wrong(
                        f"the sum {name!r} is {quoted_value(value)}, not a finite number"
                    )
        for kind, part in (*self.slices.items(), *self.parts):
            if type(part) is not str:
                text = quoted_value(str(part))
                raise self._wrong(
                    f"the slice {kind!r} is {quoted_value(part)}, not a text: write {text}"
                )
        if self.parts:
            kinds = [*self.slices, *{kind for kind, _ in self.parts}]
            if len({*kinds}) < len(kinds) or len(kinds) > len(self.slices) + 1:
                raise self._wrong(
                    "parts need one kind, other than those of its slices: "
                    f"{', '.join(sorted(kinds))}"
                )

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"row {self.index}: {what}")

    def part_rows(self) -> Iterator[ScoredRow]:
        """Yield its parts as rows, with its slices and their kind and value."""
        for (kind, value), sums in self.parts.items():
            yield replace(self, sums=sums, slices={**self.slices, kind: value}, parts={})


def sum_rows(rows: Sequence[ScoredRow]) -> dict[SumName, float]:
    """Return the sums of all rows by name, and those of every slice by :class:`.SumKey`.

    Those of a table are identical to the last bit: added up row by row.
    """
    if isinstance(rows, RowTable):
        return _totals_of(rows)
    sums = _totals(rows)
    parts = [part for row in rows if row.parts for part in row.part_rows()]
    return add_up((sums, _totals(parts))) if parts else sums


def _totals(rows: Iterable[ScoredRow]) -> dict[SumName, float]:
    of_all: dict[str, float] = {}
    of_slices: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        _add(of_all, row.sums)
        for kind_and_value in row.slices.items():
            _add(of_slices.setdefault(kind_and_value, {}), row.sums)
    result: dict[SumName, float] = {}
    result.update(of_all.items())
    for (kind, value), sums in of_slices.items():
        for name, total in sums.items():
            result[SumKey(name, kind, value)] = total
    return result


def _add(total: dict[KeyT, float], sums: Mapping[KeyT, float]) -> None:
    for key, value in sums.items():
        total[key] = total.get(key, 0) + value


def add_up(rows: Iterable[Mapping[KeyT, float]]) -> dict[KeyT, float]:
    """Add up sums by key."""
    total: dict[KeyT, float] = {}
    for sums in rows:
        _add(total, sums)
    return total


# --- rows in columns ------------------------------------------------------------------------------

# Some 100 bytes per row instead of 4 kB, so that a leaderboard can hold a thousand runs.

_FIRST_WHOLE_WITHOUT_FLOAT = 2**53 + 1

Number = int | float
# A number per row, masked where a row has none; Python objects where types differ
Column = NDArray[Any]


def column(numbers: Sequence[Any]) -> Column:
    """Make a column of the smallest type that holds its numbers (or None) exactly."""
    values, is_missing = filled_column(numbers)
    return values if is_missing is None else np.ma.masked_array(values, is_missing)


def filled_column(numbers: Sequence[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the numbers of a column, 0 for None, and where None is (None: nowhere)."""
    if None not in numbers:
        return np.array(numbers, dtype=_smallest_type(numbers)), None
    known = [number for number in numbers if number is not None]
    values = np.array(known, dtype=_smallest_type(known))
    is_missing = np.array([number is None for number in numbers])
    filled = np.zeros(len(numbers), dtype=values.dtype)
    filled[~is_missing] = values
    return filled, is_missing


def _smallest_type(numbers: Sequence[Any]) -> Any:
    types = {*map(type, numbers)}
    if types == {float}:
        return np.float64
    if types != {int}:
        return object
    kind = np.result_type(*(np.min_scalar_type(end(numbers)) for end in (min, max)))
    # numpy's type for both a negative and a large number is a float.
    return object if kind == np.float64 else kind


def exceeds_floats(numbers: Column) -> bool:
    """Return whether a column has a whole number that no float can hold."""
    if numbers.dtype != object:
        return False
    return any(abs(number) > LARGEST_NUMBER for number in np.ma.getdata(numbers))


def as_floats(numbers: Column) -> NDArray[np.float64]:
    """Convert a column; 0 stands for None."""
    return np.ma.filled(numbers, 0).astype(np.float64)


class Texts(NamedTuple):
    """One text per row: alphabetical values, and each row's place in them (-1: none)."""

    values: tuple[str, ...]
    place: NDArray[np.signedinteger[Any]]

    def to_list(self) -> list[str | None]:
        values = (*self.values, None)
        return [values[at] for at in self.place.tolist()]


def texts(values_: Sequence[str | None]) -> Texts:
    """Make the texts of rows; equal strings are shared between runs."""
    values = tuple(sorted({sys.intern(text) for text in values_ if text is not None}))
    place: dict[str | None, int] = {text: at for at, text in enumerate(values)}
    kind = np.result_type(np.int8, np.min_scalar_type(-len(values) - 1))
    return Texts(values, np.array([place.get(text, -1) for text in values_], dtype=kind))


@dataclass(frozen=True, slots=True, eq=False)
class RowTable(Sequence[ScoredRow]):
    """Rows without details; sums and slices by name."""

    indices: Column
    source: Texts
    failed: NDArray[np.bool_]
    reason: Texts
    sums: Mapping[str, Column]
    slices: Mapping[str, Texts]
    counted: Mapping[str, Column] | None = None  # Sums with events (None: the same)
    parts: RowTable | None = None  # Parts as rows; their index is their row's place

    def with_events(self) -> RowTable:
        return replace(self, sums=self.sums if self.counted is None else self.counted)

    def __len__(self) -> int:
        return len(self.failed)

    @overload
    def __getitem__(self, at: int) -> ScoredRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ScoredRow]: ...
    def __getitem__(self, at: int | slice) -> ScoredRow | Sequence[ScoredRow]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[ScoredRow]:
        sums = _by_row({name: column.tolist() for name, column in self.sums.items()}, len(self))
        slices = {kind: column.to_list() for kind, column in self.slices.items()}
        fields: list[Iterable[Any]] = [self.indices.tolist(), self.source.to_list(), sums]
        fields += [self.failed.tolist(), self.reason.to_list(), _by_row(slices, len(self))]
        parts: dict[int, list[ScoredRow]] = {}
        for column in self.parts or ():
            parts.setdefault(column.index, []).append(column)
        for at, values in enumerate(zip(*fields, strict=True)):
            row = ScoredRow(*values)
            if its_parts := parts.get(at):
                row = replace(row, parts=_parts_beside(row.slices, its_parts))
            yield row


def table_of(rows: Sequence[ScoredRow], counted: Sequence[ScoredRow] = ()) -> RowTable:
    """Make a table of rows; ``counted`` are the same rows with events counted."""
    more = counted and any(row_.sums != row.sums for row_, row in zip(counted, rows, strict=True))
    parts = [replace(part, index=at) for at, row in enumerate(rows) for part in row.part_rows()]
    table = columns_of(rows)
    return replace(
        table,
        counted=_columns([row.sums for row in counted]) if more else None,
        parts=table_of(parts) if parts else None,
    )


class RowOfSums(Protocol):
    """What a table has of a row: that of a :class:`ScoredRow`, perhaps just read from a file."""

    @property
    def index(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def failed(self) -> bool: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def sums(self) -> Sums: ...
    @property
    def slices(self) -> Mapping[str, str]: ...


def columns_of(rows: Sequence[RowOfSums]) -> RowTable:
    """Make a table of rows without their parts; none is checked."""
    slices = [row.slices for row in rows]
    kinds = dict.fromkeys(chain.from_iterable(slices))
    return RowTable(
        indices=column([row.index for row in rows]),
        source=texts([row.source for row in rows]),
        failed=np.array([row.failed for row in rows], dtype=bool),
        reason=texts([row.reason for row in rows]),
        sums=_columns([row.sums for row in rows]),
        slices={sys.intern(kind): texts([part.get(kind) for part in slices]) for kind in kinds},
    )


def _columns(rows: Sequence[Sums]) -> dict[str, Column]:
    names = dict.fromkeys(chain.from_iterable(rows))
    return {sys.intern(name): column([sums.get(name) for sums in rows]) for name in names}


def _by_row(columns: Mapping[str, Sequence[Any]], rows: int) -> Iterator[dict[str, Any]]:
    """Return the values of each row by name, without None."""
    if not columns:
        return ({} for _ in range(rows))
    values = zip(*columns.values(), strict=True)
    named = map(dict, map(zip, repeat(tuple(columns)), values))
    has_gaps = any(None in column for column in columns.values())
    return map(_without_none, named) if has_gaps else named


def _without_none(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _parts_beside(
    slices: Mapping[str, str], parts: Iterable[ScoredRow]
) -> dict[tuple[str, str], Sums]:
    """Return the sums of a row's parts by kind and value, which the row's slices are not."""
    by_part: dict[tuple[str, str], Sums] = {}
    for part in parts:
        for kind_and_value in part.slices.items():
            if kind_and_value not in slices.items():
                by_part[kind_and_value] = part.sums
    return by_part


def _totals_of(rows: RowTable) -> dict[SumName, float]:
    totals: dict[SumName, float] = {}
    everywhere = np.zeros(len(rows), dtype=np.intp)
    for name, column in rows.sums.items():
        totals |= _added_up(column, everywhere, [name])
        for kind, slicing in rows.slices.items():
            keys = [_shared(SumKey(name, kind, value)) for value in slicing.values]
            totals |= _added_up(column, slicing.place, keys)
    return totals if rows.parts is None else add_up((totals, _totals_of(rows.parts)))


def _added_up(
    column: Column, places: NDArray[np.signedinteger[Any]], keys: Sequence[KeyT]
) -> dict[KeyT, float]:
    """Add up by place, under each place's key; no sum where no row has a number."""
    has_number = places >= 0
    if np.ma.is_masked(column):
        has_number &= ~np.ma.getmaskarray(column)
    column = np.ma.getdata(column)
    if not has_number.all():
        places = places[has_number]
        column = column[has_number]
    if not _is_exact_in_floats(column):
        return _added_up_one_by_one(column.tolist(), places.tolist(), keys)
    # bincount adds from 0 and in the order of the rows, too: sums are the same to the last bit.
    counts = np.bincount(places, minlength=len(keys))
    sums = np.bincount(places, column, len(keys))
    if column.dtype != np.float64:
        sums = sums.astype(np.int64)
    return {key: total for key, total, n in zip(keys, sums.tolist(), counts, strict=True) if n}


def _is_exact_in_floats(column: Column) -> bool:
    """Return whether the numbers of a column, and all sums of some of them, are as exact there."""
    if column.dtype == object:
        return False
    if column.dtype == np.float64 or not len(column):
        return True
    largest = max(int(column.max()), -int(column.min()))
    return largest * len(column) < _FIRST_WHOLE_WITHOUT_FLOAT


def _added_up_one_by_one(
    values: Sequence[Number], places: Sequence[int], keys: Sequence[KeyT]
) -> dict[KeyT, float]:
    sums: dict[KeyT, Number] = {}
    for value, place in zip(values, places, strict=True):
        sums[keys[place]] = sums.get(keys[place], 0) + value
    return sums


# Equal keys are one object, as equal texts are: a leaderboard holds the sums of a thousand runs.
_KEYS: dict[SumKey, SumKey] = {}


def _shared(key: SumKey) -> SumKey:
    return _KEYS.setdefault(key, key)


def indices(rows: Sequence[ScoredRow]) -> list[int]:
    """Return the indices of rows, in order."""
    if isinstance(rows, RowTable):
        return list(rows.indices.tolist())
    return [row.index for row in rows]


def failed_calls(rows: Sequence[ScoredRow]) -> list[bool]:
    """Return whether the call of each row failed."""
    if isinstance(rows, RowTable):
        return list(rows.failed.tolist())
    return [row.failed for row in rows]


def reasons(rows: Sequence[ScoredRow]) -> list[str | None]:
    """Return why the answer of each row could not be read; None where it could."""
    if isinstance(rows, RowTable):
        return rows.reason.to_list()
    return [row.reason for row in rows]


def rows_with_sum(rows: Sequence[ScoredRow], name: str) -> NDArray[np.bool_]:
    """Return whether each row has a sum of that name that is not 0."""
    if not isinstance(rows, RowTable):
        return np.array([bool(row.sums.get(name)) for row in rows], dtype=bool)
    if name not in rows.sums:
        return np.zeros(len(rows), dtype=bool)
    has_sum: NDArray[np.bool_] = as_floats(rows.sums[name]) != 0
    return has_sum


def failures(rows: Sequence[ScoredRow]) -> int:
    """Count failed calls."""
    return int(rows.failed.sum()) if isinstance(rows, RowTable) else sum(r.failed for r in rows)


def none_answered(failed: int, asked: int) -> bool:
    """Tell whether calls were made and all of them failed: that measures nothing."""
    return 0 < asked == failed


def count_images(rows: Sequence[ScoredRow]) -> int:
    """Count the images or videos of rows."""
    return len(rows.source.values if isinstance(rows, RowTable) else {row.source for row in rows})

"""The sums of a run's rows in columns, next to its details: what boards read of many runs.

``<stem>_sums.msgpack`` says nothing that the details do not say. It holds their hash, its own hash
and the number of its layout; where one of these is another, the details are read. So it may be
deleted, and nothing is ever wrong with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import file_sha256, read_bytes, replacing, sha256_of
from ..protocol import RowTable, Texts, columns_of, exceeds_floats, filled_column, texts
from ..storage import RunFiles, Shown, shown_in
from .score_reading import LineOfSums, lines_of_sums

LAYOUT = 1
"""Raise it when columns, or how they are made of lines, change: other layouts are not read."""

_TYPES = "bool float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_KINDS = frozenset(np.dtype(name).str for name in _TYPES.split())
"""Types of columns, as NumPy names them in the byte order of this machine."""

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class SumsOfRows:
    """What boards need of the rows of a run."""

    rows: RowTable
    shown: Mapping[int, Shown]  # The images of each row for which they are known


@dataclass(frozen=True, slots=True)
class _Numbers:
    kind: str
    values: bytes
    missing: bytes | None = None  # A byte a row, 1 where it has no number; None: all have one


@dataclass(frozen=True, slots=True)
class _Words:
    values: tuple[str, ...]
    place: _Numbers


@dataclass(frozen=True, slots=True)
class _File:
    """The content of a file of sums behind its hash."""

    layout: int
    details: str  # SHA-256 of the details
    rows: int
    indices: _Numbers
    source: _Words
    failed: _Numbers
    reason: _Words
    sums: dict[str, _Numbers]
    slices: dict[str, _Words]
    shown: bytes  # A file in itself: that of many runs is the same


def sums_in_details(details: bytes) -> SumsOfRows | None:
    """Read the content of a details file into columns; None where it is damaged, or needs more."""
    lines = lines_of_sums(details)
    if lines is None:
        return None
    rows = columns_of(lines)
    if any(map(exceeds_floats, rows.sums.values())):
        return None
    return SumsOfRows(rows, _shown_by(lines))


def write_sums(files: RunFiles) -> None:
    """Write the sums of a details file next to it; delete those of another one.

    Raises:
        OSError: a file cannot be read or written.
    """
    details = read_bytes(files.details)
    lines = lines_of_sums(details)
    try:
        content = b"" if lines is None else _encode(lines, sha256_of(details))
    except _OfPythonError:
        content = b""
    if not content:
        files.sums.unlink(missing_ok=True)
        return
    with replacing(files.sums) as temporary:
        temporary.write_bytes(hashlib.sha256(content).digest() + content)


def read_sums(files: RunFiles) -> SumsOfRows | None:
    """Read the sums next to a details file; None where they are not of just these details.

    Raises:
        OSError: there are no details, or they cannot be read.
    """
    try:
        whole = read_bytes(files.sums)
    except OSError:
        return None
    digest, content = whole[:_DIGEST], whole[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    from msgspec.msgpack import decode

    try:
        file = decode(content, type=_File)
        if file.layout != LAYOUT or file.details != file_sha256(files.details):
            return None
        return SumsOfRows(_table(file), _shown(file.shown))
    except ValueError:
        return None


class _OfPythonError(ValueError):
    """A column holds numbers that are no numbers of NumPy."""


def _encode(lines: Sequence[LineOfSums], details: str) -> bytes:
    """Return the content of a file of sums.

    As :func:`.columns_of` makes columns, but without masked arrays: whoever scores a run does not
    load them.
    """
    from msgspec.msgpack import encode

    names = dict.fromkeys(chain.from_iterable(line.sums for line in lines))
    kinds = dict.fromkeys(chain.from_iterable(line.slices for line in lines))
    return encode(
        _File(
            layout=LAYOUT,
            details=details,
            rows=len(lines),
            indices=_numbers([line.index for line in lines]),
            source=_words([line.source for line in lines]),
            failed=_as_numbers(np.array([line.failed for line in lines], dtype=bool)),
            reason=_words([line.reason for line in lines]),
            sums={name: _numbers([line.sums.get(name) for line in lines]) for name in names},
            slices={kind: _words([line.slices.get(kind) for line in lines]) for kind in kinds},
            shown=encode(_shown_by(lines)),
        )
    )


def _numbers(column: Sequence[int | float | None]) -> _Numbers:
    values, is_missing = filled_column(column)
    if values.dtype == object:
        raise _OfPythonError
    return _as_numbers(values, None if is_missing is None else is_missing.tobytes())


def _as_numbers(values: NDArray[Any], missing: bytes | None = None) -> _Numbers:
    return _Numbers(values.dtype.str, values.tobytes(), missing)


def _words(column: Sequence[str | None]) -> _Words:
    its = texts(column)
    return _Words(its.values, _as_numbers(its.place))


def _shown_by(lines: Iterable[LineOfSums]) -> dict[int, Shown]:
    shown = {line.index: shown_in(line.image_sha256) for line in lines}
    return {index: images for index, images in shown.items() if images}


def _table(file: _File) -> RowTable:
    """Make the table of a file; ValueError where a column is not of its rows."""
    count = file.rows
    return RowTable(
        indices=_column(file.indices, count),
        source=_texts(file.source, count),
        failed=_column(file.failed, count),
        reason=_texts(file.reason, count),
        sums={intern(name): _column(numbers, count) for name, numbers in file.sums.items()},
        slices={intern(kind): _texts(words, count) for kind, words in file.slices.items()},
    )


def _column(numbers: _Numbers, count: int) -> NDArray[Any]:
    values = _array(numbers.kind, numbers.values, count)
    if numbers.missing is None:
        return values
    return np.ma.masked_array(values, _array("|b1", numbers.missing, count))


def _array(kind: str, content: bytes, count: int) -> NDArray[Any]:
    if kind not in _KINDS:
        raise ValueError(f"{kind} is no kind of column")
    array = np.frombuffer(content, kind)
    if len(array) != count:
        raise ValueError(f"{len(array)} numbers of {count} rows")
    return array


def _texts(words: _Words, count: int) -> Texts:
    place = _column(words.place, count)
    if place.min() < -1 or place.max() >= len(words.values):
        raise ValueError("a row's text is none of the texts")
    return Texts(tuple(map(intern, words.values)), place)


@lru_cache(maxsize=64)
def _shown(content: bytes) -> Mapping[int, Shown]:
    """Read which images rows showed: runs over the same rows share the answer."""
    from msgspec.msgpack import decode

    return decode(content, type=dict[int, dict[str, str]])

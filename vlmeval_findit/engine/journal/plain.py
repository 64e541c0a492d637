"""Where the lines of a journal lie that are in no segment: an index of open files."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .keys import Line, bytes_of, line_of, standing
from .lines import lines

_LEAST = 1 << 10
"""Slots of an empty table; a power of two."""

_NUMBER = 48
"""The bit of a start from which on the number of the file is said."""

_FAILED, _CONFIDENCES = 1 << 31, 1 << 30
"""Bits of a length: a line has no more than ``MAX_LINE`` bytes."""

_START, _LENGTH = (1 << _NUMBER) - 1, _CONFIDENCES - 1


class Indexed(NamedTuple):
    """What was found in a file: where its whole lines end, and where spoilt ones begin."""

    end: int
    spoilt: list[int]


class PlainLines:
    """The lines of open files, by key: the journal itself, then files that are kept beside it.

    Lines of the first file have ``segment`` 0, of the next one -1, and so on.

    Args:
        files: their descriptors; whoever opened them closes them.
    """

    def __init__(self, *files: int) -> None:
        self._files = files
        # A line is the n-th of these, from 1 on: 44 bytes, where objects of Python take 350.
        self._keys = bytearray()
        self._starts = array("Q")
        self._lengths = array("I")
        # Open addressing: the lines of a call are in the order of probing.  0 is a free slot.
        self._table = array("I", bytes(4 * _LEAST))

    def index(self, number: int = 0) -> Indexed:
        """Note the lines that are in a file now, up to a torn end."""
        found = Indexed(0, [])
        with os.fdopen(os.dup(self._files[number]), "rb") as f:
            f.seek(0)
            for line in lines(f):
                if line.record is not None:
                    at = line_of(line.record, line.start, line.length)
                    self.note(line.record["key"], at._replace(segment=-number))
                elif line.ended:
                    found.spoilt.append(line.start)
                else:
                    break
                found = found._replace(end=line.start + line.length)
        return found

    def note(self, key: str, line: Line) -> None:
        """Remember where a call's record is."""
        wanted = bytes_of(key)
        if wanted is None:
            return  # nobody can ask for it: every key is a SHA-256
        slots, free = self._slots(wanted)
        stood = [self._line(self._table[slot]) for slot in slots]
        now = standing([*stood, line])
        if now[-1] is not line:
            return
        self._keys += wanted
        self._starts.append(-line.segment << _NUMBER | line.start)
        flags = _FAILED * line.failed | _CONFIDENCES * line.confidences
        self._lengths.append(line.length | flags)
        # An answer takes the place of a failure, or comes after another answer.
        self._table[slots[-1] if len(now) == len(stood) else free] = len(self._starts)
        if 3 * len(self._starts) > 2 * len(self._table):
            self._grow()

    def lines(self, key: str) -> Sequence[Line]:
        """The lines of a call that stood for it, in their order."""
        wanted = bytes_of(key)
        if wanted is None:
            return ()
        return [self._line(self._table[slot]) for slot in self._slots(wanted)[0]]

    def noted(self) -> Iterator[tuple[str, Line]]:
        """All keys and lines that stood, in the order in which they were noted."""
        for number in self._numbers():
            yield self._key(number).hex(), self._line(number)

    def raw(self, line: Line) -> bytes:
        """A line as it was written."""
        return os.pread(self._files[-line.segment], line.length, line.start)

    def _numbers(self) -> Iterator[int]:
        """Those of lines that stood."""
        table = np.array(self._table)
        return map(int, np.sort(table[table > 0]))

    def _key(self, number: int) -> bytes:
        return bytes(self._keys[32 * number - 32 : 32 * number])

    def _line(self, number: int) -> Line:
        start, length = self._starts[number - 1], self._lengths[number - 1]
        return Line(
            start & _START,
            length & _LENGTH,
            length & _FAILED != 0,
            length & _CONFIDENCES != 0,
            -(start >> _NUMBER),
        )

    def _slots(self, key: bytes) -> tuple[list[int], int]:
        """The slots of a call's lines, and the free one behind them."""
        table, found = self._table, []
        last = len(table) - 1
        slot = hash(key) & last
        while number := table[slot]:
            if self._keys.startswith(key, 32 * number - 32):
                found.append(slot)
            slot = slot + 1 & last
        return found, slot

    def _grow(self) -> None:
        numbers = self._numbers()
        self._table = array("I", bytes(2 * 4 * len(self._table)))
        for number in numbers:
            self._table[self._slots(self._key(number))[1]] = number

"""Where the lines of a journal lie, by key: 50 bytes a call, where objects of Python take 350."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from .lines import Line

_LEAST = 1 << 10
"""Slots of an empty table; a power of two."""

_FAILED, _CONFIDENCES = 1 << 31, 1 << 30
"""Bits of a length: a line has no more than ``MAX_LINE`` bytes."""


def standing(lines: Iterable[Line]) -> list[Line]:
    """Those of a call's lines that stood for it, one after the other; the last stands.

    That is its first answer, else its last failure.  An answer that was asked for with
    log-probabilities takes the place of one that was not.
    """
    stood: list[Line] = []
    for line in lines:
        if not stood or stood[-1].failed:
            stood = [line]
        elif line.confidences and not line.failed and not stood[-1].confidences:
            stood.append(line)
    return stood


class Index:
    """The lines of calls by their keys, each call's in the order in which they were noted.

    One thread notes lines while another reads: what it reads is whole at every moment.
    """

    def __init__(self) -> None:
        # A line is the n-th of these, from 1 on.
        self._keys = bytearray()
        self._starts = array("Q")
        self._lengths = array("I")
        # Open addressing: a slot has the number of a line, or 0 where it is free.
        self._table = array("I", bytes(4 * _LEAST))

    def note(self, line: Line) -> None:
        """Remember where a line is; of one whose key is no SHA-256 nobody can ask."""
        key = _bytes_of(line.key)
        if key is None:
            return
        self._keys += key
        self._starts.append(line.start)
        self._lengths.append(line.length | _FAILED * line.failed | _CONFIDENCES * line.confidences)
        if 3 * len(self._starts) > 2 * len(self._table):
            grown = array("I", bytes(8 * len(self._table)))
            for number in range(1, len(self._starts)):
                _put(grown, self._key(number), number)
            self._table = grown
        _put(self._table, key, len(self._starts))

    def lines(self, key: str) -> list[Line]:
        """The lines of a call, in their order."""
        return [self._line(number, key) for number in self._numbers(key)]

    def serves(self, key: str, *, confidences: bool) -> bool:
        """Whether a line of a call is an answer, and one with log-probabilities if they are wanted.

        Every call asks it several times, so that no line is made of it.
        """
        wanted = _CONFIDENCES if confidences else 0
        for number in self._numbers(key):
            if self._lengths[number - 1] & (_FAILED | wanted) == wanted:
                return True
        return False

    def _numbers(self, key: str) -> list[int]:
        wanted, table, found = _bytes_of(key), self._table, list[int]()
        if wanted is None:
            return found
        last = len(table) - 1
        slot = hash(wanted) & last
        while number := table[slot]:
            if self._keys.startswith(wanted, 32 * number - 32):
                found.append(number)
            slot = slot + 1 & last
        return found

    def __iter__(self) -> Iterator[Line]:
        """All lines, in the order in which they were noted."""
        for number in range(1, len(self._starts) + 1):
            yield self._line(number, self._key(number).hex())

    def _key(self, number: int) -> bytes:
        return bytes(self._keys[32 * number - 32 : 32 * number])

    def _line(self, number: int, key: str) -> Line:
        start, said = self._starts[number - 1], self._lengths[number - 1]
        length = said & _CONFIDENCES - 1
        return Line(start, length, key, said & _FAILED != 0, said & _CONFIDENCES != 0)


def _put(table: array[int], key: bytes, number: int) -> None:
    last = len(table) - 1
    slot = hash(key) & last
    while table[slot]:
        slot = slot + 1 & last
    table[slot] = number


def _bytes_of(key: str | None) -> bytes | None:
    try:
        wanted = bytes.fromhex(key or "")
    except ValueError:
        return None
    return wanted if len(wanted) == 32 else None

"""Where each call's current record lies: 55 bytes a call, where objects take 350."""

from __future__ import annotations

from array import array

from .lines import Line, State

_LEAST = 1 << 10  # slots; a power of two

_LENGTH = (1 << 30) - 1
"""Mask of a length (at most ``MAX_LINE``); the state is in the bits above."""


class Index:
    """The line of each call by key: its first answer, else its last failure.

    An answer with log-probabilities replaces one without. One thread may note lines while another
    reads.
    """

    def __init__(self) -> None:
        # The n-th noted line, counted from 1.
        self._keys = bytearray()
        self._starts = array("Q")
        self._lengths = array("I")
        # Open addressing: a slot has the number of a line, or 0.
        self._table = array("I", bytes(4 * _LEAST))

    def note(self, line: Line) -> None:
        if (key := _bytes_of(line.key)) is None:
            return
        slot = self._slot(self._table, key)
        if number := self._table[slot]:
            state = self._lengths[number - 1] >> 30
            if not (line.state > state or line.state == state == State.FAILED):
                return
        self._keys += key
        self._starts.append(line.start)
        self._lengths.append(line.length | line.state << 30)
        self._table[slot] = len(self._starts)
        if 3 * len(self._starts) > 2 * len(self._table):
            grown = array("I", bytes(8 * len(self._table)))
            for number in filter(None, self._table):
                key = bytes(self._keys[32 * number - 32 : 32 * number])
                grown[self._slot(grown, key)] = number
            self._table = grown

    def line(self, key: str) -> Line | None:
        if not (number := self._number(key)):
            return None
        length, start = self._lengths[number - 1], self._starts[number - 1]
        return Line(start, length & _LENGTH, key, State(length >> 30))

    def state(self, key: str) -> int:
        """Return the :class:`.State` of a call, -1 if unknown."""
        number = self._number(key)
        return self._lengths[number - 1] >> 30 if number else -1

    def _number(self, key: str) -> int:
        wanted, table = _bytes_of(key), self._table
        return 0 if wanted is None else table[self._slot(table, wanted)]

    def _slot(self, table: array[int], key: bytes) -> int:
        """Return the slot of a key, or the free one where it belongs."""
        last, keys = len(table) - 1, self._keys
        slot = hash(key) & last
        while (number := table[slot]) and not keys.startswith(key, 32 * number - 32):
            slot = slot + 1 & last
        return slot


def _bytes_of(key: str | None) -> bytes | None:
    try:
        wanted = bytes.fromhex(key or "")
    except ValueError:
        return None
    return wanted if len(wanted) == 32 else None

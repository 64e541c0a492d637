"""Dumps of bytes in columns, and lines of uuencode: what stands between the parts of a code.

``xxd``, ``hexdump`` and ``od`` write an offset before the words of each line, and often its signs
behind them; uuencode begins each line with a sign for its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINE_END = re.compile(r"\r?\n|(?<!\\)\\{1,2}(?:r\\{1,2})?n")
# What follows an offset: a word of digits, or a sign in a cell
_ROW = r"(?=[ \t]+(?:(?:0[xX])?-?[0-9a-fA-F]{2,16}(?![0-9a-zA-Z])|\S{1,3}(?:[ \t]{2}|$))|[ \t]*$)"
_OFFSET = re.compile(rf"[ \t]*(?:0[xX])?([0-9a-fA-F]{{4,16}}):?{_ROW}")
# The first offset, behind other words
_FIRST = re.compile(rf"(?<![0-9a-zA-Z])(0{{4,16}}|0[xX][0-9a-fA-F]{{4,16}}):?{_ROW}")
_WORD = re.compile(r"[ \t]+(?:0[xX])?(-?[0-9a-fA-F]{1,16})(?![0-9a-zA-Z])")
_BASES = (16, 8, 10)  # of offsets
_BELOW = " " * 6  # begins a line with the same bytes in another form

# --- the lines of a text that are a dump ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dump:
    """Lines of a text that belong together, and what they may say."""

    text: str
    readings: tuple[str, ...]


def dumps_in(text: str) -> Iterator[Dump]:
    """Yield the dumps of a text, each with all of its lines.

    >>> [dump] = dumps_in("so: \\n00000000: 6b65 7921  key!\\n00000004: 0a  .\\nhm")
    >>> "key!\\n" in dump.readings
    True
    """
    readers = {"columns": _of_columns, "uuencode": _of_uuencode}
    lines: list[str] = []
    begin = end = 0
    kind = ""
    for start, stop in _lines(text):
        line = text[start:stop]
        if kind == "columns" and line.startswith(_BELOW):
            end = stop
            continue
        found, at = _beginning_of(line)
        if not found and kind == "uuencode" and _is_uuencoded(line, shortest=2):
            found = kind
        if lines and (found != kind or at):
            yield Dump(text[begin:end], readers[kind](lines))
            lines = []
        kind = found
        if kind:
            begin = begin if lines else start + at
            end = stop
            lines.append(line[at:])
    if lines:
        yield Dump(text[begin:end], readers[kind](lines))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a text begin and end; line ends may be escaped."""
    start = 0
    for end in _LINE_END.finditer(text):
        yield start, end.start()
        start = end.end()
    yield start, len(text)


def _beginning_of(line: str) -> tuple[str, int]:
    """Return which dump a line is of ("": none), and where that begins in it."""
    if _OFFSET.match(line):
        return "columns", 0
    first = _FIRST.search(line)
    if first is not None:
        return "columns", first.start()
    return ("uuencode", 0) if _is_uuencoded(line) else ("", 0)


# --- columns --------------------------------------------------------------------------------------


def _of_columns(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what lines may say: their words as numbers of several forms, or as signs."""
    offsets = []
    rests = []
    for line in lines:
        match = _OFFSET.match(line)
        assert match is not None
        offsets.append(match[1].lower().removeprefix("0x"))
        rests.append(line[match.end() :])
    words = [_words_of(rest) for rest in rests]
    readings = dict.fromkeys([_of_signs(rests)])
    for width in _widths(offsets):
        for form in _FORMS:
            data = b"".join(_bytes_of(each, form)[:width] for each in words)
            readings[data.decode("utf-8", "replace")] = None
    return tuple(readings)


def _widths(offsets: Sequence[str]) -> set[int | None]:
    """Return how many bytes a line may have, by the offsets of the first two; None: all."""
    widths: set[int | None] = {None}
    for base in _BASES:
        try:
            first, second = (int(offset, base) for offset in offsets[:2])
        except ValueError:
            continue
        if second > first:
            widths.add(second - first)
    return widths


def _words_of(rest: str) -> list[str]:
    """Return the words of a line, and perhaps signs behind them that look like words."""
    words = []
    at = 0
    while (match := _WORD.match(rest, at)) is not None:
        words.append(match[1])
        at = match.end()
    return words


@dataclass(frozen=True, slots=True)
class _Form:
    """How a program writes bytes as words."""

    base: int
    digits: int  # of a byte; 0: words have a fixed number of bytes
    size: int = 0  # bytes of a word
    is_swapped: bool = False  # the lowest byte comes first


_FORMS = (
    _Form(16, 2),
    _Form(16, 2, is_swapped=True),
    _Form(2, 8),
    _Form(8, 0, 1),
    _Form(8, 0, 2, is_swapped=True),
    _Form(8, 0, 2),
    _Form(10, 0, 1),
    _Form(10, 0, 2, is_swapped=True),
    _Form(10, 0, 4, is_swapped=True),
)


def _bytes_of(words: Sequence[str], form: _Form) -> bytes:
    """Return the bytes of words up to the first that has not the form."""
    data = b""
    for word in words:
        size = len(word) // form.digits if form.digits else form.size
        order = "little" if form.is_swapped else "big"
        try:
            number = int(word, form.base)
            data += (number % (1 << 8 * size)).to_bytes(size, order)  # type: ignore[arg-type]
        except (ValueError, ZeroDivisionError):
            break
    return data


_CELL = 4  # signs that od and hexdump take for a byte
_NAMED = {
    r"\0": 0, r"\a": 7, r"\b": 8, r"\t": 9, r"\n": 10, r"\v": 11, r"\f": 12, r"\r": 13,
    "nul": 0, "ht": 9, "nl": 10, "cr": 13, "sp": 32, "": 32,
}  # fmt: skip
_OCTAL = re.compile("[0-3][0-7]{2}")


def _of_signs(rests: Sequence[str]) -> str:
    """Return what cells of a sign each say."""
    data = bytearray()
    for rest in rests:
        for at in range(0, len(rest), _CELL):
            cell = rest[at : at + _CELL].strip()
            if _OCTAL.fullmatch(cell):
                data.append(int(cell, 8))
            elif cell in _NAMED:
                data.append(_NAMED[cell])
            else:
                data += cell.encode("utf-8", "replace")
    return data.decode("utf-8", "replace")


# --- uuencode -------------------------------------------------------------------------------------

_MOST_UU = 45  # bytes of a line
_SHORTEST_UU = 8  # signs of a first line: fewer stand in any text


def _is_uuencoded(line: str, shortest: int = _SHORTEST_UU) -> bool:
    """Return whether a line begins with the sign of its length, and has it."""
    if len(line) < shortest:
        return False
    count = ord(line[0]) - ord(" ")
    # Spaces at its end, which stand for zeros, may be gone.
    signs = -(-count // 3) * 4
    return 0 < count <= _MOST_UU and signs - 3 <= len(line) - 1 <= signs + 1


def _of_uuencode(lines: Sequence[str]) -> tuple[str, ...]:
    return ("".join(line[1:] for line in lines),)

"""Where the lines of a journal lie that are in no segment: an index of open files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .journal_keys import Line, line_of, standing
from .journal_lines import lines


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
        self._lines: dict[str, tuple[Line, ...]] = {}

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
        known = self._lines.get(key)
        self._lines[key] = (line,) if known is None else tuple(standing([*known, line]))

    def lines(self, key: str) -> Sequence[Line]:
        """The lines of a call that stood for it, in their order."""
        return self._lines.get(key, ())

    def noted(self) -> Iterator[tuple[str, Line]]:
        """All keys and lines that stood, the lines of a call in their order."""
        for key, known in self._lines.items():
            for line in known:
                yield key, line

    def raw(self, line: Line) -> bytes:
        """A line as it was written."""
        return os.pread(self._files[-line.segment], line.length, line.start)

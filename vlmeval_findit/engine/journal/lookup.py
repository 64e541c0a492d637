"""Calls of a journal, looked up by key: by its writer, and by whoever else reads it.

:class:`JournalView` needs no lock and leaves no trace on the disk.  It shows the journal of the
moment when it was opened, whoever writes it, then or later: what was appended or sealed since is
not seen, and what was there stays readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from .errors import JournalError
from .keys import Line, standing
from .lines import Record
from .plain import PlainLines
from .reading import problem_of, snapshot
from .sealed_view import SealedView
from .segments import Segment, segment_at
from .side import live_sides, sealed_sides


class Lookup:
    """The finished calls of a journal, by their keys.

    Args:
        sealed: the lines in its segments.
        plain: those that come after them.
    """

    def __init__(self, sealed: SealedView, plain: PlainLines) -> None:
        self._sealed = sealed
        self._plain = plain

    def __contains__(self, key: str) -> bool:
        """Whether a call is answered; a failed one is not."""
        return self.serves(key, confidences=False)

    def __len__(self) -> int:
        """How many calls are answered; every key is read."""
        noted = chain(self._sealed.noted(), self._plain.noted())
        return len({key for key, line in noted if not line.failed})

    def __getitem__(self, key: str) -> dict[str, Any]:
        """The record of a call: its answer, or the last of its failures.

        Raises:
            KeyError: it was never made.
            JournalError: it is in a segment and spoilt.
        """
        stood = self._standing(key)
        if not stood:
            raise KeyError(key)
        return self._record(stood[-1])

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a call, or None where it was never made."""
        stood = self._standing(key)
        return self._record(stood[-1]) if stood else None

    def serves(self, key: str, *, confidences: bool) -> bool:
        """Whether a call is answered as it is wanted: with ``confidences`` only if the answer was
        asked for with them, whether or not they could be had.
        """
        # Of the answers to a call one that was asked for with them always stands.
        for line in self._all(key):
            if not line.failed and (line.confidences or not confidences):
                return True
        return False

    def is_news(self, record: Record) -> bool:
        """Whether a record from elsewhere says more of its call than is known here."""
        asked = bool(record.get("confidences")) and not record["error"]
        return not self.serves(record["key"], confidences=asked)

    def replies(self, key: str) -> list[str]:
        """The texts of all answers that stood for a call, one after the other."""
        return [self._record(line)["reply"] for line in self._standing(key) if not line.failed]

    def answers_of(self, model: str, dataset: str) -> Iterator[dict[str, Any]]:
        """The answers to calls that a model got first for a dataset; every record is read."""
        plain = ((line, self._record(line)) for _, line in self._plain.noted())
        for line, record in chain(self._sealed.records(), plain):
            wanted = (record.get("model"), record.get("dataset")) == (model, dataset)
            if wanted and not line.failed and self._standing(record["key"])[-1] == line:
                yield record

    def _all(self, key: str) -> Sequence[Line]:
        """The lines of a call that may have stood for it, in their order."""
        plain = self._plain.lines(key)
        return [*self._sealed.lines(key), *plain] if self._sealed else plain

    def _standing(self, key: str) -> list[Line]:
        return standing(self._all(key))

    def _record(self, line: Line) -> dict[str, Any]:
        raw = self._sealed.raw(line) if line.segment > 0 else self._plain.raw(line)
        record: dict[str, Any] = json.loads(raw)
        record.pop("crc32", None)
        return record


class JournalView(Lookup):
    """The finished calls of a journal that may be in use, with what is kept beside it.

    Args:
        path: the journal.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if problem := problem_of(path):
            raise JournalError(f"{path} {problem}")
        with ExitStack() as stack:
            # First what is beside it: if it is taken in meanwhile, it is there twice and not never.
            others = [stack.enter_context(file) for file in _opened(path)]
            segments, live = stack.enter_context(snapshot(path))
            files = [*([live] if live is not None else []), *others]
            plain = PlainLines(*(file.fileno() for file in files))
            for number in range(len(files)):
                plain.index(number)
            sealed = SealedView(path, [*segments, *_sealed(path, len(segments))])
            stack.callback(sealed.close)
            super().__init__(sealed, plain)
            self._close = stack.pop_all().close

    def __enter__(self) -> JournalView:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self._close()


def _sealed(path: Path, known: int) -> Iterator[Segment]:
    """What was sealed beside a journal, numbered on from its segments."""
    for number, side in enumerate(sealed_sides(path), known + 1):
        with suppress(FileNotFoundError):  # it was taken in at this moment
            yield segment_at(side.path, side.number)._replace(number=number)


def _opened(path: Path) -> Sequence[BinaryIO]:
    """The files that are kept beside a journal, open."""
    while True:
        with ExitStack() as stack:
            try:
                files = [stack.enter_context(file.open("rb")) for file in live_sides(path)]
            except FileNotFoundError:
                continue  # it was taken in, or renamed to be
            stack.pop_all()
            return files

"""Calls of a journal, looked up by key: by its writer, and by whoever else reads it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from .index import Index, standing
from .lines import Line, event_in, lines
from .reading import check_journal, open_lines

log = logging.getLogger(__name__)


class JournalView:
    """The finished calls of a journal by their keys, and what was noted beside them, as they were
    when it was opened, whoever writes it then or later.  It leaves no trace on the disk.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        check_journal(path)
        self._open(path, open_lines(path))

    def _open(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._lines = file
        self._index = Index()
        self._events: list[Line] = []
        self._end = 0
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._lines.close()

    def __contains__(self, key: str) -> bool:
        """Whether a call is answered; a failed one is not."""
        return self.serves(key, confidences=False)

    def __len__(self) -> int:
        """How many calls are answered; every key is read."""
        return len({line.key for line in self._index if not line.failed})

    def __getitem__(self, key: str) -> dict[str, Any]:
        """The record of a call: its answer, or the last of its failures."""
        if (record := self.get(key)) is None:
            raise KeyError(key)
        return record

    def get(self, key: str) -> dict[str, Any] | None:
        """The same, or None where the call was never made."""
        stood = standing(self._index.lines(key))
        return self._record(stood[-1]) if stood else None

    def serves(self, key: str, *, confidences: bool) -> bool:
        """Whether a call is answered, and was asked with log-probabilities where wanted."""
        # Of the answers to a call one that was asked for with them always stands.
        return self._index.serves(key, confidences=confidences)

    def replies(self, key: str) -> list[str]:
        """The texts of all answers that stood for a call, one after the other."""
        stood = standing(self._index.lines(key))
        return [self._record(line)["reply"] for line in stood if not line.failed]

    def answers_of(self, model: str, dataset: str) -> Iterator[dict[str, Any]]:
        """The answers to calls that a model got first for a dataset; every record is read."""
        for line in self._index:
            if not line.failed and standing(self._index.lines(line.key or ""))[-1] == line:
                record = self._record(line)
                if (record.get("model"), record.get("dataset")) == (model, dataset):
                    yield record

    def events(self) -> Iterator[dict[str, Any]]:
        """What was noted, in order."""
        yield from filter(None, (event_in(self._raw(line)) for line in self._events))

    def _note(self, line: Line) -> None:
        if line.key == "":
            self._events.append(line)
        else:
            self._index.note(line)

    def _raw(self, line: Line) -> bytes:
        return os.pread(self._lines.fileno(), line.length, line.start)

    def _record(self, line: Line) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._raw(line))
        record.pop("crc32", None)
        return record

    def _read(self) -> None:
        """Index the lines that were not read yet, up to a torn one."""
        spoilt = []
        # With a buffer of its own: what was in one before may have been cut off since.
        with os.fdopen(os.dup(self._lines.fileno()), "rb") as f:
            for line, _ in lines(f, self._end):
                self._end = line.start + line.length
                if line.key is None:
                    spoilt.append(line.start)
                else:
                    self._note(line)
        if spoilt:
            log.warning(
                "%s: %d lines are no records, or not what was written, and are left out; "
                "the first is at byte %d",
                self.path,
                len(spoilt),
                spoilt[0],
            )

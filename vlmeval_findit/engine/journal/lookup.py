"""Calls of a journal, looked up by key: by its writer, and by whoever else reads it."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from .errors import full_disk
from .index import Index, standing
from .lines import Line, Record, event_in, lines, stored
from .reading import check_journal, open_lines
from .shards import append_to_shard, shards_of

log = logging.getLogger(__name__)


class Lookup:
    """The finished calls of a journal by their keys, and what was noted beside them.

    Args:
        path: the journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: list[BinaryIO] = []
        self._index = Index()
        self._events: list[Line] = []

    def __contains__(self, key: str) -> bool:
        """Whether a call is answered; a failed one is not."""
        return self.serves(key, confidences=False)

    def __len__(self) -> int:
        """How many calls are answered; every key is read."""
        return len({line.key for line in self._index if not line.failed})

    def __getitem__(self, key: str) -> dict[str, Any]:
        """The record of a call: its answer, or the last of its failures.

        Raises:
            KeyError: it was never made.
            JournalError: it is spoilt since the journal was opened.
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
        for line in self._index.lines(key):
            if not line.failed and (line.confidences or not confidences):
                return True
        return False

    def replies(self, key: str) -> list[str]:
        """The texts of all answers that stood for a call, one after the other."""
        return [self._record(line)["reply"] for line in self._standing(key) if not line.failed]

    def answers_of(self, model: str, dataset: str) -> Iterator[dict[str, Any]]:
        """The answers to calls that a model got first for a dataset; every record is read."""
        for line in self._index:
            if line.failed or self._standing(line.key or "")[-1] != line:
                continue
            record = self._record(line)
            if (record.get("model"), record.get("dataset")) == (model, dataset):
                yield record

    def events(self) -> Iterator[dict[str, Any]]:
        """What was noted, in order."""
        for line in self._events:
            event = event_in(self._raw(line))
            if event is not None:
                yield event

    def _note(self, line: Line) -> None:
        if line.key == "":
            self._events.append(line)
        else:
            self._index.note(line)

    def _standing(self, key: str) -> list[Line]:
        return standing(self._index.lines(key))

    def _raw(self, line: Line) -> bytes:
        return os.pread(self._files[line.source].fileno(), line.length, line.start)

    def _record(self, line: Line) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._raw(line))
        record.pop("crc32", None)
        return record

    def _read(self, f: BinaryIO) -> int:
        """Index the lines of a file; returns where the last whole one ends."""
        number, end, spoilt, first = len(self._files), 0, 0, 0
        self._files.append(f)
        for line, _ in lines(f):
            end = line.start + line.length
            if line.key is None:
                first, spoilt = first if spoilt else line.start, spoilt + 1
            else:
                self._note(line._replace(source=number) if number else line)
        if spoilt:
            log.warning(
                "%s: %d lines are no records, or not what was written, and are left out; "
                "the first is at byte %d",
                self.path,
                spoilt,
                first,
            )
        return end


class JournalView(Lookup):
    """The finished calls of a journal that may be in use, with what is kept beside it.

    It needs no lock and leaves no trace on the disk.  It shows the journal of the moment when it
    was opened, whoever writes it, then or later.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_journal(path)
        # First what is beside it: if it is merged meanwhile, it is there twice and not never.
        shards = _opened_shards(path)
        for f in (open_lines(path), *shards):
            self._read(f)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for f in self._files:
            f.close()


class JournalShard(JournalView):
    """The journal of a process that has not its lock, such as the second one of torchrun: it looks
    calls up in the journal, and keeps its own beside it, where whoever has the lock finds them.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._token = secrets.token_hex(16)

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            DiskFullError: no room.
        """
        made = [stored(record) for record in records]
        if not made:
            return
        try:
            append_to_shard(self.path, self._token, b"".join(line for _, line in made))
        except OSError as error:
            lost = sum(not record.get("error") for record, _ in made)
            raise full_disk(error, self.path).and_lost(lost) from None


def _opened_shards(path: Path) -> list[BinaryIO]:
    while True:
        with suppress(FileNotFoundError):  # it was merged, or renamed to be
            return [shard.open("rb") for shard in shards_of(path)]

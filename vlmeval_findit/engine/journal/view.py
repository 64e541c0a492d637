"""Read and follow a journal without a lock while others may write it.

A journal has one JSON object a line, with a checksum of the rest of the line. A line begins with
its key, error and ``logprobs``, so that a million lines are indexed unparsed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, Self

from ...core import open_regular
from ...protocol import SPACE_KEY
from .call_places import CallPlace, CallPlaces

log = logging.getLogger(__name__)

MOST_AT_A_TIME = 8 << 20  # bytes per read, unless one line is longer

# ``key`` names the call; ``error`` is None for an answer; ``logprobs``: they were requested.
Record = Mapping[str, Any]

_ENCODER = json.JSONEncoder(default=str)
_FIRST: Record = {"key": "", "error": None, "logprobs": False}
_HEAD = re.compile(
    rb'\{"(?:event": \{|key": "([0-9a-f]{64})", "error": (null, "logprobs": (true|false), )?)'
)
_CHECKSUM = b', "crc32": "'
_TAIL = re.compile(rb', "crc32": "[0-9a-f]{8}"\}\s*\Z')
# Around a record, as editors and copying leave it: JSON allows it, and a mark of UTF-8 begins files
_AROUND = b"\xef\xbb\xbf \t\r\n"
_LONGEST_TAIL = 32
_MANY_DAMAGED = 3  # Lines: a kill or a bad block tears one or two
_SEARCHED_AT_A_TIME = 1 << 20
_SEARCHED = 256 << 20  # Bytes of a file in which a record must be, so that it is a journal
_MADE_BY = b', "made_by": {'
# Of a reply with its coordinate space, which comes first in its record
_SPACE = re.compile(rb', "extra_records": "\{\\"findit\\": \{\\"space\\": (\{.*?\})')


class RecordState(IntEnum):
    """What a journal has of a call; a higher state also serves lower requests."""

    FAILED = 0
    ANSWERED = 1
    WITH_LOGPROBS = 2


def encode_record(record: Record) -> bytes:
    """Encode a record or an event as a line with its checksum."""
    ordered = {**_FIRST, **record} if "key" in record else record
    # A lone surrogate, which a reply may have, is no UTF-8: JSON's \udXXX keeps it.
    body = _ENCODER.encode(ordered)[:-1].encode("ascii")
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def decode_record(line: bytes) -> dict[str, Any] | None:
    """Return the record or event of a line; None if it is damaged or has none."""
    body = _body(line)
    return None if body is None else json.loads(body + b"}")


def key_and_state(line: bytes) -> tuple[str, RecordState] | None:
    """Return the key of a line ("" for an event) and its state; None if it is damaged."""
    body = _body(line)
    head = None if body is None else _HEAD.match(body)
    if head is None:
        return None
    if head[1] is None:
        return "", RecordState.ANSWERED
    answered = RecordState.WITH_LOGPROBS if head[3] == b"true" else RecordState.ANSWERED
    return head[1].decode(), answered if head[2] else RecordState.FAILED


def _body(line: bytes) -> bytes | None:
    body, _, checksum = line.strip(_AROUND).rpartition(_CHECKSUM)
    return body if checksum == b'%08x"}' % zlib.crc32(body) else None


def is_journal(f: BinaryIO) -> bool:
    """Return whether any line begins or ends as a record or event: some may be damaged.

    An empty file, and one that is only the beginning of a record, are journals, too.
    """
    f.seek(0)
    head = f.readline(200).lstrip(_AROUND)
    if len(head) < 100 and not head.endswith(b"\n"):
        whole = b'{"key": "' + b"0" * 64 + b'", "error": '
        zeros = head[:9] + re.sub(rb"[0-9a-f]", b"0", head[9:73]) + head[73:]
        return whole.startswith(zeros[: len(whole)]) or b'{"event": {'.startswith(head[:11])
    f.seek(0)
    begins_line = True
    before = b""
    while f.tell() < _SEARCHED and (part := f.readline(_SEARCHED_AT_A_TIME)):
        # A line may be longer than what is read at a time, and its checksum in two parts.
        is_head = begins_line and _HEAD.match(part.lstrip(_AROUND))
        if is_head or _TAIL.search(before[-_LONGEST_TAIL:] + part):
            return True
        begins_line = part.endswith(b"\n")
        before = part
    return False


class JournalError(ValueError):
    """A journal cannot be used."""

    lost = 0  # replies that could not be stored


class JournalCutError(JournalError):
    """Another program cut a journal off, or wrote it again, while it was open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: another program cut it off, or wrote it again, while it was in use: answers "
            "that were stored in it are gone. Put a copy in its place if there is one; the same "
            "command then asks, and pays, only the calls that it lacks"
        )


class JournalView:
    """The finished calls of a journal by key, and its events, as of when it was opened.

    Of several records of a call its first answer counts, else its last failure; an answer with
    log-probabilities replaces one without. One thread may append while another reads.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        check_journal(path)
        self._open(path)

    def _open(self, path: Path) -> None:
        self.path = path
        self._lines = open_regular(path)
        self._places = CallPlaces()
        self._events: list[dict[str, Any]] = []
        self._end = 0
        damaged, lines = self._read()
        if damaged >= _MANY_DAMAGED and damaged > lines / 2:
            self._lines.close()
            self._places.close()
            raise JournalError(
                f"{path}: {damaged:,} of its {lines:,} lines are damaged, as if another program "
                "had written it again, and their calls would be asked, and paid, once more. Put a "
                "good copy in its place, or name another journal: --journal FILE"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self._places.close()

    def __contains__(self, key: str) -> bool:
        """Return whether a call has an answer; a failure does not count."""
        return self._state(key) > RecordState.FAILED

    def failed(self, key: str) -> bool:
        """Return whether a call has a failure and no answer."""
        return self._state(key) == RecordState.FAILED

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record of a call: its answer, else its last failure, else None."""
        line = self._line(key)
        return decode_record(line) if line else None

    def _line(self, key: str) -> bytes:
        """Return the line of a call; empty if nothing is known of it.

        Raises JournalCutError if it is no longer there.
        """
        place = self._places.get(key)
        if place is None:
            return b""
        line = os.pread(self._lines.fileno(), place.length, place.start)
        head = key_and_state(line)
        if head is None or head[0] != key:
            raise JournalCutError(self.path)
        return line

    @property
    def size(self) -> int:
        """Bytes that were read: while it stays, so does everything else here."""
        return self._end

    def lines(self, keys: Iterable[str]) -> Iterator[bytes]:
        """Yield the line of each call, as it is stored; empty where nothing is known of it."""
        return map(self._line, keys)

    def makers(self, keys: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """Yield what made the answers to calls (``made_by``), with their coordinate space, once.

        Equal lines' ends are parsed once: a journal has a million answers of one run.
        """
        seen: set[tuple[bytes, bytes]] = set()
        for key in keys:
            if key not in self:
                continue
            line = self._line(key)
            begin = line.rfind(_MADE_BY)
            made_by = line[begin : line.rfind(_CHECKSUM)] if begin >= 0 else b""
            recorded = _SPACE.search(line)
            space = recorded[1] if recorded else b""
            if (made_by, space) not in seen:
                seen.add((made_by, space))
                record = decode_record(line) or {}
                yield {**(record.get("made_by") or {}), **_space_in(space)}

    def serves(self, key: str, *, logprobs: bool) -> bool:
        """Return whether a call is answered, with log-probabilities if they are requested."""
        return self._state(key) > logprobs

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records in order, replaced ones too."""
        for start, line in self._lines_from(0):
            if start >= self._end:
                return
            record = decode_record(line)
            if record is not None and "key" in record:
                yield record

    def events(self) -> Iterator[dict[str, Any]]:
        yield from (dict(event) for event in self._events)

    def _state(self, key: str) -> int:
        """Return the :class:`.RecordState` of a call, -1 if unknown."""
        place = self._places.get(key)
        return -1 if place is None else place.state

    def _lines_from(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield starts and lines; a fresh buffer, as an old buffer may hold a torn line."""
        with open(self._lines.fileno(), "rb", closefd=False) as f:
            f.seek(start)
            for line in f:
                yield start, line
                start += len(line)

    def _read(self) -> tuple[int, int]:
        """Index what was added; return how many of its lines are damaged, and how many it has."""
        damaged = []
        lines = 0
        for start, line in self._lines_from(self._end):
            head = key_and_state(line)
            if head is None and not line.endswith(b"\n"):
                break  # torn
            self._end = start + len(line)
            if not line.strip(_AROUND):
                continue
            lines += 1
            if head is None:
                damaged.append(start)
                continue
            key, state = head
            if not key:
                self._events.append((decode_record(line) or {})["event"])
                continue
            before = self._state(key)
            is_newer_failure = state == before == RecordState.FAILED
            if state > before or is_newer_failure:
                self._places.set(key, CallPlace(start, len(line), state))
        if damaged:
            what = "lines are damaged and left out"
            log.warning(
                "%s: %d %s; the first is at byte %d", self.path, len(damaged), what, damaged[0]
            )
        return len(damaged), lines


def _space_in(text: bytes) -> Mapping[str, Any]:
    """Return the space of a reply, by its name in identities; nothing if it recorded none."""
    return {SPACE_KEY: json.loads(json.loads(b'"%s"' % text))} if text else {}


def check_journal(path: Path) -> None:
    """Raise JournalError for a file that is no journal; a missing one is fine."""
    if not path.exists():
        return
    if not path.is_file():
        raise JournalError(f"{path} is not a regular file. Name another journal: --journal FILE")
    with open_regular(path) as f:
        if not is_journal(f):
            raise JournalError(
                f"{path} is not a journal of this version. Name another (--journal FILE), or move "
                "it away."
            )


class JournalTail:
    """Follows a journal: what was added since the last read, ``left`` bytes short of its end.

    The journal may not exist yet.
    """

    def __init__(self, path: Path, most: int = MOST_AT_A_TIME) -> None:
        self.path = path
        self.left = 0
        self._most = most
        self._read = 0  # bytes
        self._file: tuple[int, int] | None = None  # device and inode of the file that was read

    def is_another(self) -> bool:
        """Return whether the journal was replaced or truncated; the next read starts over."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        goes_on = self._file == (stat.st_dev, stat.st_ino) and stat.st_size >= self._read
        if goes_on or not self._read:
            return False
        self._read = 0
        return True

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the new complete records; JournalError if the file is no journal."""
        if not self._read:
            check_journal(self.path)
        try:
            f = open_regular(self.path)
        except FileNotFoundError:
            return
        with f:
            stat = os.fstat(f.fileno())
            self._file = (stat.st_dev, stat.st_ino)
            end = self._read + self._most
            f.seek(self._read)
            while self._read < end and (line := f.readline()).endswith(b"\n"):
                self._read += len(line)
                record = decode_record(line)
                if record is not None and "key" in record:
                    yield record
            self.left = max(stat.st_size - self._read, 0)

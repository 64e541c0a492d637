"""The lines of a journal: one JSON object each, with a checksum of the rest of the line."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple

from ..calls import key_of

MAX_LINE = (1 << 30) - 1
"""Bytes of a line at most: a reply has up to 64 MiB, six times as much with JSON's escapes."""

Record = Mapping[str, Any]  # ``key`` names the call; ``error`` is None for an answer

_FIELDS = frozenset(
    ("key", "model", "settings", "prompt_sha256", "image_sha256", "reply", "extra_records", "error")
)
_HEADS = (b'{"key": "' + b"0" * 64 + b'", "model": "', b'{"event": {')
_ENCODER = json.JSONEncoder(default=str)
_ANSWER_END = re.compile(rb', "error": null(, "confidences": true)?, "crc32": "([0-9a-f]{8})"}\n\Z')
_LONGEST_END = 70


class State(IntEnum):
    """What the journal has of a call; a higher state also serves lower wishes."""

    FAILED = 0
    ANSWERED = 1
    WITH_LOGPROBS = 2


class Line(NamedTuple):
    """One line of a file; start and length in bytes."""

    start: int
    length: int
    key: str | None  # "" for an event, None if it is damaged or no record
    state: State = State.ANSWERED


def as_line(record: Record) -> bytes:
    """Encode a record or an event with its checksum."""
    body = _body(record)
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def _body(record: Record) -> bytes:
    # A lone surrogate, which a reply may have, is no UTF-8: JSON's \udXXX keeps it.
    return _ENCODER.encode(record)[:-1].encode("ascii")


def record_in(raw: bytes) -> dict[str, Any] | None:
    """Return the record or event of a line, or None; version 0.1 has no checksum, only a key."""
    found = _object(raw)
    if (said := found.pop("crc32", None)) is None:
        if not _is_record(found):
            return None
        parts = (found[name] for name in ("model", "settings", "prompt_sha256", "image_sha256"))
        return found if key_of(*parts) == found["key"] else None
    written, _, _ = raw.rpartition(b', "crc32": "')
    # Tools like jq write the same record with other whitespace.
    fits = any(said == f"{zlib.crc32(body):08x}" for body in (written, _body(found)))
    return found if fits and ("event" in found or _is_record(found)) else None


def plain_record(raw: bytes) -> dict[str, Any] | None:
    """Return the record of a line, checked only for its fields."""
    found = _object(raw)
    return found if _is_record(found) else None


def _is_record(found: Record) -> bool:
    return found.keys() >= _FIELDS and isinstance(found["key"], str)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def lines(f: BinaryIO, start: int = 0) -> Iterator[tuple[Line, bytes]]:
    """Yield the lines from byte ``start`` on, each with at most ``MAX_LINE`` of its bytes."""
    f.seek(start)
    while raw := f.readline(MAX_LINE):
        length, ended = len(raw), raw.endswith(b"\n")
        if not ended and length == MAX_LINE:
            raw = b""
            while not ended and (piece := f.readline(1 << 20)):
                length, ended = length + len(piece), piece.endswith(b"\n")
        line = _line(raw, start, length)
        if not ended and line.key is None:
            return  # torn
        yield line, raw
        start += length


def _line(raw: bytes, start: int, length: int) -> Line:
    # Our own answers are not parsed, so that a million lines open in seconds.
    end = _ANSWER_END.search(raw, max(0, len(raw) - _LONGEST_END))
    if end and raw.startswith(b'{"key": "'):
        written = raw[: end.start(2) - len(b', "crc32": "')]
        if int(end[2], 16) == zlib.crc32(written):
            state = State.WITH_LOGPROBS if end[1] else State.ANSWERED
            return Line(start, length, raw[9:73].decode(), state)
    if (record := record_in(raw)) is None:
        return Line(start, length, None)
    answered = State.WITH_LOGPROBS if record.get("confidences") else State.ANSWERED
    state = State.FAILED if record.get("error") else answered
    return Line(start, length, record.get("key", ""), state)


def is_journal(f: BinaryIO) -> bool:
    """Whether the first line is a record, an event, or a torn beginning of one."""
    head = f.readline(len(_HEADS[0]))
    zeros = head[:9] + re.sub(rb"[0-9a-f]", b"0", head[9:73]) + head[73:]
    if any(wanted.startswith(zeros[: len(wanted)]) for wanted in _HEADS):
        return True
    return head.startswith(b"{") and plain_record(head + f.readline(MAX_LINE)) is not None

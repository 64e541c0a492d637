"""The lines of a journal: one JSON object each, with a checksum over what stands before it."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

from ..calls import begin_key, key_fits

MAX_LINE = 256 << 20
"""Bytes of a line at most: a server's reply has 64 MiB, which JSON may make four times as long."""

Record = Mapping[str, Any]
"""One line; ``key`` names the call, ``error`` is None for an answer."""

_FIELDS = frozenset(
    ("key", "model", "settings", "prompt_sha256", "image_sha256", "reply", "extra_records", "error")
)
_HEADS = (b'{"key": "' + b"0" * 64 + b'", "model": "', b'{"event": {')

# The parts of a line that :func:`.outputs.record_of` writes, for those that need not be parsed.
_MIDDLE = re.compile(
    rb', "dataset": "(?:[^"\\]|\\.)*", "row": -?\d+, "prompt_sha256": "([0-9a-f]{64})"'
    rb', "image_sha256": \[((?:"[0-9a-f]{64}"(?:, )?)*)\], "reply": "'
)
_END = re.compile(rb', "error": null(, "confidences": true)?(, "crc32": "[0-9a-f]{8}"}\n)\Z')
_LONGEST_END = 70


class Line(NamedTuple):
    """One line of a file."""

    start: int
    length: int
    """In bytes, as the start is."""
    key: str | None
    """Of its call; "" of an event, None of a line that is no record, or not what was written."""
    failed: bool = False
    confidences: bool = False
    """Log-probabilities were asked for."""


def stored(record: Record) -> tuple[Record, bytes]:
    """A record and its line; of one that would be too long to be read again, a failure."""
    line = as_line(record)
    if len(line) > MAX_LINE:
        error = f"the reply has {len(line):,} bytes, more than the {MAX_LINE:,} that are kept"
        record = {**record, "reply": "", "extra_records": None, "error": error}
        line = as_line(record)
    return record, line


def as_line(record: Record) -> bytes:
    """A record, or an event, with its checksum."""
    body = _body(record)
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def line_of(record: Record, start: int, length: int) -> Line:
    """Where the line of a record lies."""
    failed, confidences = bool(record["error"]), bool(record.get("confidences"))
    return Line(start, length, record["key"], failed, confidences)


def _body(record: Record) -> bytes:
    # Half a surrogate pair, which a model may say, is no UTF-8: as \udXXX it stays what it was.
    return json.dumps(record, ensure_ascii=True, default=str)[:-1].encode("ascii")


def record_in(raw: bytes) -> dict[str, Any] | None:
    """The record of a line; None where it is none, or is not what was written.

    Lines of versions that wrote no checksum are held against their keys alone.
    """
    record = _checked(plain_record(raw), raw)
    return record if record and key_fits(record) else None


def event_in(raw: bytes) -> dict[str, Any] | None:
    """The event of a line; None where it is none, or is not what was written."""
    event = _checked(_object(raw), raw) if raw.startswith(_HEADS[1]) else None
    return event["event"] if event else None


def plain_record(raw: bytes) -> dict[str, Any] | None:
    """The record of a line as it stands, checked for nothing but its shape."""
    found = _object(raw)
    is_record = found and found.keys() >= _FIELDS and isinstance(found["key"], str)
    return found if is_record else None


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _checked(found: dict[str, Any] | None, raw: bytes) -> dict[str, Any] | None:
    """The object of a line without its checksum, if that is right."""
    if found is not None and (said := found.pop("crc32", None)) is not None:
        written, _, _ = raw.rpartition(b', "crc32": "')
        # A tool like jq writes the same record with other blanks.
        if all(said != f"{zlib.crc32(body):08x}" for body in (written, _body(found))):
            return None
    return found


def _quickly(raw: bytes) -> tuple[bool] | None:
    """Whether log-probabilities were asked for, of the line of an answer that is whole.

    None where only parsing it can tell.  A journal of a million lines is opened by this.
    """
    end = _END.search(raw, max(0, len(raw) - _LONGEST_END))
    settled = raw.find(b', "dataset": "', 75)
    middle = _MIDDLE.match(raw, settled) if end and settled > 0 else None
    if end is None or middle is None:
        return None
    begun = _begun(raw[75:settled])
    if begun is None or b"%08x" % zlib.crc32(raw[: end.start(2)]) != raw[-11:-3]:
        return None
    digest = begun.copy()
    digest.update(b',"%s",[%s]]' % (middle[1], middle[2].replace(b", ", b",")))
    fits = raw.startswith(b'{"key": "') and digest.hexdigest().encode() == raw[9:73]
    return (end[1] is not None,) if fits else None


@lru_cache(256)
def _begun(shared: bytes) -> hashlib._Hash | None:
    """The beginning of the keys of all calls of a model and its settings, as a line has them."""
    found = _object(b"{%s}" % shared)
    if found is None or set(found) != {"model", "settings"}:
        return None
    return begin_key(found["model"], found["settings"])


def lines(f: BinaryIO, start: int = 0) -> Iterator[tuple[Line, bytes]]:
    """The lines of a file from a byte on, each with its bytes: one at a time in memory, and of none
    more than ``MAX_LINE`` bytes.  A last line without an end is given if it is whole.
    """
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
    if quick := _quickly(raw):
        return Line(start, length, raw[9:73].decode(), False, *quick)
    if event_in(raw) is not None:
        return Line(start, length, "")
    record = record_in(raw)
    return Line(start, length, None) if record is None else line_of(record, start, length)


def is_journal(f: BinaryIO) -> bool:
    """Whether the first line is a record, an event, or the beginning of one that a crash tore."""
    head = f.readline(len(_HEADS[0]))
    zeros = head[:9] + re.sub(rb"[0-9a-f]", b"0", head[9:73]) + head[73:]
    if any(wanted.startswith(zeros[: len(wanted)]) for wanted in _HEADS):
        return True
    return head.startswith(b"{") and plain_record(head + f.readline(MAX_LINE)) is not None

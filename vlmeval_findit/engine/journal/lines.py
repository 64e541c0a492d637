"""The lines of a journal: one JSON object each, with a checksum over what stands before it."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..calls import key_fits

MAX_LINE = 256 << 20
"""Bytes of a line at most: a server's reply has 64 MiB, which JSON may make four times as long."""

Record = Mapping[str, Any]
"""One line; ``key`` names the call, ``error`` is None for an answer."""

_CHECKED = ', "crc32": "'
_FIELDS = frozenset(
    ("key", "model", "settings", "prompt_sha256", "image_sha256", "reply", "extra_records", "error")
)
_HEAD = b'{"key": "' + b"0" * 64 + b'", "model": "'


def kept(record: Record) -> tuple[Record, bytes]:
    """A record and its line; of one that would be too long to be read again, a failure."""
    line = as_line(record)
    if len(line) > MAX_LINE:
        error = f"the reply has {len(line):,} bytes, more than the {MAX_LINE:,} that are kept"
        record = {**record, "reply": "", "extra_records": None, "error": error}
        line = as_line(record)
    return record, line


def as_line(record: Record) -> bytes:
    """A record with its checksum."""
    body = _body(record)
    return b'%s%s%08x"}\n' % (body, _CHECKED.encode(), zlib.crc32(body))


def _body(record: Record) -> bytes:
    # Half a surrogate pair, which a model may say, is no UTF-8: as \udXXX it stays what it was.
    return json.dumps(record, ensure_ascii=True, default=str)[:-1].encode("ascii")


def record_in(raw: bytes) -> dict[str, Any] | None:
    """The record of a line; None where it is none, or is not what was written.

    Lines of versions that wrote no checksum are held against their keys alone.
    """
    record = plain_record(raw)
    if record is None:
        return None
    said = record.pop("crc32", None)
    if said is not None and not _sum_fits(raw, record, said):
        return None
    return record if key_fits(record) else None


def plain_record(raw: bytes) -> dict[str, Any] | None:
    """The record of a line as it stands, checked for nothing but its shape."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(record, dict) and record.keys() >= _FIELDS
    return record if whole and isinstance(record["key"], str) else None


def _sum_fits(raw: bytes, record: Record, said: object) -> bool:
    written, _, _ = raw.rpartition(_CHECKED.encode())
    # A tool like jq writes the same record with other blanks.
    return any(said == f"{zlib.crc32(body):08x}" for body in (written, _body(record)))


class Line(NamedTuple):
    """One line of a file: where it begins, how long it is, and its record where it is one."""

    start: int
    length: int
    ended: bool
    record: dict[str, Any] | None


def lines(f: BinaryIO) -> Iterator[Line]:
    """The lines of a file, one at a time in memory, and of none more than ``MAX_LINE`` bytes."""
    start = 0
    while raw := f.readline(MAX_LINE):
        length, ended = len(raw), raw.endswith(b"\n")
        if ended or length < MAX_LINE:
            record = record_in(raw)
        else:
            record = None
            while not ended and (piece := f.readline(1 << 20)):
                length, ended = length + len(piece), piece.endswith(b"\n")
        del raw
        yield Line(start, length, ended, record)
        start += length


def problem_of(path: Path) -> str | None:
    """Why a file is no journal and must not be written to; None where it is one, or is not there.

    A journal's first line is a record, or the beginning of one that a crash tore off.
    """
    if not path.exists():
        return None
    if not path.is_file():
        return "is no regular file"
    with path.open("rb") as f:
        head = f.read(len(_HEAD))
        if not head or _begins_a_record(head):
            return None
        if not head.startswith(b"{"):
            return "does not begin with a record of a journal"
        f.seek(0)
        return (
            None
            if plain_record(f.readline(MAX_LINE))
            else "does not begin with a record of a journal"
        )


def _begins_a_record(head: bytes) -> bool:
    key = slice(9, 73)
    plain = head[: key.start] + re.sub(rb"[0-9a-f]", b"0", head[key]) + head[key.stop :]
    return _HEAD.startswith(plain)

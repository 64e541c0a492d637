"""The records of a journal: one JSON object a line, with a checksum of the rest of the line.

A line begins with its key, error and ``logprobs``, so that a million lines are indexed unparsed.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, BinaryIO

Record = Mapping[str, Any]
"""``key`` names the call; ``error`` is None for an answer; ``logprobs``: they were requested."""

_ENCODER = json.JSONEncoder(default=str)
_FIRST: Record = {"key": "", "error": None, "logprobs": False}
_HEAD = re.compile(
    rb'\{"(?:event": \{|key": "([0-9a-f]{64})", "error": (null, "logprobs": (true|false), )?)'
)


class RecordState(IntEnum):
    """What a journal has of a call; a higher state also serves lower requests."""

    FAILED = 0
    ANSWERED = 1
    WITH_LOGPROBS = 2


def encode(record: Record) -> bytes:
    """Encode a record or an event as a line with its checksum."""
    ordered = {**_FIRST, **record} if "key" in record else record
    # A lone surrogate, which a reply may have, is no UTF-8: JSON's \udXXX keeps it.
    body = _ENCODER.encode(ordered)[:-1].encode("ascii")
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the record or event of a line; None if it is damaged."""
    body = _body(line)
    return None if body is None else json.loads(body + b"}")


def key_and_state(line: bytes) -> tuple[str, RecordState] | None:
    """Return the key of a line ("" for an event) and its state; None if it is damaged."""
    body = _body(line)
    if body is None or (head := _HEAD.match(body)) is None:
        return None
    if head[1] is None:
        return "", RecordState.ANSWERED
    answered = RecordState.WITH_LOGPROBS if head[3] == b"true" else RecordState.ANSWERED
    return head[1].decode(), answered if head[2] else RecordState.FAILED


def _body(line: bytes) -> bytes | None:
    body, _, checksum = line.rpartition(b', "crc32": "')
    return body if checksum.rstrip(b"\n") == b'%08x"}' % zlib.crc32(body) else None


def is_journal(f: BinaryIO) -> bool:
    """Return whether the first line is a record, an event, or a torn beginning of one."""
    head = f.readline(200)
    if len(head) < 100 and not head.endswith(b"\n"):
        whole = b'{"key": "' + b"0" * 64 + b'", "error": '
        zeros = head[:9] + re.sub(rb"[0-9a-f]", b"0", head[9:73]) + head[73:]
        return whole.startswith(zeros[: len(whole)]) or b'{"event": {'.startswith(head[:11])
    return _HEAD.match(head) is not None

"""A reply's record as text: the column ``extra_records`` of journals and prediction files.

Only here is a :class:`.ReplyRecord` written as JSON or read in it. Whoever has the record hands it
on; whoever opened a file, or got something of a model of VLMEvalKit's, reads it here, once.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from ..core import (
    EqualKeysError,
    MisplacedError,
    TextError,
    error_line,
    parse_json,
    quoted_value,
    validate,
)
from ..protocol import NOT_TIMED, NOTHING_RECORDED, CallResult, CallTime, ReplyRecord

_KEY = "findit"  # Of our record in the column: other programs' keys may stand beside it


class RecordError(ValueError):
    """Our record in ``extra_records`` is damaged; the message says where in it, and how."""


# --- writing --------------------------------------------------------------------------------------


def record_text(record: ReplyRecord, *, escapes: bool = True) -> str:
    """Write a record for the column; :func:`parse_record` reads it back.

    ``escapes``: of characters beyond ASCII, so that any program can read it.
    """
    return json.dumps({_KEY: _values(record)}, default=dict, ensure_ascii=escapes)


def stored_record(answer: CallResult) -> Any:
    """Return what a journal has of an answer's record: text, other JSON, or None for nothing.

    What a model of VLMEvalKit's recorded stays as it is, and never costs the reply.
    """
    if answer.foreign is not None:
        return _as_json_value(answer.foreign)
    return None if answer.record == NOTHING_RECORDED else record_text(answer.record)


def failed_column(value: object, why: str) -> str:
    """Return the column of a failed call, with its error unless it is there."""
    ours = _values(parse_record(value).with_error(why))
    return json.dumps({**_object_in(value), _KEY: ours}, default=dict)


def fitting_column(text: str, length: int) -> str:
    """Shorten the column to a length: without log-probabilities, thought, or the record.

    What holds no record of ours stays.
    """
    record = _object_in(text).get(_KEY)
    if len(text) <= length or not isinstance(record, dict) or not record:
        return text
    for part in ("logprobs", "thought"):
        if len(text) > length and record.pop(part, None) is not None:
            text = json.dumps({_KEY: record})
    # A record that is cut off cannot be read.
    return text if len(text) <= length else ""


def _values(record: ReplyRecord) -> dict[str, Any]:
    """Return what is known of a record by its names in files."""
    values = {_stored_name(name): getattr(record, name) for name in _FIELDS}
    if record.token_logprobs is not None:
        values["logprobs"] = record.token_logprobs.as_json()
    return {name: value for name, value in values.items() if value}


def _as_json_value(value: Any) -> Any:
    """Convert what another program recorded to JSON values."""
    if isinstance(value, str):
        return value
    try:
        return json.loads(json.dumps(value, default=str), parse_constant=str)
    except (TypeError, ValueError, RecursionError) as error:
        return f"not JSON: {error_line(error)}"


# --- reading --------------------------------------------------------------------------------------


def parse_record(value: object) -> ReplyRecord:
    """Read our record in ``extra_records``: JSON, as text or as its object.

    Raises:
        RecordError: a value has another type than :class:`.ReplyRecord` says.

    >>> parse_record('{"findit": {"thought": 7}}')
    Traceback (most recent call last):
    vlmeval_findit.storage.reply_records.RecordError: findit.thought: 7 should be a text
    """
    extra = _object_in(value)
    if not extra and isinstance(value, str) and _BEGINS_RECORD.match(value):
        raise RecordError("FindIt's record is not JSON: is it cut off?")
    record = extra.get(_KEY)
    if record is None:
        return NOTHING_RECORDED
    if not isinstance(record, dict):
        raise RecordError(f"{_KEY} should be a JSON object, not {quoted_value(record, 40)}")
    filled = {name: each for name, each in record.items() if each is not None}
    if not filled:
        return NOTHING_RECORDED
    if "logprobs" in filled:
        filled["token_logprobs"] = filled.pop("logprobs")
    try:
        return validate(ReplyRecord, filled, _stored_name)
    except MisplacedError as error:
        raise RecordError(error.below(_KEY)) from None


_BEGINS_RECORD = re.compile(rf'\s*\{{\s*"{_KEY}"')


def parse_call_time(value: object) -> CallTime:
    """Read the time of a call: JSON, as text or as its object; nothing if there is none.

    Raises:
        RecordError: a value has another type than :class:`.CallTime` says.

    >>> parse_call_time('{"seconds": 0.5}').seconds
    0.5
    """
    if value in (None, ""):
        return NOT_TIMED
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except TextError:
            raise RecordError(f"{quoted_value(value, 40)} is not JSON") from None
    try:
        return validate(CallTime, value)
    except MisplacedError as error:
        raise RecordError(error.below()) from None


def _stored_name(name: str) -> str:
    return "logprobs" if name == "token_logprobs" else name


_FIELDS = tuple(field.name for field in fields(ReplyRecord))


def _object_in(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except EqualKeysError as error:
            raise RecordError(str(error)) from None
        except TextError:
            return {}
    return value if isinstance(value, dict) else {}

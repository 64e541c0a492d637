"""Take a reply out of what programs store in its place: messages, wrappers of other harnesses."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class NotAReplyError(ValueError):
    """A value that has a reply somewhere inside, or none; the message ends with what to store."""


class ReplyText(NamedTuple):
    """The text of a reply, and the thought that was stored apart from it."""

    text: str
    thought: str = ""


# --- messages -------------------------------------------------------------------------------------

_THOUGHTS = ("reasoning_content", "reasoning")  # Keys of a message
_THOUGHT_PARTS = ("thinking", "reasoning")  # Types of a part, and its key
_TEXT_PARTS = ("text", "output_text")


def messages_in(value: object) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a chat, or the only one; empty for anything else.

    >>> messages_in([{"role": "user", "content": "hm"}])
    [{'role': 'user', 'content': 'hm'}]
    >>> messages_in([[1, 2]])
    []
    """
    messages = [value] if isinstance(value, Mapping) else value
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return []
    is_chat = all(isinstance(each, Mapping) and "content" in each for each in messages)
    return list(messages) if is_chat else []


def is_assistant(message: Mapping[str, Any]) -> bool:
    """Return whether the model said it."""
    return bool(message.get("role", "assistant") == "assistant")


def last_answer(messages: Sequence[Mapping[str, Any]]) -> ReplyText:
    """Return the text of the assistant's last message; NotAReplyError if there is none.

    >>> last_answer([{"role": "assistant", "content": [{"type": "text", "text": "[]"}]}])
    ReplyText(text='[]', thought='')
    """
    for message in filter(is_assistant, reversed(messages)):
        text, thought = _content(message["content"])
        stated = (message.get(key) for key in _THOUGHTS)
        return ReplyText(text, next((s for s in stated if s and isinstance(s, str)), thought))
    raise NotAReplyError(f"no message of the assistant among {len(messages)}")


def _content(content: object) -> ReplyText:
    if content is None or isinstance(content, str):
        return ReplyText(content or "")
    if not isinstance(content, Sequence):
        raise NotAReplyError(f"content is {type(content).__name__}: neither a text nor a list")
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        kind, text = _part(part)
        (thoughts if kind in _THOUGHT_PARTS else texts).append(text)
    return ReplyText("".join(texts), "".join(thoughts))


def _part(part: object) -> tuple[str, str]:
    """Return the type of a part of a content, and its text."""
    if isinstance(part, str):
        return "text", part
    if isinstance(part, Mapping):
        kind = part.get("type", "text")
        text = part.get(kind) if kind in _THOUGHT_PARTS else part.get("text")
        if kind in _THOUGHT_PARTS and isinstance(text, Sequence) and not isinstance(text, str):
            text = _content(text).text
        if kind in (*_TEXT_PARTS, *_THOUGHT_PARTS) and isinstance(text, str):
            return kind, text
        raise NotAReplyError(f"a part of content has type {kind!r}, which is no text")
    raise NotAReplyError(f"a part of content is {type(part).__name__}, which is no text")


# --- values of a prediction file ------------------------------------------------------------------

_RESPONSES = {  # Whole responses of servers, and where their reply is
    "choices": "choices[0].message.content",
    "candidates": "candidates[0].content.parts[0].text",
}
# Keys under which other programs keep the text of a reply
_WRAPPERS = (
    *("prediction", "text", "response", "output", "output_text", "answer", "completion"),
    *("generated_text", "message", "result", "resps", "filtered_resps", "content"),
)
_HOSTS = {"prediction", "extra_records"}  # Keys of VLMEvalKit's structured records


def host_record(value: object) -> Mapping[str, Any] | None:
    """Return the reply and record that VLMEvalKit put into one cell, or None.

    ``--api-mode`` stores the object; files in which one call failed store Python's spelling of it.

    >>> host_record("{'prediction': '[]', 'extra_records': '{}'}")
    {'prediction': '[]', 'extra_records': '{}'}
    """
    if isinstance(value, str):
        begins = value.lstrip()[:1] == "{" and "extra_records" in value and "prediction" in value
        value = _spelt(value) if begins else None
        is_record = isinstance(value, dict) and value.keys() == _HOSTS
    else:
        is_record = isinstance(value, dict) and "prediction" in value and {*value} <= _HOSTS
    return value if is_record else None  # type: ignore[return-value]


def _spelt(text: str) -> object:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def stored_reply(value: object) -> ReplyText:
    """Return the reply in a parsed JSON value: a message's text, or the value's own JSON text.

    Raises:
        NotAReplyError: the reply is a text inside the value, which was not unpacked.

    >>> stored_reply({"role": "assistant", "content": "[]"}).text
    '[]'
    >>> stored_reply({"detections": [{"bbox": [1, 2, 3, 4]}]}).text
    '{"detections": [{"bbox": [1, 2, 3, 4]}]}'
    """
    if isinstance(value, str):
        return ReplyText(value)
    if value is None or value != value:  # pandas' NaN
        return ReplyText("")
    messages = messages_in(value)
    if messages and any("role" in message for message in messages):
        return last_answer(messages)
    if _is_parts(value):
        return _content(value)
    if inside := _reply_inside(value):
        raise NotAReplyError(f"{inside}: store that text itself, or the JSON of all as text")
    return ReplyText(json.dumps(value, ensure_ascii=False, default=str))


def _is_parts(value: object) -> bool:
    """Return whether a value is the content of a message: parts with their types."""
    if not isinstance(value, list) or not value:
        return False
    known = (*_TEXT_PARTS, *_THOUGHT_PARTS)
    return all(isinstance(part, dict) and part.get("type") in known for part in value)


def _reply_inside(value: object) -> str:
    """Name the text inside a value that may be the reply; "" where the value itself is."""
    if isinstance(value, list):
        is_texts = bool(value) and all(isinstance(item, str) for item in value)
        return f"a list of {len(value)} texts" if is_texts and not _numbers(value) else ""
    if not isinstance(value, dict):
        return ""
    for key, place in _RESPONSES.items():
        if isinstance(value.get(key), list):
            return f"a server's whole response, whose reply is {place}"
    if _states_numbers(value):
        return ""
    names = (key for key in _WRAPPERS if _is_text(value.get(key)))
    key = next(names, "")
    return f"an object with a text under {key!r}" if key else ""


def _is_text(value: object) -> bool:
    if isinstance(value, list) and value:
        return all(map(_is_text, value))
    return isinstance(value, str) or bool(messages_in(value))


def _states_numbers(value: object) -> bool:
    """Return whether a value has numbers as boxes have them: in a list, or four by name."""
    if isinstance(value, list):
        return _numbers(value) >= 2 or any(map(_states_numbers, value))
    if isinstance(value, dict):
        return _numbers([*value.values()]) >= 4 or any(map(_states_numbers, value.values()))
    return False


def _numbers(values: Sequence[object]) -> int:
    """Count the numbers among values, those in quotes too."""
    return sum(_is_number(value) for value in values)


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True

"""Take a reply out of what programs store in its place: messages, wrappers of other harnesses."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core import quoted_value


class NotAReplyError(ValueError):
    """A value that has a reply somewhere inside, or none; the message ends with what to store."""


class ReplyText(NamedTuple):
    """The text of a reply, and the thought that was stored apart from it."""

    text: str
    thought: str = ""


# --- messages -------------------------------------------------------------------------------------

# Keys of a message with its thought: those of servers and DeepSeek, of OpenRouter, of Ollama,
# and of LiteLLM
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
# Where an object in one of them has its words
_OF_THOUGHT = ("text", "summary", "thinking", "content", "reasoning")

# Keys of a message that have no text of the reply
_WITHOUT_TEXT = frozenset(
    "role name id type object model status tool_calls function_call annotations audio images "
    "citations".split()
)


class _PartKind(NamedTuple):
    """Where a part of a content has its words, by the first key that is there."""

    keys: tuple[str, ...]  # Empty: it has none
    is_thought: bool = False


_PARTS: Mapping[str, _PartKind] = {
    "text": _PartKind(("text",)),
    "output_text": _PartKind(("text",)),
    "refusal": _PartKind(("refusal",)),
    "thinking": _PartKind(("thinking",), is_thought=True),
    # Databricks has a summary
    "reasoning": _PartKind(("reasoning", "text", "summary", "content"), is_thought=True),
    "summary_text": _PartKind(("text",)),
    "reasoning_text": _PartKind(("text",)),
    "redacted_thinking": _PartKind(()),
    "reference": _PartKind(()),  # Mistral: numbers of sources
    "tool_use": _PartKind(()),
}


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
    """Return whether a message is the model's."""
    return bool(message.get("role", "assistant") == "assistant")


def last_answer(messages: Sequence[Mapping[str, Any]]) -> ReplyText:
    """Return the text of the assistant's last message; NotAReplyError if there is none.

    >>> last_answer([{"role": "assistant", "content": [{"type": "text", "text": "[]"}]}])
    ReplyText(text='[]', thought='')
    """
    for message in filter(is_assistant, reversed(messages)):
        return answer_in(message)
    raise NotAReplyError(f"none of the {len(messages)} messages is the assistant's")


def answer_in(message: Mapping[str, Any]) -> ReplyText:
    """Return the text of a message, and its thought; without a text, its refusal.

    Raises:
        NotAReplyError: its content has an unknown shape.

    >>> answer_in({"content": None, "refusal": "I cannot identify people."}).text
    'I cannot identify people.'
    """
    text, thought = _content(message.get("content"))
    refusal = message.get("refusal")
    if not text.strip() and isinstance(refusal, str):
        text = refusal or text
    return ReplyText(text, thought_in(message) or thought)


def thought_in(message: Mapping[str, Any]) -> str:
    """Return the thought that a message has beside its content; "" if there is none.

    >>> thought_in({"reasoning_details": [{"text": "a red "}, {"summary": "box"}]})
    'a red box'
    """
    thoughts = (_thought(message.get(key)) for key in _THOUGHTS)
    return next((thought for thought in thoughts if thought.strip()), "")


def _thought(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        words = (_thought(value.get(key)) for key in _OF_THOUGHT)
        return next(filter(None, words), "")
    return "".join(map(_thought, value)) if isinstance(value, list) else ""


def texts_elsewhere(message: Mapping[str, Any]) -> list[str]:
    """Return the keys of a message under which nobody looks, though there are words.

    >>> texts_elsewhere({"content": "", "id": "msg_1", "answer": {"final": "a red box"}})
    ['answer']
    """
    read = {"content", "refusal", *_THOUGHTS, *_WITHOUT_TEXT}
    return [key for key, value in message.items() if key not in read and _has_words(value)]


def _has_words(value: object) -> bool:
    """Return whether there is a text that is more than an id or a name."""
    if isinstance(value, str):
        return len(value.split()) > 1 or "[" in value or "{" in value
    inner = value.values() if isinstance(value, Mapping) else value
    return isinstance(inner, Iterable) and any(map(_has_words, inner))


def tool_calls_in(message: Mapping[str, Any]) -> list[Any]:
    """Return the calls of tools in a message, as the service states them."""
    listed = message.get("tool_calls")
    calls = [*listed] if isinstance(listed, list) else []
    if message.get("function_call"):
        calls.append(message["function_call"])
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    objects = [part for part in parts if isinstance(part, Mapping)]
    return calls + [part for part in objects if part.get("type") == "tool_use"]


def _content(content: object) -> ReplyText:
    if content is None or isinstance(content, str):
        return ReplyText(content or "")
    if not isinstance(content, Sequence):
        raise NotAReplyError(f"the content is {_shape(content)}: neither text nor a list")
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        kind, text = _part(part)
        (thoughts if kind.is_thought else texts).append(text)
    return ReplyText("".join(texts), "".join(thoughts))


def _part(part: object) -> tuple[_PartKind, str]:
    """Return the kind of a part of a content, and its text."""
    if isinstance(part, str):
        return _PARTS["text"], part
    if not isinstance(part, Mapping):
        raise NotAReplyError(f"a part of the content is {_shape(part)}, which is not text")
    name = part.get("type", "text")
    kind = _PARTS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise NotAReplyError(
            f"a part of the content has type {quoted_value(name, 40)}, which is not text"
        )
    if not kind.keys:
        return kind, ""
    key = next((key for key in kind.keys if part.get(key) is not None), kind.keys[0])
    text = part.get(key)
    if kind.is_thought and isinstance(text, Sequence) and not isinstance(text, str):
        text = _content(text).text
    if not isinstance(text, str):
        where = f"a part of the content has type {name!r}"
        raise NotAReplyError(f"{where}, and its {key} is {_shape(text)}")
    return kind, text


def _shape(value: object) -> str:
    """Name the type of a JSON value; of another, its class."""
    if value is None:
        return "missing or null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    names |= {dict: "an object", list: "a list"}
    return names.get(type(value), type(value).__name__)


# --- values of a prediction file ------------------------------------------------------------------

_RESPONSES = {  # Whole responses of servers, and where their reply is
    "choices": "choices[0].message.content",
    "candidates": "candidates[0].content.parts[0].text",
}
# Keys under which other programs keep the text of a reply
_WRAPPERS = (
    "prediction",
    "text",
    "response",
    "output",
    "output_text",
    "answer",
    "completion",
    "generated_text",
    "message",
    "result",
    "resps",
    "filtered_resps",
    "content",
)
_HOSTS = {"prediction", "extra_records"}  # Keys of VLMEvalKit's structured records


def host_record(value: object) -> Mapping[str, Any] | None:
    """Return the reply and record that VLMEvalKit put into one cell, or None.

    ``--api-mode`` stores the object; where a call failed, a file stores Python's spelling of it.

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
    """Return the reply in a parsed JSON value: a message's text, or the value as JSON text.

    Raises:
        NotAReplyError: the reply is a text inside the value, which was not unpacked; or the value
            is a number, which a program made of a text.

    >>> stored_reply({"role": "assistant", "content": "[]"}).text
    '[]'
    >>> stored_reply({"detections": [{"bbox": [1, 2, 3, 4]}]}).text
    '{"detections": [{"bbox": [1, 2, 3, 4]}]}'
    """
    if isinstance(value, str):
        return ReplyText(value)
    if is_no_reply(value):
        return ReplyText("")
    if not isinstance(value, dict | list):
        raise NotAReplyError(
            f"{quoted_value(value)} is no text: store the reply as the text that it was"
        )
    messages = messages_in(value)
    if messages and any("role" in message for message in messages):
        return last_answer(messages)
    if _is_parts(value):
        return _content(value)
    inside = _reply_inside(value)
    if inside:
        raise NotAReplyError(f"{inside}: store that text itself, or the JSON of all as text")
    return ReplyText(json.dumps(value, ensure_ascii=False, default=str))


def is_no_reply(value: object) -> bool:
    """Return whether a value of JSON says that there is no reply: null, or pandas' NaN.

    >>> is_no_reply(None), is_no_reply(float("nan")), is_no_reply("")
    (True, True, False)
    """
    return value is None or value != value


def _is_parts(value: object) -> bool:
    """Return whether a value is the content of a message: parts with their types."""
    if not isinstance(value, list) or not value:
        return False
    types = (part.get("type") if isinstance(part, dict) else None for part in value)
    return all(isinstance(each, str) and each in _PARTS for each in types)


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

"""Replies, what a run records with each, and the thoughts that are taken out of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from .token_logprobs import TokenLogprobs, token_logprobs

# --- thoughts -------------------------------------------------------------------------------------

# The answer is what stands behind the last mark that closes a thought; the mark that opens it may
# be missing, since chat templates write it into the prompt.  Where a thought opens behind that, the
# reply was cut off inside it and holds no answer.


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """What stands around a thought; ``title`` is a word that the model writes at its start."""

    opens: str
    closes: str
    title: str = ""


THINK = ThoughtMarks("<think>", "</think>")  # What most models write
CHANNEL = ThoughtMarks("<|channel>", "<channel|>", "thought")  # What Gemma 4 writes

_ALL = (
    THINK,
    ThoughtMarks("<thinking>", "</thinking>"),
    CHANNEL,
    ThoughtMarks("◁think▷", "◁/think▷"),
)


def _any_of(marks: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(marks), re.IGNORECASE)


_OPENS = _any_of(
    re.escape(one.opens) + (rf"(?:{one.title}\b)?" if one.title else "") for one in _ALL
)
_CLOSES = _any_of(re.escape(one.closes) for one in _ALL)
_MARK = _any_of((_OPENS.pattern, _CLOSES.pattern))

_SIGNS = frozenset(sign[0] for one in _ALL for sign in (one.opens, one.closes))


class Spoken(NamedTuple):
    """A reply without its thought."""

    answer: str  # The end of the text
    thought: str = ""
    ends_inside: bool = False  # The thought was never closed


def split_thought(text: str) -> Spoken:
    """Take every thought out of a text (with :func:`opened_by` before it).

    >>> split_thought("<think>hm</think>\\n[]")
    Spoken(answer='[]', thought='hm', ends_inside=False)
    >>> split_thought("[] <think>hm [1, 2, 3, 4]")
    Spoken(answer='', thought='[]\\n\\nhm [1, 2, 3, 4]', ends_inside=True)
    """
    # Nearly every reply, and rewards are taken of millions.
    if not any(sign in text for sign in _SIGNS):
        return Spoken(text)
    begin = 0
    for closes in _CLOSES.finditer(text):
        begin = closes.end()
    if ends_inside := _OPENS.search(text, begin) is not None:
        begin = len(text)
    if not begin:
        return Spoken(text)
    thoughts = map(str.strip, _MARK.split(text[:begin]))
    return Spoken(text[begin:].lstrip(), "\n\n".join(filter(None, thoughts)), ends_inside)


def opened_by(prompt: str, marks: ThoughtMarks) -> str:
    """The end of a prompt that a chat template left inside a thought; else nothing."""
    at = prompt.rfind(marks.opens)
    return prompt[at:] if at >= 0 and marks.closes not in prompt[at:] else ""


FAILED = "Failed to obtain answer"
"""What VLMEvalKit stores in place of an answer when a call failed: not a reply of the model."""


RECORD_KEY = "findit"
"""Under this key of ``extra_records`` lies what our models record (:class:`Recorded`)."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a model's run recorded with one reply.

    ``images`` say of each image (w, h) in pixels: ``original``, as ``sent`` (the run's limits) and
    as ``processed`` (the model's processor), and the ``bounds`` in force.
    """

    space: Mapping[str, Any] | None = None  # Settings of :func:`..boxes.spaces.space_from`
    finish_reason: str = ""  # ``stop`` or ``length``
    images: tuple[Mapping[str, Any], ...] = ()
    thought: str = ""  # Never read for boxes
    ends_in_thought: bool = False  # There is no answer
    tokens: Mapping[str, int] = field(default_factory=dict)  # Of the prompt and the reply
    # Identifier, revisions or provider, and row of the model table
    model: Mapping[str, str] = field(default_factory=dict)
    # Of HTTP: id and ``cost`` in US dollars, or error and status
    call: Mapping[str, Any] = field(default_factory=dict)
    token_logprobs: TokenLogprobs | None = None  # None: not asked for or not had

    def as_json(self) -> str:
        """Return the value for the column ``extra_records``; :func:`recorded` reads it back."""
        record = {
            "space": self.space and dict(self.space),
            "finish_reason": self.finish_reason,
            "images": [dict(image) for image in self.images],
            "thought": self.thought,
            "ends_in_thought": self.ends_in_thought,
            "tokens": dict(self.tokens),
            "model": dict(self.model),
            "call": dict(self.call),
            "logprobs": self.token_logprobs and self.token_logprobs.as_json(),
        }
        said = {name: value for name, value in record.items() if value}
        return json.dumps({RECORD_KEY: said})


NOTHING_RECORDED = Recorded()  # What most models of others record: one for all their replies


def call_failed(text: str, record: Recorded) -> bool:
    """Return whether a call failed: by its record or, without one, as VLMEvalKit's message."""
    if record.call.get("error"):
        return True
    if record.finish_reason or record.tokens:
        return False
    return _MESSAGE.fullmatch(text.strip()) is not None


_MESSAGE = re.compile(
    rf"{FAILED}(?: via API)?[.:]?"
    r"(?:\s*(?:<class '[\w.]+'>|\w+(?:Error|Exception|Timeout)\b|HTTP \d{3}\b|never asked$).*)?",
    re.DOTALL,
)
"""VLMEvalKit's message, alone or with the error behind it, as it and our runs write it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One row of a prediction file."""

    index: int
    text: str  # As it stands, with thoughts that other programs leave in it
    recorded: Recorded = field(default_factory=Recorded)
    # What the row says of its query; the table is the truth
    stated: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether this row is a failed call and no answer."""
        return call_failed(self.text, self.recorded)

    @property
    def answer(self) -> str:
        """The text without its thought: what a benchmark reads."""
        return split_thought(self.text).answer

    @property
    def ends_in_thought(self) -> bool:
        """Whether it was cut off inside its thought, and holds no answer."""
        return self.recorded.ends_in_thought or split_thought(self.text).ends_inside

    @property
    def cut(self) -> bool:
        """Whether the reply was stopped at its token limit, as far as the run recorded it."""
        return self.recorded.finish_reason == "length"


class ParseFailure(NamedTuple):
    """Why a reply is no answer."""

    reason: str


UNREAD = ("empty", "truncated", "truncated while thinking")
"""Reasons of :func:`read_reply`, beside those of a benchmark and the failed call."""

Answer = TypeVar("Answer")


def read_reply(reply: Reply, read: Callable[[str], Answer | ParseFailure]) -> Answer | ParseFailure:
    """Return what a reply answers, or why it is none.

    ``read`` is given the text without its thought, never a failed call or an empty text.
    """
    if reply.failed:
        return ParseFailure("failed call")
    text = reply.answer
    if not text.strip():
        return ParseFailure("truncated while thinking" if reply.ends_in_thought else "empty")
    found = read(text)
    return ParseFailure("truncated") if isinstance(found, ParseFailure) and reply.cut else found


def recorded(value: object) -> Recorded:
    """Read what our models put into ``extra_records``; drop wrong types and what is not finite."""
    record = record_in(value)
    if not record:
        return NOTHING_RECORDED
    tokens = {key: n for key, n in _plain_object(record.get("tokens")).items() if _is_count(n)}
    model = _plain_object(record.get("model"))
    return Recorded(
        space=_space(record.get("space")),
        finish_reason=_string(record.get("finish_reason")),
        images=_images(record.get("images")),
        thought=_string(record.get("thought")),
        ends_in_thought=record.get("ends_in_thought") is True,
        tokens=tokens,
        model={key: said for key, said in model.items() if isinstance(said, str)},
        call=_plain_object(record.get("call")),
        token_logprobs=token_logprobs(record.get("logprobs")),
    )


def with_error(value: object, why: str) -> str:
    """What ``extra_records`` hold of a failed call, with its error where they do not say it yet."""
    before = recorded(value)
    call = {**before.call, "error": before.call.get("error") or why}
    return json.dumps({**_object_in(value), **json.loads(replace(before, call=call).as_json())})


def record_in(value: object) -> Mapping[str, Any]:
    """What our models record under our own key; of other models', or of what is none, nothing."""
    record = _object_in(value).get(RECORD_KEY)
    return record if isinstance(record, dict) else {}


def _object_in(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _space(value: object) -> Mapping[str, Any] | None:
    """Settings of a space: taken whole or not at all, since every one of them moves boxes."""
    if not isinstance(value, dict) or not value:
        return None
    plain = all(
        said is None
        or isinstance(said, str)
        or (isinstance(said, (int, float)) and _is_number(said))
        for said in value.values()
    )
    return value if plain else None


def _images(value: object) -> tuple[Mapping[str, Any], ...]:
    """The images of a message: all or none, since they are told apart by their place."""
    if not isinstance(value, list) or not all(isinstance(image, dict) for image in value):
        return ()
    return tuple(_plain_object(image) for image in value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_DEPTH = 8  # Objects within objects that a record may have; ours have three


def _plain_object(value: object) -> dict[str, Any]:
    found = _plain(value, _DEPTH)
    return found if isinstance(found, dict) else {}


_ODD = object()


def _plain(value: object, depth: int) -> object:
    """A value without what JSON cannot say (NaN, infinity), and not deeper than we write it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return value if _is_number(value) else _ODD
    if isinstance(value, dict) and depth:
        inside = ((str(key), _plain(one, depth - 1)) for key, one in value.items())
        return {key: one for key, one in inside if one is not _ODD}
    if isinstance(value, (list, tuple)) and depth:
        # What is told apart by its place keeps it.
        return [None if one is _ODD else one for one in (_plain(v, depth - 1) for v in value)]
    return _ODD


def _is_number(value: float) -> bool:
    """Finite, and not a whole number of hundreds of digits, which no float can hold."""
    return abs(value) < 2**63 if isinstance(value, int) else isfinite(value)

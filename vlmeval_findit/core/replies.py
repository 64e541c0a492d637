"""Replies, and what a run records with each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from .thinking import split_thought
from .token_logprobs import TokenLogprobs, token_logprobs

FAILED = "Failed to obtain answer"
"""What VLMEvalKit stores in place of an answer when a call failed: not a reply of the model."""


RECORD_KEY = "findit"
"""Under this key of ``extra_records`` lies what our models record (:class:`Recorded`)."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a model's run recorded with one reply.

    ``space`` are the settings of :func:`..boxes.spaces.space_from`; ``finish_reason`` is ``stop``
    or ``length``.  ``images`` say of each image, in the message's order, the ``original`` size, the
    size as ``sent`` (after the run's own limits), the size as ``processed`` (after the model's
    processor), all (w, h) in pixels, and the ``bounds`` in force.  ``thought`` is what the model
    thought before it spoke, never read for boxes; ``ends_in_thought`` says that it never spoke.
    ``tokens`` count the prompt and the reply.  ``model`` says who answered: identifier, revisions
    or provider, and the row of the model table.  ``call`` is what a service said of a call over
    HTTP: its id and its ``cost`` in US dollars; of a failed one, the error and the status.
    ``token_logprobs`` are of the reply's tokens, None where they were not asked for or not had.
    """

    space: Mapping[str, Any] | None = None
    finish_reason: str = ""
    images: tuple[Mapping[str, Any], ...] = ()
    thought: str = ""
    ends_in_thought: bool = False
    tokens: Mapping[str, int] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    token_logprobs: TokenLogprobs | None = None

    def as_json(self) -> str:
        """The value for the column ``extra_records``; :func:`recorded` reads it back."""
        record: dict[str, Any] = {}
        if self.space is not None:
            record["space"] = dict(self.space)
        if self.finish_reason:
            record["finish_reason"] = self.finish_reason
        if self.images:
            record["images"] = [dict(image) for image in self.images]
        if self.thought:
            record["thought"] = self.thought
        if self.ends_in_thought:
            record["ends_in_thought"] = True
        if self.tokens:
            record["tokens"] = dict(self.tokens)
        if self.model:
            record["model"] = dict(self.model)
        if self.call:
            record["call"] = dict(self.call)
        if self.token_logprobs is not None:
            record["logprobs"] = self.token_logprobs.as_json()
        return json.dumps({RECORD_KEY: _plain(record, _DEPTH + 2)})


NOTHING_RECORDED = Recorded()
"""What most models of others record: one for all their replies."""


def call_failed(text: str, record: Recorded) -> bool:
    """Whether a row is a failed call and no answer.

    What was recorded says so: an error, or how the answer ended.  Where nothing was, as in files of
    VLMEvalKit's own models, the text is failed that is its message and nothing else.
    """
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
    """One row of a prediction file.

    ``text`` is what stands there, with the thought that other programs leave in it; what is read
    is its ``answer``.
    ``stated`` is what the row says of its query (``label``, ``width``, ``height``), as far as it
    does: the truth of it is the table's.
    """

    index: int
    text: str
    recorded: Recorded = field(default_factory=Recorded)
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


def recorded(value: object) -> Recorded:
    """What our models put into ``extra_records``; of other models', nothing.

    What is not of its type, or not finite, is left out: all of it can be written as JSON again.
    """
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
    """An object, or the JSON of one; {} for anything else."""
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


_DEPTH = 8
"""Objects within objects that a record may have; ours have three."""


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

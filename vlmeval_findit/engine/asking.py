"""One piece of work and one model: the adapter to what a model can do.

A model may answer several messages at once, in one of two ways; one that cannot is asked message by
message.  Whatever goes wrong with a message is a failed answer, never an exception: one bad image
must not end a sweep.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ..predictions import RECORD_KEY, call_failed, recorded
from .calls import HostMessage

log = logging.getLogger(__name__)


class Work(NamedTuple):
    """What goes to a model at a time: plain values, so that another machine can take it.

    ``datasets[i]`` is the name of the variant that asks ``messages[i]``; ``settings`` are those of
    the calls (:func:`.calls.settings_of`).
    """

    messages: tuple[HostMessage, ...]
    datasets: tuple[str, ...]
    settings: Mapping[str, Any]
    shares_images: bool


class Stop(Enum):
    """Why no further call of a run should be made."""

    SPENT = "the spending limit is reached"
    HOPELESS = "no further call would be answered either"


class Answer(NamedTuple):
    """What came of one message.

    ``extra`` is what the model records with its reply, as VLMEvalKit's column ``extra_records``
    holds it; ``error`` says why there is no answer (None: there is one); ``seconds`` is its share
    of the time that its unit took.  ``stop`` says that this failure ends the run; a call that was
    not made for it (``Stop.SPENT``) is none, and is kept nowhere.
    """

    text: str
    extra: Any = None
    error: str | None = None
    seconds: float = 0.0
    stop: Stop | None = None

    @property
    def record(self) -> Mapping[str, Any]:
        """What our models record under our own key; of other models', nothing."""
        value = self.extra
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return {}
        record = value.get(RECORD_KEY) if isinstance(value, dict) else None
        return record if isinstance(record, dict) else {}


class Asker(Protocol):
    """Who answers work: a model, a server, a replica elsewhere."""

    def ask(self, work: Work) -> list[Answer]:
        """The answers to the messages, in their order; failures are answers with an error."""

    def answers_together(self, *, shares_images: bool) -> bool:
        """Whether it works out several messages at once: over the same images, of one variant."""


class ModelAsker:
    """A model object of VLMEvalKit's kind.

    ``generate(message=, dataset=)`` it must have.  Messages over the same images go to its
    ``generate_variants`` and those of one variant to its ``generate_batch``, where it has them.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def ask(self, work: Work) -> list[Answer]:
        if len(work.messages) > 1:
            together = self._together(work)
            if together is not None:
                return together
        return [
            self._one(message, dataset)
            for message, dataset in zip(work.messages, work.datasets, strict=True)
        ]

    def answers_together(self, *, shares_images: bool) -> bool:
        return hasattr(self._model, "generate_variants" if shares_images else "generate_batch")

    def _one(self, message: HostMessage, dataset: str) -> Answer:
        return _timed(lambda: [self._model.generate(message=_copy(message), dataset=dataset)], 1)[0]

    def _together(self, work: Work) -> list[Answer] | None:
        """The answers to all messages at once; None where the model cannot, or failed to."""
        ask = self._way(work)
        if ask is None:
            return None
        count = len(work.messages)
        answers = _timed(lambda: ask([_copy(message) for message in work.messages]), count)
        if any(answer.error is None for answer in answers):
            return answers
        log.warning("%d messages at once failed (%s): one at a time", count, answers[0].error)
        return None

    def _way(self, work: Work) -> Callable[[list[HostMessage]], Sequence[Any]] | None:
        name = "generate_variants" if work.shares_images else "generate_batch"
        method = getattr(self._model, name, None)
        if method is None:
            return None
        if "dataset" not in inspect.signature(method).parameters:
            return lambda messages: method(messages)
        return lambda messages: method(messages, dataset=work.datasets[0])


def _copy(message: HostMessage) -> HostMessage:
    """The host's models change messages in place."""
    return [dict(part) for part in message]


def _timed(ask: Callable[[], Sequence[Any]], count: int) -> list[Answer]:
    """Answers with their seconds; an exception is as many failures."""
    start = time.perf_counter()
    try:
        replies = list(ask())
        if len(replies) != count:
            raise RuntimeError(f"{len(replies)} replies to {count} messages")
    except Exception as error:
        failed = Answer("", error=said(error), seconds=(time.perf_counter() - start) / count)
        return [failed] * count
    seconds = (time.perf_counter() - start) / count
    return [answer_from(reply)._replace(seconds=seconds) for reply in replies]


def plain(value: Any) -> Any:
    """What a model records, as JSON has it: whatever it is must not cost the reply beside it."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.loads(json.dumps(value, default=str), parse_constant=str)
    except (TypeError, ValueError, RecursionError) as error:
        return f"not JSON: {said(error)}"


def said(error: BaseException) -> str:
    """An exception as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def answer_from(reply: Any) -> Answer:
    """The answer in what a model returned: a string, or a text with a record."""
    extra = None
    if isinstance(reply, Mapping):
        extra, reply = reply.get("extra_records"), reply.get("prediction")
    if not isinstance(reply, str):
        return Answer("", extra, error=f"the model returned {type(reply).__name__}, not a text")
    if call_failed(reply, recorded(extra)):
        return Answer("", extra, error=" ".join(reply.split())[:500])
    return Answer(reply, extra)

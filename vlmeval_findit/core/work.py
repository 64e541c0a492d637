"""What goes to a model and what comes back: the one language of runners and backends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from .messages import Message
from .question import Question
from .redaction import credential_in, quoted
from .replies import NOTHING_RECORDED, record_in, recorded

log = logging.getLogger(__name__)


class Work(NamedTuple):
    """What goes to a model at a time: plain values, so that another machine can take it.

    Images of messages are paths of files.
    """

    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    """What each message asks."""
    shares_images: bool
    """Whether other calls are over the same images, in this work or beside it."""
    confidences: bool = False
    """Whether log-probabilities of the replies' tokens are recorded, where they can be had."""


class Stop(Enum):
    """Why no further call of a run should be made."""

    SPENT = "the spending limit is reached"
    HOPELESS = "no further call would be answered either"
    LATER = "its answers come later"
    NOT_LOADED = "it cannot be loaded"


NOT_MADE = frozenset({Stop.SPENT, Stop.LATER, Stop.NOT_LOADED})
"""What is said of a call that was not made, or has no answer yet: nothing of it is kept."""


class Answer(NamedTuple):
    """What came of one message."""

    text: str
    extra: Any = None
    """What the model records with it, as VLMEvalKit's column ``extra_records`` holds it."""
    error: str | None = None
    """Why there is no answer."""
    seconds: float = 0.0
    """Its share of the time that the work took."""
    stop: Stop | None = None
    """Why this failure ends the run; of a call that was not made (:data:`NOT_MADE`) nothing is
    kept.
    """

    @property
    def record(self) -> Mapping[str, Any]:
        """What our models record under our own key; of other models', nothing."""
        return record_in(self.extra)


def refused_if_it_quotes(answer: Answer) -> Answer:
    """An answer, or a failed call where its reply or its thought quotes a credential.

    A key must not be kept, and a reply must not be changed, so it is not kept; the log shows it
    without the key.
    """
    if answer.error is not None:
        return answer
    # Most have no thought, and nothing is parsed to see it.
    has_thought = not isinstance(answer.extra, str) or '"thought"' in answer.extra
    thought = str(answer.record.get("thought", "")) if has_thought else ""
    which = credential_in(answer.text) or credential_in(thought)
    if not which:
        return answer
    error = f"the reply quotes a credential ({which}): it is not kept"
    log.warning("%s: %s", error, quoted(answer.text or thought, 500))
    record = recorded(answer.extra)
    if record == NOTHING_RECORDED:
        return answer._replace(text="", error=error)
    without = replace(record, thought="", ends_in_thought=False, token_logprobs=None)
    failed = replace(without, finish_reason="", call={**record.call, "error": error})
    return answer._replace(text="", extra=failed.as_json(), error=error)


class Asker(Protocol):
    """Who answers work: a model, a server, a replica elsewhere."""

    def ask(self, work: Work) -> list[Answer]:
        """The answers to the messages, in their order; failures are answers with an error."""

    def answers_together(self, *, shares_images: bool) -> bool:
        """Whether it works out several messages at once: over the same images, of one question."""


class CancelledError(BaseException):
    """A run was cancelled in the middle of replies: none of what was asked together is answered.

    No ``Exception``, as asyncio's is none: nobody takes it for a failed call.
    """


@runtime_checkable
class Cancellable(Protocol):
    """What an asker can do beside that generates replies in this process."""

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        """From when a run is told to stop, generate no further token: raise a
        :class:`CancelledError`.
        """


def said(error: BaseException) -> str:
    """An exception as one line."""
    return quoted(f"{type(error).__name__}: {error}", 500)

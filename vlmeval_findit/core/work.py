"""What goes to a model and what comes back: the one language of runners and backends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from .messages import Message
from .question import Question
from .redaction import credential_in, quoted
from .replies import NOTHING_RECORDED, record_in, recorded

log = logging.getLogger(__name__)


class Work(NamedTuple):
    """What goes to a model at a time: plain values for other machines; images are file paths."""

    messages: tuple[Message, ...]
    questions: tuple[Question, ...]  # What each message asks
    shares_images: bool  # Whether other calls are over the same images, in this work or beside it
    confidences: bool = False  # Record logprobs


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
    extra: Any = None  # VLMEvalKit's column ``extra_records``
    error: str | None = None  # Why there is no answer
    seconds: float = 0.0  # Its share of the time that the work took
    # Why this failure ends the run; nothing is stored of a call not made (:data:`NOT_MADE`)
    stop: Stop | None = None

    @property
    def record(self) -> Mapping[str, Any]:
        """What our models record under our own key; of other models', nothing."""
        return record_in(self.extra)


def refused_if_it_quotes(answer: Answer) -> Answer:
    """Fail an answer that quotes a credential: it may be neither stored nor changed."""
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
    """A run was cancelled amid replies; no ``Exception``, so nobody takes it for a failed call."""


@runtime_checkable
class Cancellable(Protocol):
    """What an asker can do beside that generates replies in this process."""

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        """Generate no token once told to stop: raise a :class:`CancelledError`."""


def said(error: BaseException) -> str:
    """An exception as one line."""
    return quoted(f"{type(error).__name__}: {error}", 500)


T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a thread, which does not keep the process from ending if it hangs."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], what: Any) -> None:
        if not future.done():
            how(what)

    def run() -> None:
        settled: tuple[Callable[[Any], None], Any]
        try:
            settled = future.set_result, function(*arguments)
        except BaseException as error:
            settled = future.set_exception, error
        with suppress(RuntimeError):  # the loop is gone: nobody waits for it any more
            loop.call_soon_threadsafe(settle, *settled)

    Thread(target=run, daemon=True).start()
    return await future

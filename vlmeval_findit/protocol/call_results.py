"""What runners send to backends, and what comes back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..core import Secrets, known_secrets, quoted_line
from .costs import NOT_TIMED, CallTime
from .dataset_variant import DatasetVariant, Message
from .replies import NOTHING_RECORDED, ReplyRecord

log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """What a model is handed at a time, as plain values; images are file paths."""

    messages: tuple[Message, ...]
    variants: tuple[DatasetVariant, ...]  # What each message asks
    logprobs: bool = False  # Record logprobs
    seeds: tuple[int, ...] = ()  # Of each message's random numbers, where replies are sampled

    def only(self, places: Sequence[int]) -> Batch:
        """Return the messages at some places, in their order."""
        return self._replace(
            messages=tuple(self.messages[at] for at in places),
            variants=tuple(self.variants[at] for at in places),
            seeds=tuple(self.seeds[at] for at in places) if self.seeds else (),
        )


class StopReason(Enum):
    """Why no further call of a run should be made."""

    SPENT = "the spending limit is reached"
    HOPELESS = "no further call would be answered either"
    LATER = "its answers come later"
    NOT_LOADED = "it cannot be loaded"


# No call was made, or its answer comes later: nothing is stored
NOT_MADE = frozenset({StopReason.SPENT, StopReason.LATER, StopReason.NOT_LOADED})


class CallResult(NamedTuple):
    """What came of a call: the reply to one message, or why there is none.

    It is handed on as it is, from what answers to the journal.
    """

    text: str
    record: ReplyRecord = NOTHING_RECORDED
    error: str | None = None  # Why there is no answer
    seconds: float = 0.0  # Of all its attempts and what is between; a share of its batch's
    stop: StopReason | None = None  # Why this failure ends the run
    time: CallTime = NOT_TIMED
    # What a model of VLMEvalKit's recorded, of any type; ``record`` is ours in it
    foreign: Any = None

    @property
    def is_recorded(self) -> bool:
        """Whether its model recorded anything."""
        return self.foreign is not None or self.record != NOTHING_RECORDED


def refused_if_it_quotes(result: CallResult, secrets: Secrets | None = None) -> CallResult:
    """Fail a reply that quotes a credential: it may be neither stored nor changed.

    ``secrets``: those of this moment, if they were read for more replies.
    """
    if result.error is not None:
        return result
    secrets = secrets or known_secrets()
    record = result.record
    which = secrets.credential_in(result.text) or secrets.credential_in(record.thought)
    if not which:
        return result
    error = f"the reply quotes a credential ({which}): it is not stored"
    log.warning("%s: %s", error, quoted_line(result.text or record.thought, 500))
    if record == NOTHING_RECORDED:
        return result._replace(text="", error=error)
    without = replace(record, thought="", ends_in_thought=False, token_logprobs=None)
    failed = replace(without, finish_reason="", call={**record.call, "error": error})
    return result._replace(text="", record=failed, error=error, foreign=None)


class ModelClient(Protocol):
    """Answers batches: a model, a server, a replica elsewhere."""

    def ask(self, batch: Batch) -> list[CallResult]:
        """Return the results in the order of the messages; a failure has an error."""

    def parts(self, window: Batch) -> Sequence[Sequence[int]]:
        """Return the places of the messages that it answers together, part by part."""


class CancelledError(BaseException):
    """A run was cancelled amid replies; no ``Exception``, as it is not a failed call."""


@runtime_checkable
class Cancellable(Protocol):
    """A client that generates replies in this process."""

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        """Raise a :class:`CancelledError` instead of generating a token once told to stop."""


@runtime_checkable
class Expecting(Protocol):
    """A client that prepares what comes next while it answers."""

    def expect(self, batch: Batch) -> None:
        """Note the batch that comes after the next."""

"""One answer of a service, or the error of a call; secrets are removed from all but the reply."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from ...core import quoted_line
from ...protocol import NOTHING_RECORDED, ReplyRecord, TokenLogprobs
from .spending import NOTHING_STATED, Usage

ANSWERED_STATUSES = frozenset({200, 201, 204})  # the body is the answer; of 204 it is empty
RETRIED_STATUSES = frozenset({408, 425, 429})  # statuses below 500 that may pass when repeated
DENIED_STATUSES = frozenset({401, 403, 404, 405, 410})  # key, permission, model or address
# Fail for every request; 402 is about credit, 407 about a proxy's password
HOPELESS_STATUSES = DENIED_STATUSES | {402, 407}
NOT_SUPPORTED = 501  # refuses the request, though it is above 500

LONGEST_MESSAGE = 500  # characters stored of an error's message


class CallError(Exception):
    """A call without an answer; the message is one line without secrets."""

    def __init__(
        self,
        message: str,
        status: int = 0,
        *,
        retry_after: float | None = None,
        transient: bool = False,
        hopeless: bool = False,
        worked_on: bool = False,
        arrived: bool = False,
        unread: bool = False,
        usage: Usage = NOTHING_STATED,
    ) -> None:
        super().__init__(quoted_line(message, LONGEST_MESSAGE))
        self.status = status  # 0: no reply
        self.retry_after = retry_after  # seconds
        may_pass = status in RETRIED_STATUSES or (status >= 500 and status != NOT_SUPPORTED)
        self.transient = transient or may_pass
        self.hopeless = hopeless  # the next call would fail too
        self.worked_on = worked_on  # it may be billed: :func:`.sent_whole.may_be_billed`
        self.arrived = arrived  # with a whole reply
        self.usage = usage  # what its reply says of its cost
        self.unread = unread  # a reply came, in a form without an answer; other calls may get it
        self.repeated = False  # all first calls at its server were refused in these words
        self.certain = False  # a single error of this kind tells that it is hopeless

    @property
    def is_charged(self) -> bool:
        """Whether the attempt is charged."""
        return self.worked_on or self.usage.says_something

    def with_note(self, note: str) -> CallError:
        """Copy it with words behind its message."""
        if not note:
            return self
        same = copy(self)
        same.args = (f"{self}{note}",)
        return same

    def of_another(self) -> CallError:
        """Copy it for a call that failed because of it, without its cost."""
        same = copy(self)
        same.usage = NOTHING_STATED
        same.worked_on = False
        return same


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer."""

    text: str  # parsed for boxes
    # What the service says of it; tokens as of :func:`.spending.token_counts`
    record: ReplyRecord = NOTHING_RECORDED
    id: str = ""
    usage: Usage = NOTHING_STATED  # what it says of its cost
    cache_discount: float | None = None  # saved by a cache; negative: added
    no_logprobs: str = ""  # why they are missing though requested
    odd_finish: str = ""  # a finish reason that is not known
    # What the service states besides the text: ``tool_calls``, ``refusal``, ``finish_reason``
    more: Mapping[str, Any] = field(default_factory=dict)

    def truncated_in_thought(self) -> Completion:
        """Return the answer to a prompt that opens a thought: cut off, it is all thought."""
        if self.record.thought or self.record.finish_reason != "length":
            return self
        none_left = self.record.token_logprobs and TokenLogprobs((), ())
        record = replace(self.record, thought=self.text, token_logprobs=none_left)
        return replace(self, text="", record=replace(record, ends_in_thought=True))

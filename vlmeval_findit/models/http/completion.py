"""One answer of a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...protocol import NOTHING_RECORDED, ReplyRecord, TokenLogprobs
from .spending import NOTHING_STATED, Usage

ANSWERED_STATUSES = frozenset({200, 201, 204})  # the body is the answer; of 204 it is empty


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

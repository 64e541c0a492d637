"""What is known of a batch; ``services`` are asked, and answer within a day at half the price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

BATCH_PRICE = 0.5  # of the price of single calls, at OpenAI and Anthropic


class BatchKind(Enum):
    """Who takes batches."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    @property
    def is_plain(self) -> bool:
        """Whether it gives no log-probabilities and supports no schemas."""
        return self is BatchKind.ANTHROPIC


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A batch, noted before it is created."""

    name: str  # ours
    options: Mapping[str, Any]  # kind, server, model, logprobs: shared by its calls
    at: float  # when it was noted, in seconds since 1970
    keys: frozenset[str]  # of its calls, and ids of its requests
    open: frozenset[str]  # keys without collected results
    uploaded: str = ""  # the service's id of the request file
    id: str = ""  # the service's id; empty if not known to exist

    def __str__(self) -> str:
        kind = self.options["kind"]
        server = self.options["server"]
        return f"the batch {self.id or self.name} ({kind} at {server})"


class BatchStatus(NamedTuple):
    """The state of a batch."""

    word: str  # the service's status word
    done: int  # finished requests
    results: tuple[str, ...] | None = None  # paths at the service, once it ended
    refused: str = ""  # why nothing was answered


class BatchLine(NamedTuple):
    """One result of a batch."""

    result: Mapping[str, Any]
    place: str  # as "line 7 of files/abc/content"


class BatchResults(NamedTuple):
    """The results of a batch, as far as they can be read."""

    lines: Mapping[str, BatchLine]  # by the ids of its requests
    unread: tuple[str, ...] = ()  # lines and files that cannot be read, and why

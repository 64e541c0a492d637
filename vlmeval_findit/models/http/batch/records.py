"""What is known of a batch: by whom, of which calls, how it goes.  No network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

HALF = 0.5  # what a batch costs of the price of single calls, at OpenAI and at Anthropic


class BatchKind(Enum):
    """Who takes batches."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    @property
    def is_plain(self) -> bool:
        """Whether it gives no log-probabilities and holds no reply to a schema."""
        return self is BatchKind.ANTHROPIC


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch, noted before it is made; ``keys`` of its calls are the ids of its requests."""

    name: str  # ours for it
    how: Mapping[str, Any]  # kind, server, model, confidences: all its calls are asked alike
    at: float  # when it was noted, in seconds since 1970
    keys: frozenset[str]
    open: frozenset[str]  # those whose results were not collected
    uploaded: str = ""  # the service's id of the file of requests
    id: str = ""  # the service's id; empty where nobody noted that it was made

    def __str__(self) -> str:
        return f"the batch {self.id or self.name} ({self.how['kind']} at {self.how['server']})"


class BatchStatus(NamedTuple):
    """How a batch goes."""

    said: str  # the service's word for it
    done: int  # requests that are
    results: tuple[str, ...] | None = None  # paths at the service, once it ended
    refused: str = ""  # why none was answered

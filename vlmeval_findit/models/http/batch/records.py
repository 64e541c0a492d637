"""What is known of a batch: by whom, of which calls, how it goes.  No network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

HALF = 0.5
"""What a batch costs of the price of single calls, at OpenAI and at Anthropic."""


class BatchKind(Enum):
    """Who takes batches."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    FILES = "files"

    @property
    def is_plain(self) -> bool:
        """Whether it gives no log-probabilities and holds no reply to a schema."""
        return self is BatchKind.ANTHROPIC


class Route(NamedTuple):
    """How calls are asked in a batch: all calls of one are asked alike."""

    kind: BatchKind
    server: str
    """The service's address without secrets."""
    model: str
    confidences: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch, noted before it is made."""

    name: str
    """Ours for it."""
    route: Route
    at: float
    """When it was noted, in seconds since 1970."""
    keys: frozenset[str]
    """The ids of its requests: the keys of its calls."""
    open: frozenset[str]
    """Those whose results were not collected."""
    uploaded: str = ""
    """The service's id of the file of requests; empty where nobody noted it."""
    id: str = ""
    """The service's id; empty where nobody noted that it was made."""

    def __str__(self) -> str:
        where = f" at {self.route.server}" if self.route.server else ""
        return f"the batch {self.id or self.name} ({self.route.kind.value}{where})"


class BatchMatch(NamedTuple):
    """The service's id of a batch (empty: it has none of ours), or of one that may be it."""

    id: str = ""
    perhaps: str = ""


class BatchStatus(NamedTuple):
    """How a batch goes."""

    said: str
    """The service's word for it."""
    done: int = 0
    """Requests that are."""
    results: tuple[str, ...] | None = None
    """Where results are once it ended: paths at the service, or of a file."""
    refused: str = ""
    """Why none was answered; empty: nothing was refused."""

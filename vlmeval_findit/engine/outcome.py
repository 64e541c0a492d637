"""What may come of a call at a server, and the settings by which a scheduler goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What came of one attempt; the value says what it tells."""

    ANSWERED = "there is an answer"
    REFUSED = "too much at once: the same call is taken later"
    FAILED = "the same call may be answered later, or by another server"
    INVALID = "this one request is not taken, by any server"
    DENIED = "key, permission or model: mostly every request to this server is refused"
    HOPELESS = "every request to this server is refused"


@dataclass(frozen=True, slots=True)
class Policy:
    """How a scheduler deals with servers; times are in seconds."""

    attempts: int = 6
    """Attempts for an item that fails; each server gets one at least."""

    refusals: int = 30
    """Attempts for an item that is refused, or tries a server that is down: not its own fault."""

    longest_wait: float = 600.0
    """What a server may ask an item to wait; for more, the next run asks again."""

    patience: float = 600.0
    """How long a server may be down before nobody waits for it: a restart that loads a large model
    takes minutes."""

    first_patience: float = 60.0
    """The same for one that said nothing so far: its address is probably wrong."""

    backoff: tuple[float, float] = (0.5, 30.0)
    """Wait before an item goes to the same server again: first, and longest after doubling."""

    failures: int = 5
    """Failures in a row that open a server's breaker: it is left out, its items go to others."""

    rest: tuple[float, float] = (1.0, 60.0)
    """How long a server is left out: first, and longest after doubling.  Then one call tries it.
    Infinity: it is not tried again."""

    denials: int = 3
    """Denials, no answer between, after which a server is lost: gateways deny for a moment."""

    window: int = 32
    """Outcomes of a server that its share of refusals is taken over."""

    tolerated: float = 0.1
    """Share of refusals that lowers no limit: at random ones, fewer calls are refused as often."""

    hold_siblings: bool = True
    """The first item over an image at a server goes alone: for servers that cache prefixes."""

    open_images: float = 0.6
    """Images that are begun at a server at a time, of its limit: prefix caches are bounded."""

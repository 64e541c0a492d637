"""What became of queries that have nothing to find (protocol section 5).

Silence is no rejection: whoever says nothing, cannot be read, or talks instead of answering has not
said that there is nothing.
"""

from __future__ import annotations

import re
from enum import Enum

from ...boxes.records import Reading, Reason
from ...core.replies import Reply
from .salvaging import SalvagedMatch


class Outcome(Enum):
    """What a reply to such a query is: exactly one; the value is its name in tables."""

    REJECTED = "rejected rightly"
    """It says in the form that was asked for that there is no box."""
    FALSE_ALARM = "false alarm"
    """At least one box was read."""
    UNREADABLE = "not readable"
    REFUSED = "refused"
    """Words in place of an answer, whatever they say."""
    EMPTY = "empty reply"
    FAILED = "failed call"

    @property
    def sum(self) -> str:
        """The sum that counts it."""
        return f"negatives_{self.name.lower()}"


ANSWERED_NEGATIVES = {one.sum: 1.0 for one in Outcome if one is not Outcome.FAILED}
"""What rejection is measured over: the queries without objects that were answered."""


def outcome(reply: Reply, reading: Reading, salvaged: SalvagedMatch | None) -> Outcome:
    """What became of a query that has nothing to find."""
    reason = reading.reason
    if reason is Reason.FAILED_CALL:
        return Outcome.FAILED
    if reading.boxes:
        return Outcome.FALSE_ALARM
    # Over frames the release does not count the empty list as adherent; it is an answer all the
    # same.
    if reason is None or (salvaged is not None and not salvaged.salvaged.steps):
        return Outcome.REJECTED
    if reason is Reason.EMPTY:
        return Outcome.EMPTY
    words = reason in (Reason.NO_BOX, Reason.NOT_JSON) and salvaged is None and not reply.cut
    return Outcome.REFUSED if words and _is_prose(reply.text) else Outcome.UNREADABLE


def _is_prose(text: str) -> bool:
    """Words, and no bracket of an answer that was begun."""
    return _BRACKET.search(text) is None and any(map(str.isalpha, text))


_BRACKET = re.compile(r"[\[\]{}]")


def rejection_sums(
    reply: Reply, reading: Reading, salvaged: SalvagedMatch | None
) -> dict[str, float]:
    """The sum of one query that has nothing to find."""
    return {outcome(reply, reading, salvaged).sum: 1}

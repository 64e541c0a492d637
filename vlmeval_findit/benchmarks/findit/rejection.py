"""What became of queries that have nothing to find (protocol section 5).

Silence is no rejection: whoever says nothing, cannot be read, or talks instead of answering has not
said that there is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from ...boxes.records import Reading, Reason
from ...core.metric import Better, Metric
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


SHARES = tuple(
    Metric(one.value, {one.sum: 1}, {each.sum: 1 for each in Outcome}, empty=None)
    for one in Outcome
)
"""The share of each outcome, failed calls included."""

ANSWERED_NEGATIVES = {one.sum: 1.0 for one in Outcome if one is not Outcome.FAILED}
"""What rejection is measured over: the queries without objects that were answered."""

REJECTION_ACCURACY = Metric(
    "Rejection accuracy",
    {Outcome.REJECTED.sum: 1},
    ANSWERED_NEGATIVES,
    empty=None,
    key="rejection_accuracy",
    in_short_tables=False,
)

FALSE_ALARM_RATE = Metric(
    "False-alarm rate",
    {Outcome.FALSE_ALARM.sum: 1},
    ANSWERED_NEGATIVES,
    empty=None,
    key="false_alarm_rate",
    in_short_tables=False,
    better=Better.LOWER,
)


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
    return Outcome.REFUSED if words and _is_prose(reply.answer) else Outcome.UNREADABLE


def _is_prose(text: str) -> bool:
    """Words, and no bracket of an answer that was begun."""
    return _BRACKET.search(text) is None and any(map(str.isalpha, text))


_BRACKET = re.compile(r"[\[\]{}]")


def rejections(sums: Mapping[str, float]) -> dict[Outcome, int]:
    """How many queries had each outcome; empty where every query has something to find."""
    found = {one: int(sums.get(one.sum, 0)) for one in Outcome}
    return found if any(found.values()) else {}


def rejection_line(sums: Mapping[str, float]) -> str | None:
    """One sentence on a run; None where every query has something to find.

    >>> rejection_line({"negatives_rejected": 6, "negatives_failed": 1})
    '7 with nothing to find: rejected rightly 6, failed call 1'
    """
    found = {one: count for one, count in rejections(sums).items() if count}
    parts = ", ".join(f"{one.value} {count:,}" for one, count in found.items())
    return f"{sum(found.values()):,} with nothing to find: {parts}" if found else None

"""Divide what a score lacks to 100 among error types.

The *events* of a row are sums by error type, so they add up over rows, slices and images. Points
are of the metric in which failed calls count as wrong (``headline_counting_failures``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

from .metric import Better, Metric, Sums, weighted
from .scored_row import RowTable, ScoredRow


def lost_key(what: str) -> str:
    """Return the key of the sum that counts the events of an error type.

    >>> lost_key("wrong label")
    'lost: wrong label'
    """
    return f"lost: {what}"


class ErrorGroup(Enum):
    """What kinds of error types have in common, in display order; the value is the name shown."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> ErrorGroup:
        member = object.__new__(cls)
        member._value_ = value
        member.meaning = meaning
        return member

    NO_ANSWER = "no answer", "a call failed, or a reply was cut off or refused"
    FORMAT = "format", "a reply that cannot be read as it was asked for"
    PLACE = "place or label", "an answer for an object, in a wrong place or by another name"
    NUMBER = "number", "too many answers, or too few"
    WRONG = "wrong answer", "an answer that was read, and is wrong"


@dataclass(frozen=True, slots=True)
class ErrorType:
    """Why points were lost."""

    name: str  # For people
    meaning: str  # One line
    group: ErrorGroup = ErrorGroup.WRONG

    @property
    def key(self) -> str:
        """Return the key of the sum that counts its events."""
        return lost_key(self.name)


class ErrorAnalysis(Protocol):
    """How a benchmark's loss is divided."""

    error_types: tuple[ErrorType, ...]  # In display order
    score: Metric  # What lost the points
    cuts: tuple[str, ...] = ("label",)  # For :meth:`parts`, besides the slices of rows
    in_sums: bool = False  # Every event is one of its row's sums already

    @property
    def keys(self) -> Collection[str]:
        """Return the keys that events may have."""
        return {error_type.key for error_type in self.error_types}

    @abstractmethod
    def events(self, row: ScoredRow) -> Mapping[str, float]:
        """Return a row's events by error type key, with other sums that :meth:`points` needs."""

    @abstractmethod
    def points(self, sums: Sums) -> Mapping[str, Any]:
        """Return each error type's percentage points by its key; they add up to :meth:`lost`."""

    def lost(self, sums: Sums) -> float:
        """Return what the score lacks to 100; 0 where nothing could be lost."""
        score = self.score.value(sums)
        ratios = self.score.ratios(sums)
        if score is None or not any(weighted(sums, ratio.whole) for ratio in ratios):
            return 0.0
        return score if self.score.better is Better.LOWER else 100.0 - score

    def parts(self, row: ScoredRow, by: str) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Yield a row's events by part; ``by`` is a kind of slices or a cut."""
        part = row.slices.get(by, row.details.get(by) if by == LABEL_KEY else None)
        if part is not None:
            yield str(part), self.events(row)


LABEL_KEY = "label"  # In a row's details: what was asked for

# Error type of queries without an answer
FAILED_CALL = ErrorType("failed call", "the call failed: there is no answer", ErrorGroup.NO_ANSWER)
# Error type of answers without a reading
UNREADABLE = ErrorType("not readable", "the answer could not be read", ErrorGroup.FORMAT)
# Error type where an answer is right or wrong as a whole
WRONG = ErrorType("wrong answer", "the answer was read, and is wrong")


@dataclass(frozen=True)
class AnswerErrors(ErrorAnalysis):
    """Divide the loss of a plain ratio by the reason of each row.

    Where lower is better, the loss is the metric itself.

    >>> accuracy = Metric("Accuracy", {"right": 1}, {"asked": 1})
    >>> analysis = AnswerErrors(accuracy, ("no letter",))
    >>> analysis.events(ScoredRow(0, "a.jpg", {"right": 0, "asked": 1}, reason="no letter"))
    {'lost: no letter': 1}
    >>> analysis.points({"asked": 4, "right": 3, "lost: no letter": 1})["lost: no letter"]
    25.0
    """

    score: Metric
    reasons: tuple[str, ...] = ()  # Those that are error types; others count as not readable

    @property
    def error_types(self) -> tuple[ErrorType, ...]:  # type: ignore[override]
        others = (FAILED_CALL.name, UNREADABLE.name, WRONG.name)
        reasons = [name for name in self.reasons if name not in others]
        known = [
            ErrorType(name, f"no answer could be read: {name}", ErrorGroup.FORMAT)
            for name in reasons
        ]
        return FAILED_CALL, *known, UNREADABLE, WRONG

    def events(self, row: ScoredRow) -> Mapping[str, float]:
        reached = weighted(row.sums, self.score.part)
        whole = weighted(row.sums, self.score.whole)
        missing = reached if self.score.better is Better.LOWER else whole - reached
        if not missing:
            return {}
        key = lost_key(row.reason) if row.reason in self.reasons else UNREADABLE.key
        if row.failed or row.reason is None:
            key = FAILED_CALL.key if row.failed else WRONG.key
        return {key: missing}

    def points(self, sums: Sums) -> Mapping[str, Any]:
        in_arrays = any(np.ndim(values) for values in sums.values())
        points: dict[str, Any] = {}
        for each in self.error_types:
            share = replace(self.score, name=each.key, part={each.key: 1.0}, empty=0.0)
            points[each.key] = share.values(sums) if in_arrays else share.value(sums)
        return points


def with_events(analysis: ErrorAnalysis, rows: Sequence[ScoredRow]) -> Sequence[ScoredRow]:
    """Add each row's events to its sums."""
    if analysis.in_sums:
        return rows
    if isinstance(rows, RowTable):
        return rows.with_events()
    return [_row_with_events(analysis, row) for row in rows]


def _row_with_events(analysis: ErrorAnalysis, row: ScoredRow) -> ScoredRow:
    events = analysis.events(row)
    if events.items() <= row.sums.items():
        return row
    return replace(row, sums={**row.sums, **events})

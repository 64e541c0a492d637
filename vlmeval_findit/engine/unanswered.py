"""What of a plan is left to ask."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from ..core.work import Answer
from .backend import WorkResult
from .calls import unread
from .journal.lookup import JournalView
from .plan import ItemSizes, Plan, WorkItem, unfinished, work_items

log = logging.getLogger(__name__)


class Unanswered(Container[str]):
    """The keys whose answers a journal does not have as they are wanted.

    Args:
        journal: what is answered.
        confidences: whether log-probabilities are wanted.
        again: whether failed calls are made again.
    """

    def __init__(self, journal: JournalView, confidences: bool, again: bool = True) -> None:
        self._journal = journal
        self._confidences = confidences
        self._again = again

    def __contains__(self, key: object) -> bool:
        journal, key = self._journal, str(key)
        if journal.serves(key, confidences=self._confidences):
            return False
        return self._again or key in journal or journal.get(key) is None


@dataclass(frozen=True, slots=True)
class OpenCalls:
    """The calls of a plan whose keys are in ``keys``."""

    plan: Plan
    keys: Container[str]
    sizes: ItemSizes

    def unreadable(self) -> Iterator[WorkResult]:
        """Those whose images cannot be read, each with its failure."""
        for call in self.plan.unread:
            if call.key in self.keys:
                why = next(filter(None, map(unread, call.asked.image_sha256)))
                answer = Answer("", error=f"an image cannot be read: {why}")
                yield WorkResult((call,), (answer,))

    def __iter__(self) -> Iterator[WorkItem]:
        """The others, cut into items as if the whole plan were asked."""
        return unfinished(
            work_items(self.plan.calls, self.sizes),
            lambda call: call.key in self.keys and not any(map(unread, call.asked.image_sha256)),
        )


class Left(NamedTuple):
    """How much of a plan is left.

    ``left`` are the calls of ``calls`` that are; ``waits[i]`` are those that the cell ``i`` waits
    for.  ``known`` are the places of cells of which the journal has answers, ``noted`` the keys
    among some that were asked for.
    """

    calls: int
    left: int
    waits: tuple[int, ...]
    known: frozenset[int]
    noted: frozenset[str]


def calls_left(
    plan: Plan, journal: JournalView, left: Container[str], noted: Set[str] = frozenset()
) -> Left:
    """Count the calls that are left, in one walk through the plan; ``noted`` are keys to look for.

    A call that is left although the journal has its answer is one that has no log-probabilities.
    """
    calls = again = count = 0
    waits, known, found = [0] * len(plan.cells), set[int](), set[str]()
    for call in plan.calls:
        calls += 1
        if call.key in journal:
            known.update(call.wanted_by)
        if call.key in left:
            count += 1
            again += call.key in journal
            if call.key in noted:
                found.add(call.key)
            for at in call.wanted_by:
                waits[at] += 1
    if again:
        log.warning(
            "%s: %d answers have no log-probabilities and are asked for again", journal.path, again
        )
    return Left(calls, count, tuple(waits), frozenset(known), frozenset(found))

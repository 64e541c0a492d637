"""Plan calls: equal calls once, and those over one image next to each other.

Items are cut from the *whole* plan, so a resumed run has the same batches. Keys are computed on
demand: memory grows with rows and images, not with calls.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ..storage import ImageError, Shown, imported_contents, replaced_note
from .calls import Call, Cell, unread
from .journal.view import JournalView

log = logging.getLogger(__name__)


class WorkItem(NamedTuple):
    """A window of the plan: calls that a backend is handed together."""

    calls: tuple[Call, ...]

    @property
    def image_name(self) -> str:
        """The content of its images; empty if there are none, or if its calls show others."""
        names = {call.image_sha256 for call in self.calls}
        return "+".join(names.pop()) if len(names) == 1 else ""


class Plan:
    """The calls of cells; iterating yields the remaining calls, cut into items.

    Remaining are those without an answer in the journal, failed calls only if asked ``again``.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        journal: JournalView | None = None,
        window: int = 32,
        again: bool = True,
    ) -> None:
        self.cells = tuple(cells)
        self.journal = journal
        self._window = window
        self._again = again
        # Places (cell, row's place) by the content of their images, in order of first use.
        self._places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        refuse_replaced(cells)
        for at, cell in enumerate(cells):
            contents = map(cell.prompts.images.contents, cell.prompt_hashes.images)
            for place, content in enumerate(contents):
                self._places.setdefault(content, []).append((at, place))
        self._unreadable = any(any(map(unread, content)) for content in self._places)

    def is_left(self, key: str) -> bool:
        """Return whether a call is still to be made."""
        journal = self.journal
        if journal is None:
            return True
        may_ask = self._again or key in journal or journal.get(key) is None
        return may_ask and not journal.serves(key, logprobs=self.cells[0].logprobs)

    def calls(self, *, unreadable: bool = False) -> Iterator[Call]:
        """Yield every call once, in order; or only those over unreadable images."""
        keys = [cell.key_maker() for cell in self.cells]
        for content, places in self._places.items():
            if unreadable and not any(map(unread, content)):
                continue
            needed_by: dict[str, tuple[int, list[int]]] = {}
            for at, place in places:
                _, cells = needed_by.setdefault(keys[at](place), (place, [at]))
                if cells[-1] != at:
                    cells.append(at)
            for key, (place, cells) in needed_by.items():
                yield Call(key, self.cells[cells[0]], place, tuple(cells), len(needed_by) > 1)

    def __iter__(self) -> Iterator[WorkItem]:
        """Yield the remaining readable calls, cut as if nothing was answered.

        Items with a call that failed in an earlier run come last: a server that refuses these would
        be given up before others are asked.
        """
        failed = []
        for item in work_items(self.calls(), self._window):
            calls = [call for call in item.calls if self.is_left(call.key)]
            if calls and self._unreadable:
                calls = [call for call in calls if not any(map(unread, call.image_sha256))]
            if not calls:
                continue
            left = WorkItem(tuple(calls))
            if self.journal is not None and any(self.journal.failed(call.key) for call in calls):
                failed.append(left)
            else:
                yield left
        yield from failed


def work_items(calls: Iterable[Call], window: int) -> Iterator[WorkItem]:
    """Cut calls into items of at most ``window``; those over one image part only if they must."""
    waiting: list[Call] = []
    for _, group in groupby(calls, key=attrgetter("image_sha256")):
        over_one = tuple(group)
        if len(waiting) + len(over_one) > window and waiting:
            yield WorkItem(tuple(waiting))
            waiting = []
        for start in range(0, len(over_one), window):
            waiting += over_one[start : start + window]
            if len(waiting) == window:
                yield WorkItem(tuple(waiting))
                waiting = []
    if waiting:
        yield WorkItem(tuple(waiting))


def single_calls(items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """Split items, so that each call can be stored once it is answered."""
    for item in items:
        for call in item.calls:
            yield WorkItem((call,))


class PlanCounts(NamedTuple):
    """How much of a plan is left."""

    calls: int
    left: int
    waits: tuple[int, ...]  # per cell, how many of them it needs
    known: frozenset[int]  # indices of cells with answers in the journal
    noted: frozenset[str]  # requested keys that are in the plan


def calls_left(plan: Plan, noted: Set[str]) -> PlanCounts:
    """Count the calls that are left, and find ``noted`` keys.

    An answered call is left if log-probabilities are requested and missing.
    """
    journal = plan.journal
    assert journal is not None
    calls = 0
    left = 0
    again = 0
    waits = [0] * len(plan.cells)
    known = set[int]()
    noted_here = set[str]()
    for call in plan.calls():
        calls += 1
        is_known = call.key in journal
        if is_known:
            known.update(call.needed_by)
        if plan.is_left(call.key):
            left += 1
            again += is_known
            if call.key in noted:
                noted_here.add(call.key)
            for at in call.needed_by:
                waits[at] += 1
    if again:
        log.warning(
            "%s: %d answers have no log-probabilities and are asked for again", journal.path, again
        )
    return PlanCounts(calls, left, tuple(waits), frozenset(known), frozenset(noted_here))


def refuse_replaced(cells: Sequence[Cell]) -> None:
    """Raise an ImageError for images of imported tables that are not those of the import."""
    expected: dict[Path, Shown] = {}
    others: dict[Path, str] = {}
    for cell in cells:
        table = cell.prompts.dataset.table
        images = cell.prompts.images
        if table not in expected:
            expected[table] = imported_contents(table)
        known = expected[table]
        if not known:
            continue
        for number in set(cell.prompt_hashes.images):
            shown = zip(
                images.files[number], images.names[number], images.contents(number), strict=True
            )
            for file, name, content in shown:
                if name in known and not unread(content) and known[name] != content:
                    others[file] = name
    if others:
        file, name = next(iter(others.items()))
        folder = file.parents[len(Path(name).parts) - 1]
        raise ImageError(replaced_note(list(others.values()), folder))

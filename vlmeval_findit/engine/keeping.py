"""What becomes of answers: each is kept in the journal, and completes cells that wait for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from ..core.work import NOT_MADE, Answer, Kept
from .calls import Call, unread
from .executors import Executor
from .journal.errors import JournalError, full_disk
from .journal.lines import Record
from .journal.writer import Journal
from .plan import Plan, Unit, UnitSizes, unfinished, units
from .stopping import Stopping

log = logging.getLogger(__name__)


class Keeping:
    """Keeps the answers of a model's calls, and writes each cell when its last call was made.

    ``error`` says why replies cannot be kept as they should, ``last`` is the answer after which no
    further call should be made: what was made still is kept then, as far as it can be.

    Args:
        journal: where answers go.
        waiting: the cells that wait for them.
        told: is told of calls that were made.
        write: writes the files of a cell, by its number.
        record: makes the journal's line of a call and its answer.
    """

    def __init__(
        self,
        journal: Journal,
        waiting: Waiting,
        told: Callable[[Sequence[Answer]], None],
        write: Callable[[int], None],
        record: Callable[[Call, Answer], Record],
    ) -> None:
        self._journal = journal
        self._waiting = waiting
        self._told = told
        self._write = write
        self._record = record
        self._elsewhere = False
        self._later: list[int] = []
        self.error: JournalError | None = None
        self.last: Answer | None = None

    @property
    def ended(self) -> bool:
        """Whether no further call should be made."""
        return self.error is not None or self.last is not None

    def write_complete(self) -> None:
        """Write the cells that wait for nothing."""
        for at in self._waiting.complete():
            self._write(at)

    def take(self, unit: Unit, answers: Sequence[Answer]) -> None:
        """Keep the answers to a unit's calls; of one that was not made there is nothing to keep,
        and what was kept where it was made waits for :meth:`take_in`.

        Raises:
            OSError: of another kind than a full disk.
        """
        both = zip(unit.calls, answers, strict=True)
        made = [(call, answer) for call, answer in both if answer.stop not in NOT_MADE]
        here = [pair for pair in made if not isinstance(pair[1], Kept)]
        self._elsewhere = self._elsewhere or len(here) < len(made)
        try:
            if here:
                self._journal.append(self._record(*pair) for pair in here)
            self._told([answer for _, answer in made])
            done = self._waiting.made(call for call, _ in made)
            if self._elsewhere:
                self._later += done
            elif self.error is None:
                for at in done:
                    self._write(at)
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(full_disk(error, self._journal.path))
        last = (answer for answer in answers if answer.stop is not None)
        self.last = self.last or next(last, None)

    def take_in(self) -> None:
        """Take in what was kept elsewhere, and write the cells that waited for it.

        Raises:
            OSError: of another kind than a full disk.
        """
        if not self._elsewhere or self.error is not None:
            return
        try:
            self._journal.take_in()
            for at in self._later:
                self._write(at)
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(full_disk(error, self._journal.path))

    def _failed(self, error: JournalError) -> None:
        self.error = error if self.error is None else self.error.and_lost(error.lost)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a plan that are left, by their keys."""

    plan: Plan
    left: Container[str]
    sizes: UnitSizes


def answer_calls(calls: Calls, executor: Executor, keeping: Keeping, asked: Stopping) -> None:
    """Make calls and keep their answers.

    Args:
        calls: what is left.
        executor: who answers.
        keeping: who keeps the answers; it says in the end whether all could be made and kept.
        asked: who asks to stop; what is on its way then is still kept.
    """
    stop = Stopping(asked)
    for unit, answers in unread_calls(calls.plan, calls.left):
        keeping.take(unit, answers)
    work = readable(unfinished(units(calls.plan.calls, calls.sizes), calls.left))
    for unit, answers in () if keeping.ended else executor.run(work, stop):
        # An interruption must not come between a reply and the journal.
        with asked.shielded():
            keeping.take(unit, answers)
        if keeping.ended:
            # What is on its way is paid for: it still comes, and is kept where there is room.
            stop.set()


def unread_calls(plan: Plan, left: Container[str]) -> Iterator[tuple[Unit, list[Answer]]]:
    """The calls whose images cannot be read, each with its failure."""
    for call in plan.unread:
        if call.key in left:
            why = next(filter(None, map(unread, call.asked.image_sha256)))
            yield Unit((call,), False), [Answer("", error=f"an image cannot be read: {why}")]


def readable(whole: Iterable[Unit]) -> Iterator[Unit]:
    """The units with those of their calls whose images can be read."""
    for unit in whole:
        calls = tuple(call for call in unit.calls if not any(map(unread, call.asked.image_sha256)))
        if calls:
            yield Unit(calls, unit.shares_images)


class Unanswered(Container[str]):
    """The keys whose answers a journal does not have as they are wanted.

    Args:
        journal: what is answered.
        confidences: whether log-probabilities are wanted.
    """

    def __init__(self, journal: Journal, confidences: bool) -> None:
        self._journal = journal
        self._confidences = confidences

    def __contains__(self, key: object) -> bool:
        return not self._journal.serves(str(key), confidences=self._confidences)


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
    plan: Plan, journal: Journal, left: Container[str], noted: Set[str] = frozenset()
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


class Waiting:
    """Which cells still wait for calls.

    Args:
        waits: for how many calls each waits.
    """

    def __init__(self, waits: Iterable[int]) -> None:
        self._left = list(waits)

    def complete(self) -> list[int]:
        """The places of the cells that wait for nothing."""
        return [at for at, left in enumerate(self._left) if not left]

    def made(self, calls: Iterable[Call]) -> list[int]:
        """The places of the cells that waited for nothing but these calls."""
        done = []
        for call in calls:
            for at in call.wanted_by:
                self._left[at] -= 1
                if not self._left[at]:
                    done.append(at)
        return done

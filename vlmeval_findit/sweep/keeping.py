"""What becomes of answers: each is kept in the journal, and completes cells that wait for it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from ..core.work import NOT_MADE, Answer
from .calls import Call, Cell, ImageHash, unread
from .executors import Executor
from .journal import Journal
from .journal_errors import JournalError, full_disk
from .journal_lines import Record
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
        """Keep the answers to a unit's calls; of one that was not made there is nothing to keep.

        Raises:
            OSError: of another kind than a full disk.
        """
        both = zip(unit.calls, answers, strict=True)
        made = [(call, answer) for call, answer in both if answer.stop not in NOT_MADE]
        try:
            if made:
                self._journal.append(self._record(*pair) for pair in made)
            self._told([answer for _, answer in made])
            done = self._waiting.made(call for call, _ in made)
            if self.error is None:
                for at in done:
                    self._write(at)
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(full_disk(error, self._journal.path))
        last = (answer for answer in answers if answer.stop is not None)
        self.last = self.last or next(last, None)

    def _failed(self, error: JournalError) -> None:
        self.error = error if self.error is None else self.error.and_lost(error.lost)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a plan that are left."""

    plan: Plan
    left: Set[str]
    sizes: UnitSizes
    hashes: ImageHash


def answer_calls(calls: Calls, executor: Executor, keeping: Keeping, asked: Stopping) -> None:
    """Make calls and keep their answers.

    Args:
        calls: what is left.
        executor: who answers.
        keeping: who keeps the answers; it says in the end whether all could be made and kept.
        asked: who asks to stop; what is on its way then is still kept.
    """
    stop, left = Stopping(asked), set(calls.left)
    for unit, answers in unread_calls(calls.plan, left, calls.hashes):
        keeping.take(unit, answers)
        left.discard(unit.calls[0].key)
    work = unfinished(units(calls.plan.calls, calls.sizes), left)
    for unit, answers in () if keeping.ended else executor.run(work, stop):
        # An interruption must not come between a reply and the journal.
        with asked.shielded():
            keeping.take(unit, answers)
        if keeping.ended:
            # What is on its way is paid for: it still comes, and is kept where there is room.
            stop.set()


def unread_calls(
    plan: Plan, left: Set[str], hashes: ImageHash
) -> Iterator[tuple[Unit, list[Answer]]]:
    """The calls whose images cannot be read, each with its failure."""
    for call in plan.calls:
        why = next(filter(None, (unread(hashes(path)) for path in call.images)), None)
        if why is not None and call.key in left:
            yield Unit((call,), False), [Answer("", error=f"an image cannot be read: {why}")]


def calls_left(plan: Plan, journal: Journal) -> set[str]:
    """The keys of the calls whose answers the journal does not have as the plan wants them."""
    left = {
        call.key
        for call in plan.calls
        if not journal.serves(call.key, confidences=call.cell.confidences)
    }
    again = sum(key in journal for key in left)
    if again:
        log.warning(
            "%s: %d answers have no log-probabilities and are asked for again", journal.path, again
        )
    return left


def count_failed(cell: Cell, keys: Sequence[str], journal: Journal) -> int:
    """How many rows of a cell have no answer, or none as it is wanted."""
    return sum(not journal.serves(key, confidences=cell.confidences) for key in keys)


class Waiting:
    """Which cells still wait for calls.

    Args:
        plan: the cells and their keys.
        left: the keys of calls that were not made yet.
    """

    def __init__(self, plan: Plan, left: set[str]) -> None:
        self._cells: dict[str, list[int]] = defaultdict(list)
        self._left = [0] * len(plan.keys)
        for at, keys in enumerate(plan.keys):
            for key in set(keys) & left:
                self._cells[key].append(at)
                self._left[at] += 1

    def complete(self) -> list[int]:
        """The cells that wait for nothing."""
        return [at for at, left in enumerate(self._left) if not left]

    def made(self, calls: Iterable[Call]) -> list[int]:
        """The cells that waited for nothing but these calls."""
        done = []
        for call in calls:
            for at in self._cells.pop(call.key, ()):
                self._left[at] -= 1
                if not self._left[at]:
                    done.append(at)
        return done

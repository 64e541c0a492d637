"""What becomes of answers: each goes to the journal, and completes cells that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..core.work import NOT_MADE, Answer, Kept
from .backend import WorkResult
from .calls import Call
from .journal.errors import JournalError, full_disk
from .journal.lines import Record
from .journal.lookup import JournalShard
from .journal.writer import Journal


class ResultSink:
    """Keeps the answers of a model's calls, and finishes each cell when its last call came home.

    ``error`` says why replies cannot be kept as they should, ``last`` is the answer after which no
    further call should be made: what was made still is kept then, as far as it can be.

    Args:
        journal: where answers go.
        waiting: the cells that wait for them.
        told: is told of calls that were made.
        write: writes the files of a cell, by its number.
        record: makes the journal's record of a call and its answer.
    """

    def __init__(
        self,
        journal: Journal | JournalShard,
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

    def take(self, result: WorkResult) -> None:
        """Keep answers; of a call that was not made there is nothing to keep, and what was kept
        where it was made waits for :meth:`take_in`.

        Raises:
            OSError: of another kind than a full disk.
        """
        both = zip(result.calls, result.answers, strict=True)
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
        last = (answer for answer in result.answers if answer.stop is not None)
        self.last = self.last or next(last, None)

    def take_in(self) -> None:
        """Take in what was kept elsewhere, and write the cells that waited for it.

        Raises:
            OSError: of another kind than a full disk.
        """
        if not self._elsewhere or self.error is not None:
            return
        try:
            assert isinstance(self._journal, Journal)
            self._journal.merge_shards()
            for at in self._later:
                self._write(at)
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(full_disk(error, self._journal.path))

    def _failed(self, error: JournalError) -> None:
        self.error = error if self.error is None else self.error.and_lost(error.lost)


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

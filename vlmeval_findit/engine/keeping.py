"""What becomes of answers: each is kept in the journal, and completes cells that wait for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .asking import Answer, Stop, plain
from .calls import Call, ImageHash, keyed, unread
from .journal import Journal
from .lock import JournalError, full_disk
from .plan import Plan, Unit


class Keeping:
    """Keeps the answers of a model's calls, and writes each cell when its last call was made.

    ``error`` says why replies cannot be kept as they should, ``last`` is the answer after which no
    further call should be made: what was made still is kept then, as far as it can be.

    Args:
        journal: where answers go.
        waiting: the cells that wait for them.
        told: is told of calls that were made.
        write: writes the files of a cell, by its number.
        hashes: the hashes of images.
    """

    def __init__(
        self,
        journal: Journal,
        waiting: Waiting,
        told: Callable[[Sequence[Answer]], None],
        write: Callable[[int], None],
        hashes: ImageHash,
    ) -> None:
        self._journal = journal
        self._waiting = waiting
        self._told = told
        self._write = write
        self._hashes = hashes
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
        made = [(call, answer) for call, answer in both if answer.stop is not Stop.SPENT]
        try:
            if made:
                self._journal.append(record_of(*pair, self._hashes) for pair in made)
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


def unread_calls(
    plan: Plan, left: set[str], hashes: ImageHash
) -> Iterator[tuple[Unit, list[Answer]]]:
    """The calls whose images cannot be read, each with its failure."""
    for call in plan.calls:
        why = next(filter(None, (unread(hashes(path)) for path in call.images)), None)
        if why is not None and call.key in left:
            yield Unit((call,), False), [Answer("", error=f"an image cannot be read: {why}")]


def record_of(call: Call, answer: Answer, hashes: ImageHash) -> dict[str, Any]:
    """One line of the journal."""
    made = keyed(call.cell, call.row, hashes)
    record = answer.record
    return {
        "key": call.key,
        "model": call.cell.model,
        "settings": dict(call.cell.settings),
        "dataset": call.cell.variant.name,
        "row": call.row,
        "prompt_sha256": made.prompt_sha256,
        "image_sha256": list(made.image_sha256),
        "reply": answer.text,
        "extra_records": plain(answer.extra),
        "tokens": plain(record.get("tokens")),
        "finish_reason": plain(record.get("finish_reason")) or None,
        "seconds": round(answer.seconds, 6),
        "error": answer.error,
    }


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

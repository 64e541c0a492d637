"""Who answers: threads over one or more askers.

An executor takes units as it can do them and gives back their answers, in any order.  It holds few
calls at a time: when it is told to stop it takes no more, and what it has taken is answered and
given back, so that a sweep can stop at any point without losing a reply that was paid for.
Whatever an asker does, every call that was begun has an answer: an exception is a failed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from typing import Protocol, TypeVar

from ..core.routing import Place
from ..core.work import Answer, Asker, Placing, Stoppable
from .backend import answers_of, not_loaded, single_calls
from .cancel import CancelToken
from .line import Line, Siblings, Taken
from .plan import WorkItem

GRACE = 1.0
"""Seconds that replies have which are just coming in when everything is given up."""

T = TypeVar("T")
Answered = tuple[WorkItem, Sequence[Answer]]


class Executor(Protocol):
    """Who answers units.

    ``took`` says of the servers that were asked how many calls at once each takes.
    """

    took: Mapping[str, int]

    def run(self, units: Iterable[WorkItem], stop: CancelToken) -> Iterator[Answered]:
        """Every unit, or its calls one by one, with answers, in any order; fewer once stopped.

        Raises:
            KeyboardInterrupt: what was on its way was given up, too.
        """


def until(stop: CancelToken, items: Iterable[T]) -> Iterator[T]:
    """Units, or whatever it is, as long as nobody asks to stop."""
    for item in items:
        if stop.requested:
            return
        yield item


class ThreadsExecutor:
    """Threads over askers that any thread may use: an API, or several servers.

    Calls over a picture go to one asker, and in it to one server (:mod:`.line`).  An asker that is
    :class:`.Stoppable` waits for nothing when the run is to stop, and gives up its calls when all
    are given up.

    Args:
        load: makes the askers, when the first unit comes.
        threads: calls at a time to each asker.
    """

    def __init__(self, load: Callable[[], Sequence[Asker]], threads: int) -> None:
        self._load = load
        self._threads = threads
        self._askers: Sequence[Asker] = ()
        self.took: Mapping[str, int] = {}

    def run(self, units: Iterable[WorkItem], stop: CancelToken) -> Iterator[Answered]:
        coming = until(stop, (piece for unit in units for piece in single_calls(unit)))
        first = next(coming, None)
        if first is None:
            return
        # Once: a race asks several times, and what was found out of servers stays.
        try:
            askers = self._askers = self._askers or self._load()
        except (Exception, SystemExit) as error:
            yield first, not_loaded(first, error).answers
            return
        crew = _Crew(chain([first], coming), askers, self._threads, stop)
        try:
            with stop.on_request(lambda: crew.wake() if stop.now else None):
                yield from crew.answers()
        finally:
            crew.dismiss()
            placing = [asker for asker in askers if isinstance(asker, Placing)]
            self.took = {name: count for asker in placing for name, count in asker.took.items()}


_LOOK_UP = 0.25
"""Seconds after which a thread looks whether a server takes more calls than before."""


class _Crew:
    """Threads that answer calls.

    They do not keep the process from ending: one that waits for a server that hangs is left.
    """

    def __init__(
        self, coming: Iterator[WorkItem], askers: Sequence[Asker], threads: int, stop: CancelToken
    ) -> None:
        self._askers = askers
        self._threads = threads
        self._stop = stop
        self._workers = len(askers) * threads
        placing = all(isinstance(asker, Placing) for asker in askers)
        siblings = Siblings.AFTER_THE_FIRST if placing else Siblings.AT_ONCE
        self._line = Line(coming, self._places, siblings)
        self._changed = Condition()
        self._out = 0
        self._dismissed = False
        # A simple queue: a signal's handler may put something in while its lock is taken.
        self._home: SimpleQueue[tuple[WorkItem, Sequence[Answer] | BaseException | None] | None]
        self._home = SimpleQueue()
        for asker in askers:
            if isinstance(asker, Stoppable):
                asker.stops_with(lambda: stop.requested)
            if isinstance(asker, Placing):
                asker.expect(threads)
        for _ in range(self._workers):
            Thread(target=self._work, daemon=True).start()

    def wake(self) -> None:
        """Have it look whether everything is given up."""
        self._home.put(None)

    def dismiss(self) -> None:
        """Let the threads end, each after its call."""
        with self._changed:
            self._dismissed = True
            self._changed.notify_all()

    def answers(self) -> Iterator[Answered]:
        """The units with answers, as they come home; without what had not begun at a stop."""
        kept = 0
        while True:
            with self._changed:
                # Only now, so that an answer which ends the run is known before others begin.
                self._out -= kept
                self._line.fill(2 * self._workers)
                self._changed.notify()
                if self._line.is_empty and not self._out:
                    return
            came = self._home.get()
            if came is None:
                yield from self._given_up(self._out)
                return
            kept = 1
            unit, answers = came
            if isinstance(answers, BaseException):
                raise answers
            if answers is not None:
                yield unit, answers

    def _given_up(self, out: int) -> Iterator[Answered]:
        """What is there already, or as good as there, of so many calls."""
        for asker in self._askers:
            if isinstance(asker, Stoppable):
                with suppress(Exception):
                    asker.cancel()
        until = time.monotonic() + GRACE
        while out and (left := until - time.monotonic()) > 0:
            try:
                came = self._home.get(timeout=left)
            except Empty:
                return
            if came is None:
                continue
            out -= 1
            unit, answers = came
            # A call that was given up did not fail.
            if isinstance(answers, tuple) and not any(answer.error for answer in answers):
                yield unit, answers

    def _places(self) -> list[Place]:
        """Where calls go: the servers of one asker that says them, else the askers."""
        if len(self._askers) == 1 and isinstance(self._askers[0], Placing):
            return list(self._askers[0].places())
        return [Place(str(number), self._threads) for number in range(len(self._askers))]

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            answers: Sequence[Answer] | BaseException | None = None
            if not self._stop.requested:
                try:
                    answers = self._answers(taken)
                except BaseException as error:
                    answers = error
            with self._changed:
                self._line.done(taken)
                if self._stop.requested:
                    self._line.drop()
                self._changed.notify()
            self._home.put((taken.unit, answers))

    def _answers(self, taken: Taken) -> Sequence[Answer]:
        alone = len(self._askers) == 1
        asker = self._askers[0 if alone else int(taken.place)]
        unit = WorkItem(taken.unit.calls, taken.has_siblings)
        return answers_of(lambda work: asker.ask(work._replace(place=taken.place)), unit)

    def _take(self) -> Taken | None:
        """What this thread asks next; None where it is dismissed."""
        with self._changed:
            while not self._dismissed:
                # Few answers wait to be kept, and no thread is idle while one is.
                taken = self._line.take() if self._out < 2 * self._workers else None
                if taken is not None:
                    self._out += 1
                    self._changed.notify()  # there may be something for another, too
                    return taken
                self._changed.wait(None if self._line.is_empty else _LOOK_UP)
        return None
